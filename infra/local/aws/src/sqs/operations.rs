//! The operations of the SQS API. Unknown parameters are refused by name.

use std::collections::HashSet;

use md5::{Digest, Md5};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::messages::{self, NewMessage, ReceiptHandle, ReceivedMessage};
use super::queue::Settings;
use super::{Sqs, system_attributes};
use crate::answer::{Answer, ServiceError};

const MAX_VISIBILITY_TIMEOUT: i64 = 43_200;
/// Maximum bytes of a message, and of a whole batch.
const MAX_MESSAGE_BYTES: usize = 1_048_576;
const MAX_ENTRIES: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct QueueRequest {
    queue_url: String,
    #[serde(default)]
    attribute_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct GetQueueUrl {
    queue_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct ListQueues {
    #[serde(default)]
    queue_name_prefix: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct SendMessage {
    queue_url: String,
    message_body: String,
    delay_seconds: Option<i64>,
    message_group_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct SendMessageBatch {
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
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct ReceiveMessage {
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
struct DeleteMessage {
    queue_url: String,
    receipt_handle: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct ChangeMessageVisibility {
    queue_url: String,
    receipt_handle: String,
    visibility_timeout: i64,
}

impl Sqs {
    /// Handles one request of the JSON protocol.
    pub(crate) async fn request(&self, operation: &str, body: &[u8]) -> Result<Answer, ServiceError> {
        let answer = match operation {
            "SendMessage" => self.send_message(parse(body)?).await?,
            "SendMessageBatch" => self.send_message_batch(parse(body)?).await?,
            "ReceiveMessage" => self.receive_message(parse(body)?).await?,
            "DeleteMessage" => self.delete_message(parse(body)?).await?,
            "ChangeMessageVisibility" => self.change_visibility(parse(body)?).await?,
            "GetQueueUrl" => {
                let GetQueueUrl { queue_name } = parse(body)?;
                self.settings(&queue_name).ok_or_else(queue_does_not_exist)?;
                json!({ "QueueUrl": self.url(&queue_name) })
            }
            "ListQueues" => {
                let ListQueues { queue_name_prefix } = parse(body)?;
                let queues = self.queues();
                let listed = queues.keys().filter(|name| name.starts_with(&queue_name_prefix));
                json!({ "QueueUrls": listed.map(|name| self.url(name)).collect::<Vec<_>>() })
            }
            "GetQueueAttributes" => self.queue_attributes(parse(body)?).await?,
            "PurgeQueue" => {
                let name = self.queue_at(&parse::<QueueRequest>(body)?.queue_url)?.0;
                self.0.sqlite.run(|connection| messages::purge(connection, &name)).await?;
                self.0.changes.notify();
                json!({})
            }
            other => {
                let message = format!("The local stack's SQS has no operation {other}.");
                return Err(refused("UnknownOperationException", message));
            }
        };
        Ok(Answer::json_1_0(&answer))
    }

    /// Finds the queue of a URL by the last segment of its path, since hosts and ports differ between callers.
    fn queue_at(&self, url: &str) -> Result<(String, Settings), ServiceError> {
        let name = url.rsplit('/').next().unwrap_or(url);
        let settings = self.settings(name).ok_or_else(queue_does_not_exist)?;
        Ok((name.to_owned(), settings))
    }

    /// Validates a message that is sent at `now`.
    fn accept(&self, send: SendMessage, now: i64) -> Result<NewMessage, ServiceError> {
        let (queue, settings) = self.queue_at(&send.queue_url)?;
        let body = send.message_body;
        if body.is_empty() || !body.chars().all(is_allowed) {
            return Err(refused("InvalidMessageContents", "The body is empty, or holds a character that XML forbids."));
        }
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(invalid(format!("Message must be shorter than {MAX_MESSAGE_BYTES} bytes.")));
        }
        let delay = in_range("DelaySeconds", send.delay_seconds, 0, 900)?.unwrap_or_default();
        let mut message = self.new_message(&queue, &settings, body, delay, now);
        message.group_id = send.message_group_id;
        Ok(message)
    }

    async fn send_message(&self, send: SendMessage) -> Result<Value, ServiceError> {
        let message = self.accept(send, self.0.time.now_ms())?;
        let result = sent(&message);
        self.store(vec![message]).await?;
        Ok(result)
    }

    /// Sends the entries that are valid. A malformed batch is refused as a whole.
    async fn send_message_batch(&self, batch: SendMessageBatch) -> Result<Value, ServiceError> {
        let SendMessageBatch { queue_url, entries } = batch;
        let ids: HashSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        let bytes: usize = entries.iter().map(|entry| entry.message_body.len()).sum();
        if entries.is_empty() {
            return Err(refused("EmptyBatchRequest", "There should be at least one entry in the request."));
        } else if entries.len() > MAX_ENTRIES {
            let message = format!("Maximum number of entries per request are {MAX_ENTRIES}.");
            return Err(refused("TooManyEntriesInBatchRequest", message));
        } else if ids.len() < entries.len() {
            return Err(refused("BatchEntryIdsNotDistinct", "Ids are repeated."));
        } else if bytes > MAX_MESSAGE_BYTES {
            let message = format!("Batch requests cannot be longer than {MAX_MESSAGE_BYTES} bytes.");
            return Err(refused("BatchRequestTooLong", message));
        }
        // One time for all, so that messages with the same delay become visible together, however slow the machine is.
        let now = self.0.time.now_ms();
        let (mut successful, mut failed, mut messages) = (Vec::new(), Vec::new(), Vec::new());
        for BatchEntry { id, message_body, delay_seconds, message_group_id } in entries {
            let send = SendMessage { queue_url: queue_url.clone(), message_body, delay_seconds, message_group_id };
            match self.accept(send, now) {
                Ok(message) => {
                    let mut result = sent(&message);
                    result["Id"] = id.into();
                    successful.push(result);
                    messages.push(message);
                }
                Err(error) => failed.push(json!({
                    "Id": id, "SenderFault": true, "Code": error.code(), "Message": error.message(),
                })),
            }
        }
        self.store(messages).await?;
        Ok(json!({ "Successful": successful, "Failed": failed }))
    }

    async fn receive_message(&self, request: ReceiveMessage) -> Result<Value, ServiceError> {
        let queue = self.queue_at(&request.queue_url)?.0;
        let max = in_range("MaxNumberOfMessages", request.max_number_of_messages, 1, 10)?.unwrap_or(1);
        let visibility = in_range("VisibilityTimeout", request.visibility_timeout, 0, MAX_VISIBILITY_TIMEOUT)?;
        let wait_s = in_range("WaitTimeSeconds", request.wait_time_seconds, 0, 20)?.unwrap_or_default();
        let deadline = self.0.time.now_ms() + wait_s * 1_000;
        // Subscribed before the first read, so that a later message is not missed.
        let mut changes = self.0.changes.subscribe();
        let received = loop {
            changes.mark_unchanged();
            let received = self.receive(&queue, usize::try_from(max).unwrap_or(1), visibility, false).await?;
            let now = self.0.time.now_ms();
            if !received.is_empty() || now >= deadline {
                break received;
            }
            let due = self.0.sqlite.run(|connection| messages::next_visible(connection, &queue, now)).await?;
            let wake_at = due.unwrap_or(deadline).min(deadline);
            let wait = std::time::Duration::from_millis(u64::try_from(wake_at - now).unwrap_or_default());
            // Stack time runs at the pace of real time between jumps, and a jump notifies. An error means that the
            // stack has ended, which ends this request too.
            tokio::select! {
                () = tokio::time::sleep_until(Instant::now() + wait) => {}
                _ = changes.changed() => {}
            }
        };
        if received.is_empty() {
            return Ok(json!({}));
        }
        let wanted = [request.attribute_names, request.message_system_attribute_names].concat();
        Ok(json!({ "Messages": received.iter().map(|message| rendered(message, &wanted)).collect::<Vec<_>>() }))
    }

    async fn delete_message(&self, request: DeleteMessage) -> Result<Value, ServiceError> {
        let queue = self.queue_at(&request.queue_url)?.0;
        let handle = parse_handle(&request.receipt_handle)?;
        self.0.sqlite.run(|connection| messages::delete(connection, &queue, &handle)).await?;
        self.0.changes.notify();
        Ok(json!({}))
    }

    async fn change_visibility(&self, request: ChangeMessageVisibility) -> Result<Value, ServiceError> {
        let queue = self.queue_at(&request.queue_url)?.0;
        let handle = parse_handle(&request.receipt_handle)?;
        let timeout = in_range("VisibilityTimeout", Some(request.visibility_timeout), 0, MAX_VISIBILITY_TIMEOUT)?;
        let now = self.0.time.now_ms();
        let visible_at = now + timeout.unwrap_or_default() * 1_000;
        let changed = self
            .0
            .sqlite
            .run(|connection| messages::change_visibility(connection, &queue, &handle, now, visible_at))
            .await?;
        self.0.changes.notify();
        if changed {
            Ok(json!({}))
        } else {
            Err(refused("MessageNotInflight", "The specified message is not in flight."))
        }
    }

    async fn queue_attributes(&self, request: QueueRequest) -> Result<Value, ServiceError> {
        let (name, settings) = self.queue_at(&request.queue_url)?;
        let now = self.0.time.now_ms();
        let counts = self.0.sqlite.run(|connection| messages::counts(connection, &name, now)).await?;
        let mut all = settings.to_attributes();
        for (name, value) in [
            ("QueueArn", self.arn(&name)),
            ("ApproximateNumberOfMessages", counts.visible.to_string()),
            ("ApproximateNumberOfMessagesNotVisible", counts.not_visible.to_string()),
            ("ApproximateNumberOfMessagesDelayed", counts.delayed.to_string()),
        ] {
            all.insert(name.to_owned(), value.into());
        }
        Ok(json!({ "Attributes": selected(all, &request.attribute_names) }))
    }
}

/// Parses a request. An empty body is an empty request.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ServiceError> {
    serde_json::from_slice(if body.is_empty() { b"{}" } else { body })
        .map_err(|reason| refused("SerializationException", reason.to_string()))
}

fn parse_handle(handle: &str) -> Result<ReceiptHandle, ServiceError> {
    ReceiptHandle::parse(handle).ok_or_else(|| refused("ReceiptHandleIsInvalid", "The receipt handle is not valid."))
}

/// Refuses a number out of its range.
fn in_range(name: &str, value: Option<i64>, min: i64, max: i64) -> Result<Option<i64>, ServiceError> {
    match value {
        Some(value) if !(min..=max).contains(&value) => {
            Err(invalid(format!("Value {value} for parameter {name} is invalid. Must be >= {min} and <= {max}.")))
        }
        value => Ok(value),
    }
}

/// Returns true for a character that XML 1.0 allows, as SQS requires.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Renders the result for the sender of a message. SDKs compare the checksum with their own.
fn sent(message: &NewMessage) -> Value {
    json!({ "MessageId": message.message_id, "MD5OfMessageBody": md5_hex(&message.body) })
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

/// Selects the requested attributes.
fn selected(mut attributes: Map<String, Value>, wanted: &[String]) -> Map<String, Value> {
    attributes.retain(|name, _| wanted.iter().any(|wanted| wanted == "All" || wanted == name));
    attributes
}

/// Computes the hexadecimal MD5 checksum of a body.
pub(super) fn md5_hex(body: &str) -> String {
    Md5::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn queue_does_not_exist() -> ServiceError {
    refused("QueueDoesNotExist", "The specified queue does not exist.")
}

fn invalid(message: String) -> ServiceError {
    refused("InvalidParameterValueException", message)
}

fn refused(shape: &str, message: impl Into<String>) -> ServiceError {
    ServiceError::json_1_0(400, format!("com.amazonaws.sqs#{shape}"), message)
}
