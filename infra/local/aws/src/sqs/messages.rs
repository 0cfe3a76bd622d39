//! Messages in SQLite. Times are milliseconds of stack time.
//!
//! A message is visible once `visible_at` is reached. `receipt` belongs to its latest receive. `in_mapping` is set
//! while an event-source mapping handles the message. `copied` is 1 on a message duplicated by a fault, and 2 on its
//! duplicate. Messages of FIFO queues have a `deduplication_id`; their `id` is their sequence number.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
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
        in_mapping INTEGER NOT NULL DEFAULT 0, copied INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX IF NOT EXISTS messages_by_visibility ON messages(queue, visible_at);
    CREATE INDEX IF NOT EXISTS messages_by_group ON messages(queue, group_id);
    CREATE INDEX IF NOT EXISTS messages_received ON messages(queue, group_id, visible_at) WHERE receipt IS NOT NULL;
    CREATE INDEX IF NOT EXISTS messages_in_mapping ON messages(queue) WHERE in_mapping = 1;";

/// The messages of a standard queue that can be received.
const AVAILABLE: &str = "FROM messages m WHERE m.queue = ?1 AND m.visible_at <= ?2 AND m.expires_at > ?2";
/// The messages of a FIFO queue that can be received. The cross join begins with the groups, so that the messages of
/// locked groups are not read.
const AVAILABLE_IN_GROUPS: &str = "FROM message_groups g CROSS JOIN messages m \
                                   ON m.queue = g.queue AND m.group_id = g.group_id \
                                   WHERE g.queue = ?1 AND g.available_at <= ?2 AND m.expires_at > ?2";

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

/// A received message.
#[derive(Debug, Clone)]
pub(super) struct ReceivedMessage {
    pub(super) id: i64,
    copied: i64,
    pub(super) message_id: String,
    pub(super) receipt: String,
    pub(super) body: String,
    pub(super) group_id: Option<String>,
    pub(super) deduplication_id: Option<String>,
    pub(super) sent_at: i64,
    pub(super) first_received_at: i64,
    /// Number of receives, this one included.
    pub(super) receive_count: i64,
}

/// The parameters of one receive.
#[derive(Debug, Clone)]
pub(super) struct ReceiveRequest {
    pub(super) queue: String,
    pub(super) now: i64,
    pub(super) max: usize,
    pub(super) visible_at: i64,
    pub(super) dead_letters: Option<DeadLetterQueue>,
    pub(super) for_mapping: bool,
    /// Duplicates each message, for the fault `duplicate_messages`.
    pub(super) duplicate: bool,
}

