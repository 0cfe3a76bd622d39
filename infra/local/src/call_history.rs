//! The calls of the latest finished invocations, for `GET /_local/calls`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// The latest finished invocations.
#[derive(Debug, Default)]
pub struct CallHistory(Mutex<VecDeque<Finished>>);

impl CallHistory {
    pub(crate) fn add(&self, finished: Finished) {
        let mut latest = self.lock();
        if latest.len() == MAX_INVOCATIONS {
            latest.pop_back();
        }
        latest.push_front(finished);
    }

    /// Returns the latest invocations, newest first.
    pub fn latest(&self, function: Option<&str>, limit: usize) -> Vec<Finished> {
        let latest = self.lock();
        let wanted = latest.iter().filter(|finished| function.is_none_or(|name| finished.function == name));
        wanted.take(limit).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Finished>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
