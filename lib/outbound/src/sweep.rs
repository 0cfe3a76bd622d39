//! The messages of the queue of shards that a sweep is to go through.

use serde::{Deserialize, Serialize};

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

    /// The body of the order's message.
    pub fn message(self) -> String {
        serde_json::to_string(&self).expect("an order converts to JSON")
    }
}
