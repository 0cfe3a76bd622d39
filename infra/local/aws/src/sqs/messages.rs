//! Messages in SQLite. Times are milliseconds of stack time.
//!
//! A message is visible once `visible_at` is reached. `receipt` belongs to its latest receive. `in_mapping` is set
//! while an event-source mapping handles the message. `copied` is 1 on a message duplicated by a fault, and 2 on its
//! duplicate. Messages of FIFO queues have a `deduplication_id`; their `id` is their sequence number. `moved_from` is
//! the queue that moved a message to its dead-letter queue.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use uuid::Uuid;

use super::deduplication::{self, Deduplication};
use super::groups;
use super::queue::is_fifo;

pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, message_id TEXT NOT NULL, body TEXT NOT NULL,
        group_id TEXT, deduplication_id TEXT,
        sent_at INTEGER NOT NULL, visible_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, first_received_at INTEGER,
        receive_count INTEGER NOT NULL DEFAULT 0, receipt TEXT,
        in_mapping INTEGER NOT NULL DEFAULT 0, copied INTEGER NOT NULL DEFAULT 0, moved_from TEXT);
    CREATE INDEX IF NOT EXISTS messages_by_visibility ON messages(queue, visible_at);
    CREATE INDEX IF NOT EXISTS messages_by_group ON messages(queue, group_id);
    CREATE INDEX IF NOT EXISTS messages_received ON messages(queue, group_id, visible_at) WHERE receipt IS NOT NULL;
    CREATE INDEX IF NOT EXISTS messages_in_mapping ON messages(queue) WHERE in_mapping = 1;";

/// A message to be stored.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(super) queue: String,
    pub(super) message_id: String,
    pub(super) body: String,
    pub(super) group_id: Option<String>,
    /// Set on each message to a FIFO queue.
    pub(super) deduplication: Option<Deduplication>,
    pub(super) sent_at: i64,
    pub(super) visible_at: i64,
    pub(super) expires_at: i64,
}

/// A stored message, or the earlier message that a sent one duplicates.
#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    pub(super) message_id: String,
    /// `None` in a standard queue.
    pub(super) sequence: Option<i64>,
}

/// A receipt handle: the message's row and the receipt of one receive.
pub(super) struct ReceiptHandle {
    id: i64,
    receipt: String,
}

/// Number of messages of one queue by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) visible: i64,
    pub(super) not_visible: i64,
    pub(super) delayed: i64,
}

impl ReceiptHandle {
    pub(super) fn parse(handle: &str) -> Option<Self> {
        let (id, nonce) = handle.split_once('.')?;
        Uuid::try_parse(nonce).ok()?;
        Some(Self { id: id.parse().ok()?, receipt: handle.to_owned() })
    }
}

/// Inserts messages in the caller's transaction. A duplicate in a FIFO queue is not stored.
pub(crate) fn insert(transaction: &Transaction<'_>, messages: &[NewMessage]) -> rusqlite::Result<Vec<StoredMessage>> {
    messages.iter().map(|message| insert_one(transaction, message)).collect()
}

fn insert_one(transaction: &Transaction<'_>, message: &NewMessage) -> rusqlite::Result<StoredMessage> {
    if let Some(deduplication) = &message.deduplication
        && let Some((message_id, sequence)) =
            deduplication::find(transaction, &message.queue, deduplication, message.sent_at)?
    {
        return Ok(StoredMessage { message_id, sequence: Some(sequence) });
    }
    let id = transaction
        .prepare_cached(
            "INSERT INTO messages (queue, message_id, body, group_id, deduplication_id, sent_at, visible_at, expires_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .insert(params![
            message.queue,
            message.message_id,
            message.body,
            message.group_id,
            message.deduplication.as_ref().map(|deduplication| &deduplication.id),
            message.sent_at,
            message.visible_at,
            message.expires_at,
        ])?;
    let message_id = message.message_id.clone();
    let Some(deduplication) = &message.deduplication else { return Ok(StoredMessage { message_id, sequence: None }) };
    deduplication::remember(transaction, &message.queue, deduplication, (&message_id, id), message.sent_at)?;
    groups::add(transaction, &message.queue, message.group_id.as_deref(), message.sent_at)?;
    Ok(StoredMessage { message_id, sequence: Some(id) })
}

