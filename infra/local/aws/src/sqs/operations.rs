//! The operations of the SQS API except batches.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::messages::{self, NewMessage, ReceiptHandle, ReceivedMessage};
use super::queue::{MAX_MESSAGE_BYTES, Settings};
use super::{Sqs, attributes, error, system_attributes};
use crate::answer::{Answer, ServiceError};

const MAX_VISIBILITY_TIMEOUT: i64 = 43_200;

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct QueueRequest {
    queue_url: Option<String>,
    queue_name: Option<String>,
    queue_name_prefix: Option<String>,
    attributes: Map<String, Value>,
    attribute_names: Vec<String>,
}

/// The parameters of `SendMessage`, and of an entry of `SendMessageBatch`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct SendMessage {
    pub(super) queue_url: Option<String>,
    message_body: Option<String>,
    delay_seconds: Option<i64>,
    message_attributes: Map<String, Value>,
    message_system_attributes: Map<String, Value>,
    message_group_id: Option<String>,
    message_deduplication_id: Option<String>,
}

/// The parameters of `DeleteMessage`, `ChangeMessageVisibility`, and of the entries of their batches.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct MessageRequest {
    pub(super) queue_url: Option<String>,
    receipt_handle: Option<String>,
    visibility_timeout: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ReceiveMessage {
    queue_url: Option<String>,
    max_number_of_messages: Option<i64>,
    visibility_timeout: Option<i64>,
    wait_time_seconds: Option<i64>,
    attribute_names: Vec<String>,
    message_system_attribute_names: Vec<String>,
    message_attribute_names: Vec<String>,
}

/// A validated message with the result for its sender.
pub(super) struct AcceptedMessage {
    pub(super) message: NewMessage,
    pub(super) bytes: usize,
    pub(super) result: Value,
}

impl Sqs {
    /// Handles one request of the JSON protocol.
    pub(crate) async fn request(&self, operation: &str, body: &[u8]) -> Result<Answer, ServiceError> {
        let answer = match operation {
            "SendMessage" => self.send_message(parse(body)?).await?,
            "SendMessageBatch" => self.send_message_batch(parse(body)?).await?,
            "ReceiveMessage" => self.receive_message(parse(body)?).await?,
            "DeleteMessage" => {
                let request: MessageRequest = parse(body)?;
                let queue = self.queue_at(request.queue_url.as_deref())?.0;
                self.delete_message(queue, request).await?
            }
            "DeleteMessageBatch" => self.delete_message_batch(parse(body)?).await?,
            "ChangeMessageVisibility" => {
                let request: MessageRequest = parse(body)?;
                let queue = self.queue_at(request.queue_url.as_deref())?.0;
                self.change_visibility(queue, request).await?
            }
            "ChangeMessageVisibilityBatch" => self.change_visibility_batch(parse(body)?).await?,
            "CreateQueue" => self.create_queue(parse(body)?).await?,
            "DeleteQueue" => self.delete_queue(parse(body)?).await?,
            "GetQueueUrl" => {
                let request: QueueRequest = parse(body)?;
                let name = request.queue_name.ok_or_else(|| error::missing_parameter("QueueName"))?;
                self.settings(&name).ok_or_else(error::queue_does_not_exist)?;
                json!({ "QueueUrl": self.url(&name) })
            }
            "ListQueues" => self.list_queues(&parse(body)?),
            "GetQueueAttributes" => self.queue_attributes(parse(body)?).await?,
            "SetQueueAttributes" => {
                let request: QueueRequest = parse(body)?;
                let (name, mut settings) = self.queue_at(request.queue_url.as_deref())?;
                settings.update(&request.attributes)?;
                self.store_queue(&name, settings, false).await?;
                json!({})
            }
            "PurgeQueue" => {
                let request: QueueRequest = parse(body)?;
                let name = self.queue_at(request.queue_url.as_deref())?.0;
                self.0.sqlite.run(|connection| messages::purge(connection, &name)).await?;
                self.0.changes.notify();
                json!({})
            }
            other => return Err(error::unknown_operation(other)),
        };
        Ok(Answer::json_1_0(&answer))
    }

    /// Finds the queue of a URL by the last segment of its path, since hosts and ports differ between callers.
    pub(super) fn queue_at(&self, url: Option<&str>) -> Result<(String, Settings), ServiceError> {
        let url = url.ok_or_else(|| error::missing_parameter("QueueUrl"))?;
        let name = url.rsplit('/').next().unwrap_or(url);
        let settings = self.settings(name).ok_or_else(error::queue_does_not_exist)?;
        Ok((name.to_owned(), settings))
    }

