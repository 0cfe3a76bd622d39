//! What the latest finished invocations called, for `GET /_local/calls`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use local_aws::Call;
use serde::Serialize;

/// Older invocations are forgotten.
const KEPT: usize = 500;

/// A finished invocation.
#[derive(Debug, Clone, Serialize)]
pub struct Finished {
    /// API Gateway's request id, or that of the invocation where no request caused it.
    pub request_id: String,
    /// The function.
    pub function: String,
    /// The route, queue, stream or schedule that caused it.
    pub route: String,
    /// Stack time of its beginning, in microseconds since 1970.
    pub started_us: i64,
    /// What it called, in the order of the answers.
    pub calls: Vec<Call>,
}

/// What a function has called since the stack was started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Finished invocations.
    pub invocations: u64,
    /// Calls to AWS.
    pub calls: u64,
    /// Read capacity.
    pub read_units: f64,
    /// Write capacity.
    pub write_units: f64,
}

/// The latest finished invocations, and what all of them come to.
#[derive(Debug, Default)]
pub struct CallHistory(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    latest: VecDeque<Finished>,
    totals: BTreeMap<String, Totals>,
}

impl CallHistory {
    pub(crate) fn add(&self, finished: Finished) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = kept.totals.entry(finished.function.clone()).or_default();
        totals.invocations += 1;
        for call in &finished.calls {
            totals.calls += 1;
            totals.read_units += call.read_units;
            totals.write_units += call.write_units;
        }
        if kept.latest.len() == KEPT {
            kept.latest.pop_back();
        }
        kept.latest.push_front(finished);
    }

    /// What a function has called so far.
    pub fn totals(&self, function: &str) -> Totals {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.totals.get(function).copied().unwrap_or_default()
    }

    /// Newest first.
    pub fn latest(&self, function: Option<&str>, limit: usize) -> Vec<Finished> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = kept.latest.iter().filter(|finished| function.is_none_or(|name| finished.function == name));
        wanted.take(limit).cloned().collect()
    }
}
