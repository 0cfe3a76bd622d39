//! Messages in SQLite. Times are milliseconds of stack time.
//!
//! A message is visible when `visible_at` has come. `receipt` is that of its latest receive; `in_mapping` says that an
//! event-source mapping is at work on it. `copied` is 1 on a message that has been delivered twice on demand, 2 on its copy.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde_json::{Map, Value};
use uuid::Uuid;

pub(crate) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS queues (name TEXT PRIMARY KEY, settings TEXT NOT NULL, created_at INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, message_id TEXT NOT NULL, body TEXT NOT NULL,
        attributes TEXT, trace_header TEXT, group_id TEXT, source_arn TEXT,
        sent_at INTEGER NOT NULL, visible_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, first_received_at INTEGER,
        receive_count INTEGER NOT NULL DEFAULT 0, receipt TEXT,
        in_mapping INTEGER NOT NULL DEFAULT 0, copied INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX IF NOT EXISTS messages_by_visibility ON messages(queue, visible_at);
    CREATE INDEX IF NOT EXISTS messages_in_mapping ON messages(queue) WHERE in_mapping = 1;";

/// A message to be stored.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(super) queue: String,
    pub(super) message_id: String,
    pub(super) body: String,
    pub(super) attributes: Map<String, Value>,
    pub(super) trace_header: Option<String>,
    pub(super) group_id: Option<String>,
    pub(super) sent_at: i64,
    pub(super) visible_at: i64,
    pub(super) expires_at: i64,
}

/// A message that somebody receives.
#[derive(Debug, Clone)]
pub(super) struct Received {
    id: i64,
    copied: i64,
    pub(super) message_id: String,
    pub(super) receipt: String,
    pub(super) body: String,
    pub(super) attributes: Map<String, Value>,
    pub(super) trace_header: Option<String>,
    pub(super) group_id: Option<String>,
    pub(super) source_arn: Option<String>,
    pub(super) sent_at: i64,
    pub(super) first_received_at: i64,
    /// This receive counted in.
    pub(super) receive_count: i64,
}

/// One receive.
#[derive(Debug, Clone)]
pub(super) struct Receive {
    pub(super) queue: String,
    pub(super) queue_arn: String,
    pub(super) now: i64,
    pub(super) max: usize,
    pub(super) visible_at: i64,
    pub(super) dead_letters: Option<DeadLetters>,
    pub(super) for_mapping: bool,
    /// Each message is to arrive once more.
    pub(super) duplicate: bool,
}

/// Where messages go instead of being received once too often.
#[derive(Debug, Clone)]
pub(super) struct DeadLetters {
    pub(super) queue: String,
    pub(super) max_receives: i64,
    pub(super) retention_ms: i64,
}

/// A receipt handle: the row and the receive.
pub(super) struct Handle {
    id: i64,
    receipt: String,
}

/// Messages of one queue by what they wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) visible: i64,
    pub(super) not_visible: i64,
    pub(super) delayed: i64,
}

impl Handle {
    pub(super) fn parse(handle: &str) -> Option<Self> {
        let (id, nonce) = handle.split_once('.')?;
        Uuid::try_parse(nonce).ok()?;
        Some(Self { id: id.parse().ok()?, receipt: handle.to_owned() })
    }
}

impl Received {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let attributes: Option<String> = row.get("attributes")?;
        let first_received_at: Option<i64> = row.get("first_received_at")?;
        Ok(Self {
            id: row.get("id")?,
            copied: row.get("copied")?,
            message_id: row.get("message_id")?,
            receipt: String::new(),
            body: row.get("body")?,
            attributes: attributes.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
            trace_header: row.get("trace_header")?,
            group_id: row.get("group_id")?,
            source_arn: row.get("source_arn")?,
            sent_at: row.get("sent_at")?,
            first_received_at: first_received_at.unwrap_or_default(),
            receive_count: row.get("receive_count")?,
        })
    }
}

/// Stores messages, all or none.
pub(crate) fn insert(transaction: &Transaction<'_>, messages: &[NewMessage]) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO messages (queue, message_id, body, attributes, trace_header, group_id, sent_at, visible_at, expires_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for message in messages {
        let attributes = (!message.attributes.is_empty()).then(|| Value::from(message.attributes.clone()).to_string());
        statement.execute(params![
            message.queue,
            message.message_id,
            message.body,
            attributes,
            message.trace_header,
            message.group_id,
            message.sent_at,
            message.visible_at,
            message.expires_at,
        ])?;
    }
    Ok(())
}

