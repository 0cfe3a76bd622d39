//! An SQS queue: work for another function, or for the same function later.

use std::sync::Arc;

use aws_sdk_sqs::Client;
use runtime::{BoxError, Environment, without_message};

use crate::boxed;

/// The queue refused a message or did not answer. After a call without an answer the message may be in the queue.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the queue did not take a message")]
pub struct QueueError(#[source] Arc<dyn std::error::Error + Send + Sync>);

impl QueueError {
    pub(crate) fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into().into())
    }
}

/// An SQS queue.
#[derive(Clone)]
pub struct Queue {
    client: Client,
    url: String,
}

impl Queue {
    /// The queue whose URL is in the environment variable `url_variable`.
    pub fn new(env: &Environment, url_variable: &str) -> Result<Self, BoxError> {
        Ok(Self { client: Client::new(env.sdk()), url: env.config().get(url_variable)?.to_owned() })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a message that arrives after `delay_s` seconds, at most 900.
    pub async fn send(&self, body: String, delay_s: i32) -> Result<(), QueueError> {
        let message = self.client.send_message().queue_url(&self.url).message_body(body).delay_seconds(delay_s);
        boxed(message.send()).await.map(drop).map_err(|error| QueueError::new(without_message(error)))
    }
}
