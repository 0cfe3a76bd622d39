//! SQS: delays, visibility time-outs, redrive, retention, batches, message groups and deduplication on stack time,
//! durable in SQLite.
//!
//! The queues are those of the template. Dead-letter queues have no function that consumes them, so they count neither
//! as busy nor as due.
//!
//! No permissively licensed crate had durability, a movable clock, delays and redrive together.

mod deduplication;
mod groups;
mod messages;
mod operations;
mod queue;
mod receive;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use chrono::{DateTime, Utc};
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::account::{ACCOUNT, REGION, arn};
use crate::changes::Changes;
use crate::error::{SetupError, StoreError};
use crate::faults::Faults;
use crate::sqlite::Sqlite;
use crate::time::{StackTime, from_ms};

pub(crate) use messages::{NewMessage, insert};

use messages::{ReceiptHandle, StoredMessage};
use queue::{Settings, is_fifo};
use receive::{DeadLetterQueue, ReceiveRequest, ReceivedMessage};

/// The `SenderId` of all messages.
const SENDER: &str = ACCOUNT;

/// SQS.
#[derive(Clone)]
pub struct Sqs(Arc<SqsState>);

struct SqsState {
    sqlite: Sqlite,
    time: StackTime,
    faults: Arc<Faults>,
    changes: Changes,
    port: AtomicU16,
    queues: RwLock<BTreeMap<String, Settings>>,
}

impl Sqs {
    pub(crate) async fn open(
        sqlite: Sqlite,
        time: StackTime,
        faults: Arc<Faults>,
        changes: Changes,
    ) -> Result<Self, StoreError> {
        let now = time.now_ms();
        sqlite.run_transaction(|transaction| messages::recover(transaction, now)).await?;
        let queues = RwLock::default();
        let state = SqsState { sqlite, time, faults, changes, port: AtomicU16::new(0), queues };
        Ok(Self(Arc::new(state)))
    }

    /// Sets the endpoint's port, which queue URLs contain.
    pub fn set_port(&self, port: u16) {
        self.0.port.store(port, Ordering::Relaxed);
    }

