//! The queue of shards that a sweep is to go through.

use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::queue::{Queue, QueueError};

/// A shard of the due index, to be gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardOrder {
    pub shard: u8,
}

impl ShardOrder {
    /// The order that a message's body holds.
    pub fn read(body: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(body)
    }
}

/// The queue itself.
#[derive(Clone)]
pub struct SweepQueue(Queue);

impl SweepQueue {
    /// The queue whose URL is in `SWEEP_QUEUE_URL`.
    pub fn new(env: &Environment) -> Result<Self, BoxError> {
        Queue::new(env, "SWEEP_QUEUE_URL").map(Self)
    }

    /// Orders one sweep of a shard.
    pub async fn send(&self, order: ShardOrder) -> Result<(), QueueError> {
        let body = serde_json::to_string(&order).expect("an order converts to JSON");
        self.0.send(body, 0).await
    }
}
