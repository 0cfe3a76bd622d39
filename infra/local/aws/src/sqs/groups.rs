//! Message groups of FIFO queues in SQLite.
//!
//! A group is locked while one of its messages is in flight. `available_at` is the time at which the last of them
//! becomes visible again. In an unlocked group it is the time since which the group waits to be received.
//! Standard queues have no groups here: nothing is locked in them.

use rusqlite::{Connection, Transaction};

use super::queue::is_fifo;

pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS message_groups (
        id INTEGER PRIMARY KEY, queue TEXT NOT NULL, group_id TEXT NOT NULL, available_at INTEGER NOT NULL,
        UNIQUE (queue, group_id));
    CREATE INDEX IF NOT EXISTS message_groups_by_availability ON message_groups(queue, available_at);";

/// Adds the group of a new message. A group with messages keeps its lock and its place.
pub(super) fn add(
    transaction: &Transaction<'_>,
    queue: &str,
    group_id: Option<&str>,
    now: i64,
) -> rusqlite::Result<()> {
    if is_fifo(queue) {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO message_groups (queue, group_id, available_at) VALUES (?1, ?2, ?3)")?
            .execute((queue, group_id, now))?;
    }
    Ok(())
}

/// Locks or unlocks a group after one of its messages was received, changed or removed.
pub(super) fn refresh(
    transaction: &Transaction<'_>,
    queue: &str,
    group_id: Option<&str>,
    now: i64,
) -> rusqlite::Result<()> {
    if is_fifo(queue) {
        transaction
            .prepare_cached(
                "UPDATE message_groups SET available_at = MAX(MIN(available_at, ?3), COALESCE(( \
                 SELECT MAX(visible_at) FROM messages WHERE queue = ?1 AND group_id = ?2 AND receipt IS NOT NULL), 0)) \
                 WHERE queue = ?1 AND group_id = ?2",
            )?
            .execute((queue, group_id, now))?;
        transaction
            .prepare_cached(
                "DELETE FROM message_groups WHERE queue = ?1 AND group_id = ?2 \
                 AND NOT EXISTS (SELECT 1 FROM messages WHERE queue = ?1 AND group_id = ?2)",
            )?
            .execute((queue, group_id))?;
    }
    Ok(())
}

/// Refreshes the groups of all queues.
pub(super) fn refresh_all(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    let groups: Vec<(String, String)> = transaction
        .prepare("SELECT queue, group_id FROM message_groups")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    groups.iter().try_for_each(|(queue, group_id)| refresh(transaction, queue, Some(group_id), now))
}

/// Deletes the groups of a queue without messages.
pub(super) fn purge(transaction: &Transaction<'_>, queue: &str) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM message_groups WHERE queue = ?1", [queue])?;
    Ok(())
}

/// Returns the time at which the next group is unlocked.
pub(super) fn next_available(connection: &Connection, queue: &str, now: i64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT MIN(available_at) FROM message_groups WHERE queue = ?1 AND available_at > ?2")?
        .query_row((queue, now), |row| row.get(0))
}
