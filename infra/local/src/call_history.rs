//! The calls of the latest finished invocations, for `GET /_local/calls`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use local_aws::Call;
use serde::Serialize;

/// Number of invocations that are kept.
const MAX_INVOCATIONS: usize = 500;

/// A finished invocation.
#[derive(Debug, Clone, Serialize)]
pub struct Finished {
    /// API Gateway's request id, or the invocation's id when no request caused it.
    pub request_id: String,
    /// The function.
    pub function: String,
    /// The route, queue, stream or schedule that caused it.
    pub route: String,
    /// Stack time of the invocation's start, in microseconds since 1970.
    pub started_us: i64,
    /// The invocation's calls, in the order of their responses.
    pub calls: Vec<Call>,
}

/// Sums over all invocations of a function since the stack was started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Number of finished invocations.
    pub invocations: u64,
    /// Number of calls to AWS.
    pub calls: u64,
    /// Consumed read capacity units.
    pub read_units: f64,
    /// Consumed write capacity units.
    pub write_units: f64,
}

/// The latest finished invocations, and the totals of all invocations.
#[derive(Debug, Default)]
pub struct CallHistory(Mutex<HistoryState>);

#[derive(Debug, Default)]
struct HistoryState {
    latest: VecDeque<Finished>,
    totals: BTreeMap<String, Totals>,
}

impl CallHistory {
    pub(crate) fn add(&self, finished: Finished) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = state.totals.entry(finished.function.clone()).or_default();
        totals.invocations += 1;
        for call in &finished.calls {
            totals.calls += 1;
            totals.read_units += call.read_units;
            totals.write_units += call.write_units;
        }
        if state.latest.len() == MAX_INVOCATIONS {
            state.latest.pop_back();
        }
        state.latest.push_front(finished);
    }

    /// Returns the totals of a function so far.
    pub fn totals(&self, function: &str) -> Totals {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.totals.get(function).copied().unwrap_or_default()
    }

    /// Returns the latest invocations, newest first.
    pub fn latest(&self, function: Option<&str>, limit: usize) -> Vec<Finished> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = state.latest.iter().filter(|finished| function.is_none_or(|name| finished.function == name));
        wanted.take(limit).cloned().collect()
    }
}