    /// Validates a message that is sent at `now`.
    pub(super) fn accept(
        &self,
        queue: &str,
        settings: &Settings,
        send: SendMessage,
        now: i64,
    ) -> Result<AcceptedMessage, ServiceError> {
        let body = send.message_body.filter(|body| !body.is_empty());
        let body = body.ok_or_else(|| error::missing_parameter("MessageBody"))?;
        if !body.chars().all(is_allowed) {
            return Err(error::invalid_message_contents());
        }
        if let Some(delay) = send.delay_seconds.filter(|delay| !(0..=900).contains(delay)) {
            return Err(error::out_of_range("DelaySeconds", delay, 0, 900));
        }
        if send.message_deduplication_id.is_some() {
            let message = "The request include parameter MessageDeduplicationId which is not valid for this queue type";
            return Err(error::invalid_parameter(message));
        }
        let bytes = body.len() + attributes::check(&send.message_attributes)?;
        let limit = usize::try_from(settings.max_message_bytes).unwrap_or(MAX_MESSAGE_BYTES);
        if bytes > limit {
            return Err(error::message_too_long(limit));
        }
        let mut message = self.new_message(queue, settings, body, send.delay_seconds, now);
        let mut result = json!({
            "MessageId": message.message_id,
            "MD5OfMessageBody": attributes::md5_hex(message.body.as_bytes()),
        });
        for (name, of) in [
            ("MD5OfMessageAttributes", &send.message_attributes),
            ("MD5OfMessageSystemAttributes", &send.message_system_attributes),
        ] {
            if let Some(md5) = attributes::md5_of(of) {
                result[name] = md5.into();
            }
        }
        message.attributes = send.message_attributes;
        message.trace_header = send
            .message_system_attributes
            .get("AWSTraceHeader")
            .and_then(|trace| Some(trace["StringValue"].as_str()?.to_owned()));
        message.group_id = send.message_group_id;
        Ok(AcceptedMessage { message, bytes, result })
    }

    async fn send_message(&self, send: SendMessage) -> Result<Value, ServiceError> {
        let (queue, settings) = self.queue_at(send.queue_url.as_deref())?;
        let accepted = self.accept(&queue, &settings, send, self.0.time.now_ms())?;
        self.store(vec![accepted.message]).await?;
        Ok(accepted.result)
    }

    async fn receive_message(&self, request: ReceiveMessage) -> Result<Value, ServiceError> {
        let (queue, settings) = self.queue_at(request.queue_url.as_deref())?;
        let in_range = |name, value: Option<i64>, min, max| match value {
            Some(value) if !(min..=max).contains(&value) => Err(error::out_of_range(name, value, min, max)),
            value => Ok(value),
        };
        let max = in_range("MaxNumberOfMessages", request.max_number_of_messages, 1, 10)?.unwrap_or(1);
        let visibility = in_range("VisibilityTimeout", request.visibility_timeout, 0, MAX_VISIBILITY_TIMEOUT)?;
        let wait = in_range("WaitTimeSeconds", request.wait_time_seconds, 0, 20)?.unwrap_or(settings.wait_time);
        let deadline = self.0.time.now_ms() + wait * 1_000;
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
        let system_names = [request.attribute_names, request.message_system_attribute_names].concat();
        let messages: Vec<Value> =
            received.iter().map(|message| rendered(message, &system_names, &request.message_attribute_names)).collect();
        Ok(json!({ "Messages": messages }))
    }

    pub(super) async fn delete_message(&self, queue: String, request: MessageRequest) -> Result<Value, ServiceError> {
        let handle = request.handle()?;
        self.0.sqlite.run(|connection| messages::delete(connection, &queue, &handle)).await?;
        self.0.changes.notify();
        Ok(json!({}))
    }

    pub(super) async fn change_visibility(
        &self,
        queue: String,
        request: MessageRequest,
    ) -> Result<Value, ServiceError> {
        let handle = request.handle()?;
        let timeout = request.visibility_timeout.ok_or_else(|| error::missing_parameter("VisibilityTimeout"))?;
        if !(0..=MAX_VISIBILITY_TIMEOUT).contains(&timeout) {
            return Err(error::out_of_range("VisibilityTimeout", timeout, 0, MAX_VISIBILITY_TIMEOUT));
        }
        let now = self.0.time.now_ms();
        let visible_at = now + timeout * 1_000;
        let changed = self
            .0
            .sqlite
            .run(|connection| messages::change_visibility(connection, &queue, &handle, now, visible_at))
            .await?;
        self.0.changes.notify();
        if changed { Ok(json!({})) } else { Err(error::message_not_inflight()) }
    }

