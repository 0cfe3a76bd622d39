//! Messages of the sweep queue.

use serde::{Deserialize, Serialize};

/// An order to sweep one shard of the due index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardOrder {
    pub shard: u8,
}

impl ShardOrder {
    /// Parses the body of a message.
    pub fn read(body: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(body)
    }

    /// The body of the order's message.
    pub fn message(self) -> String {
        serde_json::to_string(&self).expect("an order converts to JSON")
    }
}
