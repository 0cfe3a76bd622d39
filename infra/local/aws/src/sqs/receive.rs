//! Receiving messages from SQLite, and the messages that can be received.

use rusqlite::{Connection, OptionalExtension, Row, Transaction};
use uuid::Uuid;

use super::groups;
use super::queue::is_fifo;

/// The messages of a standard queue that can be received.
const AVAILABLE: &str = "FROM messages m WHERE m.queue = ?1 AND m.visible_at <= ?2 AND m.expires_at > ?2";
/// The messages of a FIFO queue that can be received. The cross join begins with the groups, so that the messages of
/// locked groups are not read.
const AVAILABLE_IN_GROUPS: &str = "FROM message_groups g CROSS JOIN messages m \
                                   ON m.queue = g.queue AND m.group_id = g.group_id \
                                   WHERE g.queue = ?1 AND g.available_at <= ?2 AND m.expires_at > ?2";

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
    /// The queue that moved the message to its dead-letter queue.
    pub(super) moved_from: Option<String>,
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
            moved_from: row.get("moved_from")?,
        })
    }
}

/// Receives visible messages: the longest visible first, or from the groups that have waited longest, as many of one
/// group as possible. Messages with too many receives move to the dead-letter queue; their number is returned too.
pub(super) fn receive(
    transaction: &Transaction<'_>,
    receive: &ReceiveRequest,
) -> rusqlite::Result<(Vec<ReceivedMessage>, usize)> {
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
                    move_to_dead_letters(transaction, &message, dead, receive)?;
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
        .map(|message| mark_received(transaction, message, receive))
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok((received, dead_lettered))
}

/// Moves a message to the dead-letter queue. A duplicate in a standard queue is deleted, so that one message makes one
/// dead letter.
fn move_to_dead_letters(
    transaction: &Transaction<'_>,
    message: &ReceivedMessage,
    dead: &DeadLetterQueue,
    receive: &ReceiveRequest,
) -> rusqlite::Result<()> {
    let fifo = is_fifo(&receive.queue);
    if message.copied == 2 && !fifo {
        transaction.prepare_cached("DELETE FROM messages WHERE id = ?1")?.execute([message.id])?;
    } else {
        // The retention begins anew in a FIFO dead-letter queue only.
        let retained_from = if fifo { receive.now } else { message.sent_at };
        transaction
            .prepare_cached(
                "UPDATE messages SET queue = ?2, visible_at = ?3, expires_at = ?4, receipt = NULL, in_mapping = 0, \
                 copied = 0, moved_from = ?5 WHERE id = ?1",
            )?
            .execute((message.id, &dead.queue, receive.now, retained_from + dead.retention_ms, &receive.queue))?;
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
        // A duplicate in a FIFO queue arises later, in `messages::delete`.
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
