//! Deduplication of messages to FIFO queues in SQLite. A record outlives its message.

use rusqlite::{OptionalExtension, Transaction};

pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS deduplications (
        queue TEXT NOT NULL, scope TEXT NOT NULL, deduplication_id TEXT NOT NULL, message_id TEXT NOT NULL,
        sequence INTEGER NOT NULL, expires_at INTEGER NOT NULL,
        PRIMARY KEY (queue, scope, deduplication_id)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS deduplications_by_expiry ON deduplications(expires_at);";

/// The deduplication interval of SQS.
const INTERVAL_MS: i64 = 5 * 60 * 1_000;

/// Identifies the duplicates of a message.
#[derive(Debug, Clone)]
pub(super) struct Deduplication {
    pub(super) id: String,
    /// The message group, or empty if the id counts for the whole queue.
    pub(super) scope: String,
}

/// Returns the message id and the sequence number of the message that was sent under the same id.
pub(super) fn find(
    transaction: &Transaction<'_>,
    queue: &str,
    deduplication: &Deduplication,
    now: i64,
) -> rusqlite::Result<Option<(String, i64)>> {
    transaction.prepare_cached("DELETE FROM deduplications WHERE expires_at <= ?1")?.execute([now])?;
    transaction
        .prepare_cached(
            "SELECT message_id, sequence FROM deduplications WHERE queue = ?1 AND scope = ?2 AND deduplication_id = ?3",
        )?
        .query_row((queue, &deduplication.scope, &deduplication.id), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Records a stored message under its deduplication id.
pub(super) fn remember(
    transaction: &Transaction<'_>,
    queue: &str,
    deduplication: &Deduplication,
    (message_id, sequence): (&str, i64),
    now: i64,
) -> rusqlite::Result<()> {
    transaction.prepare_cached("INSERT INTO deduplications VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute((
        queue,
        &deduplication.scope,
        &deduplication.id,
        message_id,
        sequence,
        now + INTERVAL_MS,
    ))?;
    Ok(())
}
