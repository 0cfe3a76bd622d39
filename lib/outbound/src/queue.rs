//! An SQS queue: work for another function, or for the same function later.

use std::sync::Arc;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::ChangeMessageVisibilityBatchRequestEntry;
use runtime::{BoxError, Environment, without_message};

use crate::boxed;

/// Messages that one request takes.
pub(crate) const MAX_BATCH: usize = 10;

/// The queue refused a message or did not answer. After a call without an answer the message may be in the queue.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the queue did not take a message")]
pub struct QueueError(#[source] Arc<dyn std::error::Error + Send + Sync>);

impl QueueError {
    pub(crate) fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into().into())
    }
}

/// A received message that is received again after a wait.
#[derive(Debug, Clone)]
pub struct Redelivery {
    pub receipt: String,
    pub delay_s: u32,
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

    /// Makes received messages visible again after their waits, in place of the queue's visibility time-out.
    pub async fn redeliver(&self, messages: &[Redelivery]) -> Result<(), QueueError> {
        for batch in messages.chunks(MAX_BATCH) {
            let entries = batch.iter().enumerate().map(|(index, Redelivery { receipt, delay_s })| {
                let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(index.to_string());
                let entry = entry.receipt_handle(receipt).visibility_timeout(i32::try_from(*delay_s).unwrap_or(0));
                entry.build().expect("an id and a receipt are given")
            });
            let changing = self.client.change_message_visibility_batch().queue_url(&self.url);
            boxed(changing.set_entries(Some(entries.collect())).send())
                .await
                .map_err(|error| QueueError::new(without_message(error)))?;
        }
        Ok(())
    }

    /// Sends a message that arrives after `delay_s` seconds, at most 900.
    pub async fn send(&self, body: String, delay_s: i32) -> Result<(), QueueError> {
        let message = self.client.send_message().queue_url(&self.url).message_body(body).delay_seconds(delay_s);
        boxed(message.send()).await.map(drop).map_err(|error| QueueError::new(without_message(error)))
    }
}