    /// Adds a queue from the resolved `Properties` of an `AWS::SQS::Queue`.
    pub fn add_queue(&self, properties: &Value) -> Result<(), SetupError> {
        let name = properties["QueueName"]
            .as_str()
            .ok_or_else(|| SetupError::new("a queue of the template has no QueueName"))?;
        let settings =
            Settings::parse(name, properties).map_err(|reason| SetupError::new(format!("queue {name}: {reason}")))?;
        self.0.queues.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), settings);
        Ok(())
    }

    /// Returns the ARN of a queue.
    pub fn arn(&self, queue: &str) -> String {
        format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}")
    }

    /// Returns the URL of a queue.
    pub fn url(&self, queue: &str) -> String {
        format!("http://127.0.0.1:{}/{ACCOUNT}/{queue}", self.0.port.load(Ordering::Relaxed))
    }

    /// Receives up to `max` messages for an event-source mapping, as Lambda's `Records`. They count as in flight until
    /// [`Sqs::finish`] or until their visibility time-out.
    pub async fn receive_for_mapping(&self, queue: &str, max: usize) -> Result<Vec<Value>, StoreError> {
        let received = self.receive(queue, max, None, true).await?;
        let arn = self.arn(queue);
        Ok(received.iter().map(|message| lambda_record(message, &arn)).collect())
    }

    /// Deletes succeeded messages by receipt handle. Failed messages stay invisible until their visibility time-out and
    /// count as delayed from now on.
    pub async fn finish(&self, queue: &str, succeeded: &[String], failed: &[String]) -> Result<(), StoreError> {
        let handles = |of: &[String]| of.iter().filter_map(|handle| ReceiptHandle::parse(handle)).collect::<Vec<_>>();
        let (succeeded, failed, now) = (handles(succeeded), handles(failed), self.0.time.now_ms());
        self.0
            .sqlite
            .run_transaction(|transaction| {
                for handle in &succeeded {
                    messages::delete(transaction, queue, handle, now)?;
                }
                for handle in &failed {
                    messages::release(transaction, queue, handle)?;
                }
                Ok(())
            })
            .await?;
        self.0.changes.notify();
        Ok(())
    }

    /// Sends a message as a rule does to its target.
    pub async fn send(&self, queue_arn: &str, body: &str) -> Result<(), StoreError> {
        let message = self.message_to(queue_arn, body)?;
        self.store(&[message]).await?;
        Ok(())
    }

    /// Returns true if a consumed queue has a message that can be received, or one in flight in a mapping.
    pub async fn is_busy(&self) -> Result<bool, StoreError> {
        let (queues, now) = (self.consumed_queues(), self.0.time.now_ms());
        self.0
            .sqlite
            .run(|connection| {
                for queue in &queues {
                    if receive::is_busy(connection, queue, now)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            })
            .await
    }

    /// Returns the earliest stack time at which a delayed or invisible message of a consumed queue becomes visible, or
    /// a locked message group is unlocked.
    pub async fn next_due(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        let (queues, now) = (self.consumed_queues(), self.0.time.now_ms());
        let earliest = self
            .0
            .sqlite
            .run(|connection| {
                let mut earliest = None;
                for queue in &queues {
                    let next = receive::next_available(connection, queue, now)?;
                    earliest = [earliest, next].into_iter().flatten().min();
                }
                Ok(earliest)
            })
            .await?;
        Ok(earliest.map(from_ms))
    }

    /// Builds a message to a standard queue. A rule's message has no group.
    pub(crate) fn message_to(&self, queue_arn: &str, body: &str) -> Result<NewMessage, StoreError> {
        let name = queue_arn.rsplit(':').next().unwrap_or(queue_arn);
        let missing = || StoreError::NoSuchResource(format!("standard queue {queue_arn}"));
        let is_known = self.arn(name) == queue_arn && !is_fifo(name);
        let settings = self.settings(name).filter(|_| is_known).ok_or_else(missing)?;
        Ok(self.new_message(name, &settings, body.to_owned(), 0, self.0.time.now_ms()))
    }

    /// Wakes pollers after another module's transaction stored messages.
    pub(crate) fn notify_stored(&self) {
        self.0.changes.notify();
    }

    fn new_message(&self, queue: &str, settings: &Settings, body: String, delay_s: i64, now: i64) -> NewMessage {
        NewMessage {
            queue: queue.to_owned(),
            message_id: Uuid::new_v4().to_string(),
            body,
            group_id: None,
            deduplication: None,
            sent_at: now,
            visible_at: now + delay_s * 1_000,
            expires_at: now + settings.retention * 1_000,
        }
    }

    async fn store(&self, messages: &[NewMessage]) -> Result<Vec<StoredMessage>, StoreError> {
        let stored = self.0.sqlite.run_transaction(|transaction| insert(transaction, messages)).await?;
        self.0.changes.notify();
        Ok(stored)
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility_s: Option<i64>,
        for_mapping: bool,
    ) -> Result<Vec<ReceivedMessage>, StoreError> {
        let settings = self.settings(queue).ok_or_else(|| StoreError::NoSuchResource(format!("queue {queue}")))?;
        let dead_letters = settings.redrive.as_ref().and_then(|redrive| {
            let target = self.settings(redrive.target())?;
            Some(DeadLetterQueue {
                queue: redrive.target().to_owned(),
                max_receives: redrive.max_receive_count,
                retention_ms: target.retention * 1_000,
            })
        });
        let now = self.0.time.now_ms();
        let receive = ReceiveRequest {
            queue: queue.to_owned(),
            now,
            max,
            visible_at: now + visibility_s.unwrap_or(settings.visibility_timeout) * 1_000,
            dead_letters,
            for_mapping,
            duplicate: for_mapping && self.0.faults.duplicates_messages(),
        };
        let (received, dead_lettered) =
            self.0.sqlite.run_transaction(|transaction| receive::receive(transaction, &receive)).await?;
        // `finish` notifies for a mapping's messages. Other removals from the visible messages notify here.
        if dead_lettered > 0 || !(for_mapping || received.is_empty()) {
            self.0.changes.notify();
        }
        Ok(received)
    }

    fn settings(&self, queue: &str) -> Option<Settings> {
        self.queues().get(queue).cloned()
    }

    /// Returns the queues except dead-letter queues, which no function consumes.
    fn consumed_queues(&self) -> Vec<String> {
        let queues = self.queues();
        let dead_letters: Vec<&str> =
            queues.values().filter_map(|settings| Some(settings.redrive.as_ref()?.target())).collect();
        queues.keys().filter(|name| !dead_letters.contains(&name.as_str())).cloned().collect()
    }

    fn queues(&self) -> RwLockReadGuard<'_, BTreeMap<String, Settings>> {
        self.0.queues.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tables of all queues.
pub(crate) fn schema() -> String {
    [messages::SCHEMA, groups::SCHEMA, deduplication::SCHEMA].concat()
}

/// Builds a message's system attributes, which are all strings.
fn system_attributes(message: &ReceivedMessage) -> Map<String, Value> {
    let sequence = message.deduplication_id.as_ref().map(|_| sequence_number(message.id));
    let source = message.moved_from.as_ref().map(|queue| arn("sqs", queue));
    [
        ("SenderId", SENDER.to_owned()),
        ("SentTimestamp", message.sent_at.to_string()),
        ("ApproximateReceiveCount", message.receive_count.to_string()),
        ("ApproximateFirstReceiveTimestamp", message.first_received_at.to_string()),
    ]
    .into_iter()
    .chain(message.group_id.clone().map(|group_id| ("MessageGroupId", group_id)))
    .chain(message.deduplication_id.clone().map(|id| ("MessageDeduplicationId", id)))
    .chain(sequence.map(|sequence| ("SequenceNumber", sequence)))
    .chain(source.map(|source| ("DeadLetterQueueSourceArn", source)))
    .map(|(name, value)| (name.to_owned(), Value::from(value)))
    .collect()
}

/// Renders a sequence number with the 20 digits of SQS.
fn sequence_number(sequence: i64) -> String {
    format!("{sequence:020}")
}

/// Computes the hexadecimal MD5 checksum of a body, which SDKs compare with their own.
fn md5_hex(body: &str) -> String {
    Md5::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lambda_record(message: &ReceivedMessage, queue_arn: &str) -> Value {
    json!({
        "messageId": message.message_id,
        "receiptHandle": message.receipt,
        "body": message.body,
        "attributes": system_attributes(message),
        "messageAttributes": {},
        "md5OfBody": md5_hex(&message.body),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    })
}
