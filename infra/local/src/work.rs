//! The count of running invocations by queues, streams and schedules. `settle` waits for zero.
//!
//! Work moves between stores (stream to queue, queue to table) only during an invocation. An invocation is counted from
//! before it starts until its outcome is stored. So a reader that checks several stores in sequence misses nothing, as
//! long as no invocation ran before, between or after its reads.

use std::sync::Arc;

use tokio::sync::watch;

/// The number of running invocations, and an epoch that changes with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Number of running invocations.
    pub running: usize,
    /// Increases whenever an invocation begins or ends.
    pub epoch: u64,
}

/// Counts running invocations.
#[derive(Debug, Clone)]
pub struct Work(Arc<watch::Sender<Activity>>);

/// A guard that counts one invocation until it is dropped.
#[derive(Debug)]
pub struct Task(Arc<watch::Sender<Activity>>);

impl Default for Work {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Activity::default())))
    }
}

impl Work {
    /// Counts an invocation from now until the guard is dropped.
    #[must_use]
    pub fn begin(&self) -> Task {
        self.0.send_modify(|activity| {
            activity.running += 1;
            activity.epoch += 1;
        });
        Task(Arc::clone(&self.0))
    }

    /// Watches invocations begin and end.
    pub fn watch(&self) -> watch::Receiver<Activity> {
        self.0.subscribe()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.send_modify(|activity| {
            activity.running -= 1;
            activity.epoch += 1;
        });
    }
}