/// Deletes a message by the receipt of its latest receive. An older receipt deletes nothing. In a FIFO queue neither
/// does one whose message is visible again: the result is false for both.
pub(super) fn delete(
    transaction: &Transaction<'_>,
    queue: &str,
    handle: &ReceiptHandle,
    now: i64,
) -> rusqlite::Result<bool> {
    if !is_fifo(queue) {
        transaction.prepare_cached("DELETE FROM messages WHERE id = ?1 AND queue = ?2 AND receipt = ?3")?.execute((
            handle.id,
            queue,
            &handle.receipt,
        ))?;
        return Ok(true);
    }
    let found = transaction
        .prepare_cached(
            "SELECT group_id, copied, receipt IS ?3 AND visible_at > ?4 FROM messages WHERE id = ?1 AND queue = ?2",
        )?
        .query_row((handle.id, queue, &handle.receipt, now), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    // A message that is already deleted is deleted successfully.
    let Some((group_id, copied, in_flight)): Option<(String, i64, bool)> = found else { return Ok(true) };
    if !in_flight {
        return Ok(false);
    }
    if copied == 1 {
        // The duplicate arrives as if this deletion had been lost.
        transaction
            .prepare_cached(
                "UPDATE messages SET visible_at = ?2, receipt = NULL, receive_count = receive_count - 1, \
                 in_mapping = 0, copied = 2 WHERE id = ?1",
            )?
            .execute((handle.id, now))?;
    } else {
        transaction.prepare_cached("DELETE FROM messages WHERE id = ?1")?.execute([handle.id])?;
    }
    groups::refresh(transaction, queue, Some(&group_id), now)?;
    Ok(true)
}

/// Releases a failed message from its event-source mapping. It becomes visible by its visibility time-out.
pub(super) fn release(connection: &Connection, queue: &str, handle: &ReceiptHandle) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE messages SET in_mapping = 0 WHERE id = ?1 AND queue = ?2 AND receipt = ?3")?
        .execute((handle.id, queue, &handle.receipt))?;
    Ok(())
}

/// Changes the visibility time-out of a message in flight. Returns false when it is not in flight.
pub(super) fn change_visibility(
    transaction: &Transaction<'_>,
    queue: &str,
    handle: &ReceiptHandle,
    now: i64,
    visible_at: i64,
) -> rusqlite::Result<bool> {
    let changed: Option<Option<String>> = transaction
        .prepare_cached(
            "UPDATE messages SET visible_at = ?5, in_mapping = 0 \
             WHERE id = ?1 AND queue = ?2 AND receipt = ?3 AND visible_at > ?4 RETURNING group_id",
        )?
        .query_row((handle.id, queue, &handle.receipt, now, visible_at), |row| row.get(0))
        .optional()?;
    let Some(group_id) = changed else { return Ok(false) };
    groups::refresh(transaction, queue, group_id.as_deref(), now)?;
    Ok(true)
}

/// Deletes all messages of a queue.
pub(super) fn purge(transaction: &Transaction<'_>, queue: &str) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM messages WHERE queue = ?1", [queue])?;
    groups::purge(transaction, queue)
}

/// Recovers after a start: messages in flight in an earlier run's mappings become visible, expired ones are deleted.
pub(super) fn recover(transaction: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    add_moved_from(transaction)?;
    transaction.execute("UPDATE messages SET in_mapping = 0, visible_at = ?1 WHERE in_mapping = 1", [now])?;
    transaction.execute("DELETE FROM messages WHERE expires_at <= ?1", [now])?;
    groups::refresh_all(transaction, now)
}

/// Adds the column `moved_from` to a file of an earlier program, which lacks it.
fn add_moved_from(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    const HAS_COLUMN: &str = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('messages') WHERE name = 'moved_from')";
    if !transaction.query_row(HAS_COLUMN, [], |row| row.get::<_, bool>(0))? {
        transaction.execute("ALTER TABLE messages ADD COLUMN moved_from TEXT", [])?;
    }
    Ok(())
}

/// Counts the messages by state. Visible messages of a locked group count as visible, as in SQS.
pub(super) fn counts(connection: &Connection, queue: &str, now: i64) -> rusqlite::Result<Counts> {
    connection
        .prepare_cached(
            "SELECT COALESCE(SUM(visible_at <= ?2), 0), COALESCE(SUM(visible_at > ?2 AND receipt IS NOT NULL), 0), \
             COALESCE(SUM(visible_at > ?2 AND receipt IS NULL), 0) FROM messages WHERE queue = ?1 AND expires_at > ?2",
        )?
        .query_row((queue, now), |row| {
            Ok(Counts { visible: row.get(0)?, not_visible: row.get(1)?, delayed: row.get(2)? })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_earlier_program_gets_the_column_that_it_lacks() {
        let mut connection = Connection::open_in_memory().unwrap();
        let earlier = SCHEMA.replace(", moved_from TEXT", "");
        assert_ne!(earlier, SCHEMA);
        connection.execute_batch(&[earlier.as_str(), groups::SCHEMA].concat()).unwrap();
        for _ in 0..2 {
            let transaction = connection.transaction().unwrap();
            recover(&transaction, 0).unwrap();
            transaction.prepare("SELECT moved_from FROM messages").unwrap();
            transaction.commit().unwrap();
        }
    }
}
