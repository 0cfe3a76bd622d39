//! The parts of a running stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::advance::Timeline;
use crate::call_history::CallHistory;
use crate::gateway::Gateway;
use crate::receiver::Receiver;
use crate::state_dir::StateDir;

/// The parts of a running stack.
pub struct Stack {
    /// Time, queues, schedules.
    pub timeline: Timeline,
    /// The HTTP API.
    pub gateway: Gateway,
    /// The demo receiver.
    pub receiver: Arc<Receiver>,
    /// The calls of finished invocations.
    pub history: Arc<CallHistory>,
    /// The address of the API, such as `http://127.0.0.1:8080`.
    pub base_url: String,
    /// The address of the AWS endpoint, such as `http://127.0.0.1:4566`.
    pub aws_url: String,
    /// The stack's own files in the data directory.
    pub state: StateDir,
    pub(crate) ready: AtomicBool,
}

impl Stack {
    /// Marks the stack as started.
    pub(crate) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Returns true once the stack has started completely.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }
}
