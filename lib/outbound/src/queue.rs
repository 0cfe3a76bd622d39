//! A queue of SQS, by which one function has another work, or itself later.

use std::sync::Arc;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::send_message::builders::SendMessageFluentBuilder;
use runtime::{BoxError, Environment, without_message};

use crate::on_the_heap;

/// A message was not taken. It may have been all the same.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the queue did not take a message")]
pub struct QueueError(#[source] Arc<dyn std::error::Error + Send + Sync>);

impl QueueError {
    pub(crate) fn of(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into().into())
    }
}

/// One queue.
#[derive(Clone)]
pub struct Queue {
    client: Client,
    url: String,
}

impl Queue {
    /// The queue whose URL is in that environment variable.
    pub fn new(env: &Environment, url_variable: &str) -> Result<Self, BoxError> {
        Ok(Self { client: Client::new(env.sdk()), url: env.config().get(url_variable)?.to_owned() })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a message, to arrive after so many seconds: 900 at most.
    pub async fn send(&self, body: String, delay_s: i32) -> Result<(), QueueError> {
        Self::put(self.message(body, delay_s)).await
    }

    /// Sends a message of a group: where messages of one group pile up, SQS lets others go first.
    pub(crate) async fn send_of_group(&self, group: &str, body: String, delay_s: i32) -> Result<(), QueueError> {
        Self::put(self.message(body, delay_s).message_group_id(group)).await
    }

    fn message(&self, body: String, delay_s: i32) -> SendMessageFluentBuilder {
        self.client.send_message().queue_url(&self.url).message_body(body).delay_seconds(delay_s)
    }

    async fn put(message: SendMessageFluentBuilder) -> Result<(), QueueError> {
        on_the_heap(message.send()).await.map(drop).map_err(|error| QueueError::of(without_message(error)))
    }
}
