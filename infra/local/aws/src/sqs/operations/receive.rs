//! Receiving and deleting messages, and their visibility.

use std::time::Duration;

use rusqlite::Transaction;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::request::{batch_results, check_batch, in_range, invalid, refused, selected};
use crate::answer::ServiceError;
use crate::sqs::messages::{self, ReceiptHandle};
use crate::sqs::receive::{ReceivedMessage, next_available};
use crate::sqs::{Sqs, md5_hex, system_attributes};

const MAX_VISIBILITY_TIMEOUT: i64 = 43_200;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct ReceiveMessage {
    queue_url: String,
    max_number_of_messages: Option<i64>,
    visibility_timeout: Option<i64>,
    wait_time_seconds: Option<i64>,
    #[serde(default)]
    attribute_names: Vec<String>,
    #[serde(default)]
    message_system_attribute_names: Vec<String>,
    /// Messages have none of these.
    #[serde(rename = "MessageAttributeNames")]
    _message_attribute_names: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct DeleteMessage {
    queue_url: String,
    receipt_handle: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct ChangeMessageVisibility {
    queue_url: String,
    receipt_handle: String,
    visibility_timeout: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct DeleteMessageBatch {
    queue_url: String,
    entries: Vec<DeleteEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct DeleteEntry {
    id: String,
    receipt_handle: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct ChangeMessageVisibilityBatch {
    queue_url: String,
    entries: Vec<VisibilityEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct VisibilityEntry {
    id: String,
    receipt_handle: String,
    visibility_timeout: i64,
}

impl Sqs {
    pub(super) async fn receive_message(&self, request: ReceiveMessage) -> Result<Value, ServiceError> {
        let queue = self.queue_at(&request.queue_url)?.0;
        let max = in_range("MaxNumberOfMessages", request.max_number_of_messages, 1, 10)?.unwrap_or(1);
        let visibility = in_range("VisibilityTimeout", request.visibility_timeout, 0, MAX_VISIBILITY_TIMEOUT)?;
        let wait_s = in_range("WaitTimeSeconds", request.wait_time_seconds, 0, 20)?.unwrap_or_default();
        // A caller waits by the machine's time, which may pass more quickly than the stack's.
        let deadline = Instant::now() + Duration::from_secs(wait_s.unsigned_abs());
        // Subscribed before the first read, so that a later message is not missed.
        let mut changes = self.0.changes.subscribe();
        let received = loop {
            changes.mark_unchanged();
            let received = self.receive(&queue, usize::try_from(max).unwrap_or(1), visibility, false).await?;
            if !received.is_empty() || Instant::now() >= deadline {
                break received;
            }
            let now = self.0.time.now_ms();
            let due = self.0.sqlite.run(|connection| next_available(connection, &queue, now)).await?;
            let due_in = due.map(|due| Duration::from_millis(u64::try_from(due - now).unwrap_or_default()));
            let wake_at = due_in.map_or(deadline, |due_in| deadline.min(Instant::now() + due_in));
            // A jump of the stack's time notifies. An error means that the stack has ended, which ends this request
            // too.
            tokio::select! {
                () = tokio::time::sleep_until(wake_at) => {}
                _ = changes.changed() => {}
            }
        };
        if received.is_empty() {
            return Ok(json!({}));
        }
        let wanted = [request.attribute_names, request.message_system_attribute_names].concat();
        Ok(json!({ "Messages": received.iter().map(|message| rendered(message, &wanted)).collect::<Vec<_>>() }))
    }

    pub(super) async fn delete_message(&self, request: DeleteMessage) -> Result<Value, ServiceError> {
        let queue = self.queue_at(&request.queue_url)?.0;
        let handle = parse_handle(&request.receipt_handle)?;
        let now = self.0.time.now_ms();
        let delete = |transaction: &Transaction<'_>| messages::delete(transaction, &queue, &handle, now);
        let deleted = self.0.sqlite.run_transaction(delete).await?;
        self.0.changes.notify();
        if deleted {
            Ok(json!({}))
        } else {
            let handle = request.receipt_handle;
            let reason = "Reason: The receipt handle has expired.";
            Err(invalid(format!("Value {handle} for parameter ReceiptHandle is invalid. {reason}")))
        }
    }

    pub(super) async fn delete_message_batch(&self, batch: DeleteMessageBatch) -> Result<Value, ServiceError> {
        let DeleteMessageBatch { queue_url, entries } = batch;
        self.queue_at(&queue_url)?;
        check_batch(entries.iter().map(|entry| entry.id.as_str()))?;
        let mut results = Vec::with_capacity(entries.len());
        for DeleteEntry { id, receipt_handle } in entries {
            let request = DeleteMessage { queue_url: queue_url.clone(), receipt_handle };
            results.push((id, self.delete_message(request).await));
        }
        Ok(batch_results(results))
    }

    pub(super) async fn change_visibility(&self, request: ChangeMessageVisibility) -> Result<Value, ServiceError> {
        let queue = self.queue_at(&request.queue_url)?.0;
        let handle = parse_handle(&request.receipt_handle)?;
        let timeout = in_range("VisibilityTimeout", Some(request.visibility_timeout), 0, MAX_VISIBILITY_TIMEOUT)?;
        let now = self.0.time.now_ms();
        let visible_at = now + timeout.unwrap_or_default() * 1_000;
        let changed = self
            .0
            .sqlite
            .run_transaction(|transaction| messages::change_visibility(transaction, &queue, &handle, now, visible_at))
            .await?;
        self.0.changes.notify();
        if changed {
            Ok(json!({}))
        } else {
            Err(refused("MessageNotInflight", "The specified message is not in flight."))
        }
    }

    pub(super) async fn change_visibility_batch(
        &self,
        batch: ChangeMessageVisibilityBatch,
    ) -> Result<Value, ServiceError> {
        let ChangeMessageVisibilityBatch { queue_url, entries } = batch;
        self.queue_at(&queue_url)?;
        check_batch(entries.iter().map(|entry| entry.id.as_str()))?;
        let mut results = Vec::with_capacity(entries.len());
        for VisibilityEntry { id, receipt_handle, visibility_timeout } in entries {
            let queue_url = queue_url.clone();
            let request = ChangeMessageVisibility { queue_url, receipt_handle, visibility_timeout };
            results.push((id, self.change_visibility(request).await));
        }
        Ok(batch_results(results))
    }
}

fn parse_handle(handle: &str) -> Result<ReceiptHandle, ServiceError> {
    ReceiptHandle::parse(handle).ok_or_else(|| refused("ReceiptHandleIsInvalid", "The receipt handle is not valid."))
}

/// Renders a received message with the requested attributes.
fn rendered(message: &ReceivedMessage, wanted: &[String]) -> Value {
    json!({
        "MessageId": message.message_id,
        "ReceiptHandle": message.receipt,
        "MD5OfBody": md5_hex(&message.body),
        "Body": message.body,
        "Attributes": selected(system_attributes(message), wanted),
    })
}