    async fn create_queue(&self, request: QueueRequest) -> Result<Value, ServiceError> {
        let name = request.queue_name.ok_or_else(|| error::missing_parameter("QueueName"))?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 80 || !name.chars().all(allowed) {
            let message = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length";
            return Err(error::invalid_parameter(message));
        }
        let settings = Settings::from_attributes(&request.attributes)?;
        match self.settings(&name) {
            Some(existing) if existing != settings => return Err(error::queue_name_exists(&name)),
            Some(_) => {}
            None => self.store_queue(&name, settings, false).await?,
        }
        Ok(json!({ "QueueUrl": self.url(&name) }))
    }

    async fn delete_queue(&self, request: QueueRequest) -> Result<Value, ServiceError> {
        let name = self.queue_at(request.queue_url.as_deref())?.0;
        self.0
            .sqlite
            .run(|connection| {
                messages::purge(connection, &name)?;
                connection.execute("DELETE FROM queues WHERE name = ?1", [&name])
            })
            .await?;
        self.queues_mut().remove(&name);
        self.0.changes.notify();
        Ok(json!({}))
    }

    fn list_queues(&self, request: &QueueRequest) -> Value {
        let prefix = request.queue_name_prefix.as_deref().unwrap_or_default();
        let queues = self.queues();
        let urls: Vec<String> =
            queues.keys().filter(|name| name.starts_with(prefix)).map(|name| self.url(name)).collect();
        if urls.is_empty() { json!({}) } else { json!({ "QueueUrls": urls }) }
    }

    async fn queue_attributes(&self, request: QueueRequest) -> Result<Value, ServiceError> {
        let (name, settings) = self.queue_at(request.queue_url.as_deref())?;
        let created_at = self.queues().get(&name).map_or(0, |queue| queue.created_at) / 1_000;
        let now = self.0.time.now_ms();
        let counts = self.0.sqlite.run(|connection| messages::counts(connection, &name, now)).await?;
        let mut all = settings.to_attributes();
        for (name, value) in [
            ("QueueArn", self.arn(&name)),
            ("ApproximateNumberOfMessages", counts.visible.to_string()),
            ("ApproximateNumberOfMessagesNotVisible", counts.not_visible.to_string()),
            ("ApproximateNumberOfMessagesDelayed", counts.delayed.to_string()),
            ("CreatedTimestamp", created_at.to_string()),
            ("LastModifiedTimestamp", created_at.to_string()),
        ] {
            all.insert(name.to_owned(), value.into());
        }
        let wanted = &request.attribute_names;
        let attributes: Map<String, Value> =
            all.into_iter().filter(|(name, _)| wanted.iter().any(|wanted| wanted == "All" || wanted == name)).collect();
        Ok(if attributes.is_empty() { json!({}) } else { json!({ "Attributes": attributes }) })
    }
}

impl MessageRequest {
    fn handle(&self) -> Result<ReceiptHandle, ServiceError> {
        let handle = self.receipt_handle.as_deref().ok_or_else(|| error::missing_parameter("ReceiptHandle"))?;
        ReceiptHandle::parse(handle).ok_or_else(|| error::receipt_handle_is_invalid(handle))
    }
}

/// Parses a request. An empty body is an empty request.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ServiceError> {
    serde_json::from_slice(if body.is_empty() { b"{}" } else { body }).map_err(|reason| error::malformed(&reason))
}

/// Returns true for a character that XML 1.0 allows, as SQS requires.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Renders a message for `ReceiveMessage` with the requested attributes.
fn rendered(message: &ReceivedMessage, system_names: &[String], names: &[String]) -> Value {
    let mut rendered = json!({
        "MessageId": message.message_id,
        "ReceiptHandle": message.receipt,
        "MD5OfBody": attributes::md5_hex(message.body.as_bytes()),
        "Body": message.body,
    });
    let system = attributes::select(&system_attributes(message), system_names);
    if !system.is_empty() {
        rendered["Attributes"] = system.into();
    }
    let selected = attributes::select(&message.attributes, names);
    if let Some(md5) = attributes::md5_of(&selected) {
        rendered["MD5OfMessageAttributes"] = md5.into();
        rendered["MessageAttributes"] = selected.into();
    }
    rendered
}
