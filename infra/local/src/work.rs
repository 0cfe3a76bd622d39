//! What functions are doing about events: queues, streams, schedules. `settle` reads it to know when nothing is going on.
//!
//! Work moves from one place to another (stream to queue, queue to table) only while a function handles an event, and such an
//! invocation is counted here from before it begins until its outcome is stored. Whoever looks at several places one after the
//! other has therefore seen everything if nothing ran before, between and after.

use std::sync::Arc;

use tokio::sync::watch;

/// Invocations by events, now and so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// How many are running.
    pub running: usize,
    /// Goes up whenever one begins or ends.
    pub epoch: u64,
}

/// Counts invocations.
#[derive(Debug, Clone)]
pub struct Work(Arc<watch::Sender<Activity>>);

/// One invocation, until this is dropped.
#[derive(Debug)]
pub struct Task(Arc<watch::Sender<Activity>>);

impl Default for Work {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Activity::default())))
    }
}

impl Work {
    /// An invocation begins.
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