/// Hands out visible messages, the longest visible first. Those received too often go to the dead letters instead; how many.
pub(super) fn receive(connection: &mut Connection, receive: &Receive) -> rusqlite::Result<(Vec<Received>, usize)> {
    let transaction = connection.transaction()?;
    let mut buried = 0;
    let received = loop {
        let page: Vec<Received> = transaction
            .prepare_cached(
                "SELECT * FROM messages WHERE queue = ?1 AND visible_at <= ?2 AND expires_at > ?2 \
                 ORDER BY visible_at, id LIMIT ?3",
            )?
            .query_map((&receive.queue, receive.now, receive.max as i64), Received::from_row)?
            .collect::<rusqlite::Result<_>>()?;
        let found = page.len();
        let mut alive = Vec::with_capacity(found);
        for message in page {
            match &receive.dead_letters {
                Some(dead) if message.receive_count >= dead.max_receives => {
                    bury(&transaction, &message, dead, receive)?;
                    buried += 1;
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
        .map(|message| hand_out(&transaction, message, receive))
        .collect::<rusqlite::Result<Vec<_>>>()?;
    transaction.commit()?;
    Ok((received, buried))
}

/// A copy that was made on demand dies alone: one message makes one dead letter.
fn bury(transaction: &Transaction<'_>, message: &Received, dead: &DeadLetters, from: &Receive) -> rusqlite::Result<()> {
    if message.copied == 2 {
        transaction.prepare_cached("DELETE FROM messages WHERE id = ?1")?.execute([message.id])?;
    } else {
        transaction
            .prepare_cached(
                "UPDATE messages SET queue = ?2, source_arn = ?3, visible_at = ?4, expires_at = sent_at + ?5, \
                 receipt = NULL, in_mapping = 0, copied = 0 WHERE id = ?1",
            )?
            .execute((message.id, &dead.queue, &from.queue_arn, from.now, dead.retention_ms))?;
    }
    Ok(())
}

fn hand_out(transaction: &Transaction<'_>, mut message: Received, receive: &Receive) -> rusqlite::Result<Received> {
    if receive.duplicate && message.copied == 0 {
        transaction
            .prepare_cached(
                "INSERT INTO messages (queue, message_id, body, attributes, trace_header, group_id, source_arn, sent_at, \
                 visible_at, expires_at, first_received_at, receive_count, copied) \
                 SELECT queue, message_id, body, attributes, trace_header, group_id, source_arn, sent_at, \
                 ?2, expires_at, first_received_at, receive_count, 2 FROM messages WHERE id = ?1",
            )?
            .execute((message.id, receive.now))?;
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
    Ok(message)
}

/// Deletes a message by the receipt of its latest receive; an older receipt deletes nothing.
pub(super) fn delete(connection: &Connection, queue: &str, handle: &Handle) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM messages WHERE id = ?1 AND queue = ?2 AND receipt = ?3")?.execute((
        handle.id,
        queue,
        &handle.receipt,
    ))?;
    Ok(())
}

/// An event-source mapping is done with a message and leaves it to its visibility time-out.
pub(super) fn let_go(connection: &Connection, queue: &str, handle: &Handle) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE messages SET in_mapping = 0 WHERE id = ?1 AND queue = ?2 AND receipt = ?3")?
        .execute((handle.id, queue, &handle.receipt))?;
    Ok(())
}

/// Makes a message in flight visible at another time. False when it is not in flight.
pub(super) fn change_visibility(
    connection: &Connection,
    queue: &str,
    handle: &Handle,
    now: i64,
    visible_at: i64,
) -> rusqlite::Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE messages SET visible_at = ?5, in_mapping = 0 \
             WHERE id = ?1 AND queue = ?2 AND receipt = ?3 AND visible_at > ?4",
        )?
        .execute((handle.id, queue, &handle.receipt, now, visible_at))?;
    Ok(changed > 0)
}

/// Deletes all messages of a queue.
pub(super) fn purge(connection: &Connection, queue: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM messages WHERE queue = ?1", [queue])?;
    Ok(())
}

/// After a start: what an earlier run's mappings were working on is visible again, what has expired is gone.
pub(super) fn recover(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    connection.execute("UPDATE messages SET in_mapping = 0, visible_at = ?1 WHERE in_mapping = 1", [now])?;
    connection.execute("DELETE FROM messages WHERE expires_at <= ?1", [now])?;
    Ok(())
}

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

/// Whether a message is visible, or in the hands of an event-source mapping.
pub(super) fn is_busy(connection: &Connection, queue: &str, now: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM messages WHERE queue = ?1 AND in_mapping = 1) \
             OR EXISTS (SELECT 1 FROM messages WHERE queue = ?1 AND visible_at <= ?2 AND expires_at > ?2)",
        )?
        .query_row((queue, now), |row| row.get(0))
}

/// When the next message becomes visible by itself.
pub(super) fn next_visible(connection: &Connection, queue: &str, now: i64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT visible_at FROM messages WHERE queue = ?1 AND visible_at > ?2 AND in_mapping = 0 \
             AND expires_at > visible_at ORDER BY visible_at LIMIT 1",
        )?
        .query_row((queue, now), |row| row.get(0))
        .optional()
}
