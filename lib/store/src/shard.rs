//! Shards of the sparse indexes that a schedule reads: the `due` index of watches, the `unsent` index of the outbox.

/// Shards of an index. Each takes 1,000 writes a second: four carry some 2,000 facts a second that make clients due.
pub const SHARDS: u8 = 4;

/// The shard of a key.
pub(crate) fn shard_of(key: &str) -> String {
    let sum: u32 = key.bytes().map(u32::from).sum();
    (sum % u32::from(SHARDS)).to_string()
}
