//! Entries of the due index: their shards, and the marks that make a client or coach due.

use domain::time::Timestamp;

/// Partitions of the `due` index. Each takes 1,000 writes a second. Four shards carry some 2,000 facts a second that
/// make clients due.
pub const SHARDS: u8 = 4;

/// A mark that makes a client, or all clients of a coach, due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueMark {
    pub(crate) now: Timestamp,
    /// The next evaluation emits nothing.
    pub(crate) silent: bool,
}

pub(super) fn shard_of(pk: &str) -> String {
    let sum: u32 = pk.bytes().map(u32::from).sum();
    (sum % u32::from(SHARDS)).to_string()
}
