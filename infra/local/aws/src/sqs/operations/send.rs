//! Sending messages, alone and in batches.

use serde::Deserialize;
use serde_json::{Value, json};

use super::request::{batch_results, check_batch, in_range, invalid, refused};
use crate::answer::ServiceError;
use crate::sqs::deduplication::Deduplication;
use crate::sqs::messages::{NewMessage, StoredMessage};
use crate::sqs::queue::{Settings, is_fifo};
use crate::sqs::{Sqs, md5_hex, sequence_number};

/// Maximum bytes of a message, and of a whole batch.
const MAX_MESSAGE_BYTES: usize = 1_048_576;
/// Maximum characters of a message group id and of a deduplication id.
const MAX_ID_CHARS: usize = 128;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct SendMessage {
    queue_url: String,
    message_body: String,
    delay_seconds: Option<i64>,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct SendMessageBatch {
    queue_url: String,
    entries: Vec<BatchEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct BatchEntry {
    id: String,
    message_body: String,
    delay_seconds: Option<i64>,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

impl Sqs {
    pub(super) async fn send_message(&self, send: SendMessage) -> Result<Value, ServiceError> {
        let message = self.accept(send, self.0.time.now_ms())?;
        Ok(self.send_all(&[message]).await?.swap_remove(0))
    }

    /// Sends the entries that are valid. A malformed batch is refused as a whole.
    pub(super) async fn send_message_batch(&self, batch: SendMessageBatch) -> Result<Value, ServiceError> {
        let SendMessageBatch { queue_url, entries } = batch;
        self.queue_at(&queue_url)?;
        check_batch(entries.iter().map(|entry| entry.id.as_str()))?;
        if entries.iter().map(|entry| entry.message_body.len()).sum::<usize>() > MAX_MESSAGE_BYTES {
            let message = format!("Batch requests cannot be longer than {MAX_MESSAGE_BYTES} bytes.");
            return Err(refused("BatchRequestTooLong", message));
        }
        // One time for all, so that messages with the same delay become visible together, however slow the machine is.
        let now = self.0.time.now_ms();
        let (mut ids, mut messages, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            let send = SendMessage {
                queue_url: queue_url.clone(),
                message_body: entry.message_body,
                delay_seconds: entry.delay_seconds,
                message_group_id: entry.message_group_id,
                message_deduplication_id: entry.message_deduplication_id,
            };
            match self.accept(send, now) {
                Ok(message) => {
                    ids.push(entry.id);
                    messages.push(message);
                }
                Err(error) => results.push((entry.id, Err(error))),
            }
        }
        results.extend(ids.into_iter().zip(self.send_all(&messages).await?.into_iter().map(Ok)));
        Ok(batch_results(results))
    }

    /// Validates a message that is sent at `now`.
    fn accept(&self, send: SendMessage, now: i64) -> Result<NewMessage, ServiceError> {
        let (queue, settings) = self.queue_at(&send.queue_url)?;
        let deduplication = deduplication(&queue, &settings, &send)?;
        let body = send.message_body;
        if body.is_empty() || !body.chars().all(is_allowed) {
            return Err(refused("InvalidMessageContents", "The body is empty, or holds a character that XML forbids."));
        }
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(invalid(format!("Message must be shorter than {MAX_MESSAGE_BYTES} bytes.")));
        }
        let delay = in_range("DelaySeconds", send.delay_seconds, 0, 900)?.unwrap_or_default();
        let message = self.new_message(&queue, &settings, body, delay, now);
        Ok(NewMessage { group_id: send.message_group_id, deduplication, ..message })
    }

    /// Stores messages and renders a result for each.
    async fn send_all(&self, messages: &[NewMessage]) -> Result<Vec<Value>, ServiceError> {
        let stored = self.store(messages).await?;
        Ok(messages.iter().zip(stored).map(|(message, stored)| sent(message, stored)).collect())
    }
}

/// Validates the parameters of FIFO queues. A standard queue accepts a message group only.
fn deduplication(queue: &str, settings: &Settings, send: &SendMessage) -> Result<Option<Deduplication>, ServiceError> {
    let (group_id, id) = (&send.message_group_id, &send.message_deduplication_id);
    for (name, value) in [("MessageGroupId", group_id), ("MessageDeduplicationId", id)] {
        if value.as_ref().is_some_and(|value| !is_valid_id(value)) {
            let rule = format!("1 to {MAX_ID_CHARS} letters, digits and punctuation characters");
            return Err(invalid(format!("{name} can only be {rule}.")));
        }
    }
    let not_valid_here = |name: &str| {
        let reason = "Reason: The request include parameter that is not valid for this queue type.";
        invalid(format!("The value for parameter {name} is invalid. {reason}"))
    };
    match (is_fifo(queue), group_id, id) {
        (false, _, None) => Ok(None),
        (false, _, Some(_)) => Err(not_valid_here("MessageDeduplicationId")),
        (true, None, _) => Err(refused("MissingParameter", "The request must contain the parameter MessageGroupId.")),
        (true, _, None) => {
            Err(invalid("The queue has no content-based deduplication: MessageDeduplicationId is required."))
        }
        (true, ..) if send.delay_seconds.is_some() => Err(not_valid_here("DelaySeconds")),
        (true, Some(group_id), Some(id)) => {
            let scope = if settings.deduplicates_by_group() { group_id.as_str() } else { "" };
            Ok(Some(Deduplication { id: id.clone(), scope: scope.to_owned() }))
        }
    }
}

fn is_valid_id(id: &str) -> bool {
    (1..=MAX_ID_CHARS).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic())
}

/// Returns true for a character that XML 1.0 allows, as SQS requires.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Renders the result for the sender of a message.
fn sent(message: &NewMessage, stored: StoredMessage) -> Value {
    let mut result = json!({ "MessageId": stored.message_id, "MD5OfMessageBody": md5_hex(&message.body) });
    if let Some(sequence) = stored.sequence {
        result["SequenceNumber"] = sequence_number(sequence).into();
    }
    result
}
