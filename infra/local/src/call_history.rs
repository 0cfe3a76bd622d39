//! What the latest finished invocations called, for `GET /_local/calls`.

use std::collections::VecDeque;
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

/// The latest finished invocations.
#[derive(Debug, Default)]
pub struct CallHistory(Mutex<VecDeque<Finished>>);

impl CallHistory {
    pub(crate) fn add(&self, finished: Finished) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_back();
        }
        kept.push_front(finished);
    }

    /// Newest first.
    pub fn latest(&self, function: Option<&str>, limit: usize) -> Vec<Finished> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = kept.iter().filter(|finished| function.is_none_or(|name| finished.function == name));
        wanted.take(limit).cloned().collect()
    }
}
