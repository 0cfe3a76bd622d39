//! Batch operations. Each entry has its own result; a malformed batch fails as a whole.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::operations::{MessageRequest, SendMessage};
use super::queue::MAX_MESSAGE_BYTES;
use super::{Sqs, error};
use crate::answer::ServiceError;

const MAX_ENTRIES: usize = 10;
const MAX_ID_LENGTH: usize = 80;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Batch<E> {
    queue_url: Option<String>,
    #[serde(default = "Vec::new")]
    entries: Vec<BatchEntry<E>>,
}

#[derive(Deserialize)]
struct BatchEntry<E> {
    #[serde(rename = "Id", default)]
    id: String,
    #[serde(flatten)]
    request: E,
}

/// The entries' results.
#[derive(Default)]
struct Results {
    successful: Vec<Value>,
    failed: Vec<Value>,
}

impl Sqs {
    pub(super) async fn send_message_batch(&self, batch: Batch<SendMessage>) -> Result<Value, ServiceError> {
        let (queue, settings) = self.queue_at(batch.queue_url.as_deref())?;
        let (mut results, mut messages, mut bytes) = (Results::default(), Vec::new(), 0);
        // One time for all, so that messages with the same delay become visible together, however slow the machine is.
        let now = self.0.time.now_ms();
        for entry in batch.validated()? {
            let accepted = self.accept(&queue, &settings, entry.request, now);
            results.add(
                &entry.id,
                accepted.map(|accepted| {
                    bytes += accepted.bytes;
                    messages.push(accepted.message);
                    accepted.result
                }),
            );
        }
        if bytes > MAX_MESSAGE_BYTES {
            return Err(error::batch_too_long(MAX_MESSAGE_BYTES, bytes));
        }
        self.store(messages).await?;
        Ok(results.render())
    }

    pub(super) async fn delete_message_batch(&self, batch: Batch<MessageRequest>) -> Result<Value, ServiceError> {
        let queue = self.queue_at(batch.queue_url.as_deref())?.0;
        let mut results = Results::default();
        for entry in batch.validated()? {
            results.add(&entry.id, self.delete_message(queue.clone(), entry.request).await);
        }
        Ok(results.render())
    }

    pub(super) async fn change_visibility_batch(&self, batch: Batch<MessageRequest>) -> Result<Value, ServiceError> {
        let queue = self.queue_at(batch.queue_url.as_deref())?.0;
        let mut results = Results::default();
        for entry in batch.validated()? {
            results.add(&entry.id, self.change_visibility(queue.clone(), entry.request).await);
        }
        Ok(results.render())
    }
}

impl<E> Batch<E> {
    /// Validates the batch and returns its entries.
    fn validated(self) -> Result<Vec<BatchEntry<E>>, ServiceError> {
        if self.entries.is_empty() {
            return Err(error::empty_batch());
        }
        if self.entries.len() > MAX_ENTRIES {
            return Err(error::too_many_entries(self.entries.len()));
        }
        let mut seen = HashSet::new();
        for BatchEntry { id, .. } in &self.entries {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if id.is_empty() || id.len() > MAX_ID_LENGTH || !id.chars().all(allowed) {
                return Err(error::invalid_entry_id());
            }
            if !seen.insert(id) {
                return Err(error::entry_ids_not_distinct(id));
            }
        }
        Ok(self.entries)
    }
}

impl Results {
    fn add(&mut self, id: &str, result: Result<Value, ServiceError>) {
        match result {
            Ok(mut result) => {
                result["Id"] = id.into();
                self.successful.push(result);
            }
            Err(error) => self.failed.push(json!({
                "Id": id,
                "SenderFault": error.status() < 500,
                "Code": error.code(),
                "Message": error.message(),
            })),
        }
    }

    /// Renders the lists that are not empty.
    fn render(self) -> Value {
        let lists = [("Successful", self.successful), ("Failed", self.failed)];
        let named = lists.into_iter().filter(|(_, list)| !list.is_empty());
        named.map(|(name, list)| (name.to_owned(), Value::Array(list))).collect::<Map<_, _>>().into()
    }
}