/// The queue to which a message moves after too many receives.
#[derive(Debug, Clone)]
pub(super) struct DeadLetterQueue {
    pub(super) queue: String,
    pub(super) max_receives: i64,
    pub(super) retention_ms: i64,
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

impl ReceivedMessage {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let first_received_at: Option<i64> = row.get("first_received_at")?;
        Ok(Self {
            id: row.get("id")?,
            copied: row.get("copied")?,
            message_id: row.get("message_id")?,
            receipt: String::new(),
            body: row.get("body")?,
            group_id: row.get("group_id")?,
            deduplication_id: row.get("deduplication_id")?,
            sent_at: row.get("sent_at")?,
            first_received_at: first_received_at.unwrap_or_default(),
            receive_count: row.get("receive_count")?,
        })
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

/// Receives visible messages: the longest visible first, or from the groups that have waited longest, as many of one
/// group as possible. Messages with too many receives move to the dead-letter queue; their number is returned too.
pub(super) fn receive(
    connection: &mut Connection,
    receive: &ReceiveRequest,
) -> rusqlite::Result<(Vec<ReceivedMessage>, usize)> {
    let transaction = connection.transaction()?;
    let mut dead_lettered = 0;
    let page = if is_fifo(&receive.queue) {
        format!("SELECT m.* {AVAILABLE_IN_GROUPS} ORDER BY g.available_at, g.id, m.id LIMIT ?3")
    } else {
        format!("SELECT m.* {AVAILABLE} ORDER BY m.visible_at, m.id LIMIT ?3")
    };
    let received = loop {
        let page: Vec<ReceivedMessage> = transaction
            .prepare_cached(&page)?
            .query_map((&receive.queue, receive.now, receive.max as i64), ReceivedMessage::from_row)?
            .collect::<rusqlite::Result<_>>()?;
        let found = page.len();
        let mut alive = Vec::with_capacity(found);
        for message in page {
            match &receive.dead_letters {
                Some(dead) if message.receive_count >= dead.max_receives => {
                    move_to_dead_letters(&transaction, &message, dead, receive)?;
                    dead_lettered += 1;
                }
                _ => alive.push(message),
            }
        }
        if found == 0 || !alive.is_empty() {
            break alive;
        }
    };
    let received = received
        .into_iter()
        .map(|message| mark_received(&transaction, message, receive))
        .collect::<rusqlite::Result<Vec<_>>>()?;
    transaction.commit()?;
    Ok((received, dead_lettered))
}

/// Moves a message to the dead-letter queue. A duplicate is deleted, so that one message makes one dead letter.
fn move_to_dead_letters(
    transaction: &Transaction<'_>,
    message: &ReceivedMessage,
    dead: &DeadLetterQueue,
    receive: &ReceiveRequest,
) -> rusqlite::Result<()> {
    if message.copied == 2 {
        transaction.prepare_cached("DELETE FROM messages WHERE id = ?1")?.execute([message.id])?;
    } else {
        transaction
            .prepare_cached(
                "UPDATE messages SET queue = ?2, visible_at = ?3, expires_at = sent_at + ?4, receipt = NULL, \
                 in_mapping = 0, copied = 0 WHERE id = ?1",
            )?
            .execute((message.id, &dead.queue, receive.now, dead.retention_ms))?;
        groups::add(transaction, &dead.queue, message.group_id.as_deref(), receive.now)?;
    }
    groups::refresh(transaction, &receive.queue, message.group_id.as_deref(), receive.now)
}

fn mark_received(
    transaction: &Transaction<'_>,
    mut message: ReceivedMessage,
    receive: &ReceiveRequest,
) -> rusqlite::Result<ReceivedMessage> {
    if receive.duplicate && message.copied == 0 {
        // A duplicate in a FIFO queue arises later, in `delete`.
        if !is_fifo(&receive.queue) {
            insert_copy(transaction, &message, receive.now)?;
        }
        message.copied = 1;
    }
    message.receipt = format!("{}.{}", message.id, Uuid::new_v4().simple());
    message.receive_count += 1;
    if message.first_received_at == 0 {
        message.first_received_at = receive.now;
    }
    transaction
        .prepare_cached(
            "UPDATE messages SET receipt = ?2, receive_count = ?3, first_received_at = ?4, visible_at = ?5, \
             in_mapping = ?6, copied = ?7 WHERE id = ?1",
        )?
        .execute((
            message.id,
            &message.receipt,
            message.receive_count,
            message.first_received_at,
            receive.visible_at,
            receive.for_mapping,
            message.copied,
        ))?;
    groups::refresh(transaction, &receive.queue, message.group_id.as_deref(), receive.now)?;
    Ok(message)
}

/// Inserts the visible duplicate of a message.
fn insert_copy(transaction: &Transaction<'_>, message: &ReceivedMessage, now: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO messages (queue, message_id, body, group_id, sent_at, visible_at, expires_at, \
             first_received_at, receive_count, copied) \
             SELECT queue, message_id, body, group_id, sent_at, ?2, expires_at, first_received_at, receive_count, 2 \
             FROM messages WHERE id = ?1",
        )?
        .execute((message.id, now))?;
    Ok(())
}

/// Deletes a message by the receipt of its latest receive. Returns false when the receipt has expired: an older receipt
/// deletes nothing, and in a FIFO queue neither does one whose message is visible again.
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
pub(super) fn purge(connection: &mut Connection, queue: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute("DELETE FROM messages WHERE queue = ?1", [queue])?;
    groups::purge(&transaction, queue)?;
    transaction.commit()
}

/// Recovers after a start: messages in flight in an earlier run's mappings become visible, expired ones are deleted.
pub(super) fn recover(connection: &mut Connection, now: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute("UPDATE messages SET in_mapping = 0, visible_at = ?1 WHERE in_mapping = 1", [now])?;
    transaction.execute("DELETE FROM messages WHERE expires_at <= ?1", [now])?;
    groups::refresh_all(&transaction, now)?;
    transaction.commit()
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

/// Returns true if a message can be received, or is in flight in an event-source mapping.
pub(super) fn is_busy(connection: &Connection, queue: &str, now: i64) -> rusqlite::Result<bool> {
    let available = if is_fifo(queue) { AVAILABLE_IN_GROUPS } else { AVAILABLE };
    connection
        .prepare_cached(&format!(
            "SELECT EXISTS (SELECT 1 FROM messages WHERE queue = ?1 AND in_mapping = 1) \
             OR EXISTS (SELECT 1 {available})"
        ))?
        .query_row((queue, now), |row| row.get(0))
}

/// Returns the time at which the next message or group can be received.
pub(super) fn next_available(connection: &Connection, queue: &str, now: i64) -> rusqlite::Result<Option<i64>> {
    if is_fifo(queue) {
        return groups::next_available(connection, queue, now);
    }
    connection
        .prepare_cached(
            "SELECT visible_at FROM messages WHERE queue = ?1 AND visible_at > ?2 AND in_mapping = 0 \
             AND expires_at > visible_at ORDER BY visible_at LIMIT 1",
        )?
        .query_row((queue, now), |row| row.get(0))
        .optional()
}
