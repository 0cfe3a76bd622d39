//! The operations of the SQS API: their names, and those on queues. Messages have modules of their own.

mod receive;
mod request;
mod send;

use serde::Deserialize;
use serde_json::{Value, json};

use request::{parse, queue_does_not_exist, refused, selected};

use super::queue::Settings;
use super::{Sqs, messages};
use crate::answer::{Answer, ServiceError};

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

impl Sqs {
    /// Handles one request of the JSON protocol.
    pub(crate) async fn request(&self, operation: &str, body: &[u8]) -> Result<Answer, ServiceError> {
        let answer = match operation {
            "SendMessage" => self.send_message(parse(body)?).await?,
            "SendMessageBatch" => self.send_message_batch(parse(body)?).await?,
            "ReceiveMessage" => self.receive_message(parse(body)?).await?,
            "DeleteMessage" => self.delete_message(parse(body)?).await?,
            "DeleteMessageBatch" => self.delete_message_batch(parse(body)?).await?,
            "ChangeMessageVisibility" => self.change_visibility(parse(body)?).await?,
            "ChangeMessageVisibilityBatch" => self.change_visibility_batch(parse(body)?).await?,
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
                self.0.sqlite.run_transaction(|transaction| messages::purge(transaction, &name)).await?;
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
