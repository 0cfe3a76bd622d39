//! Event source mapping from a queue to a function, with several concurrent batches.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use local_aws::{Aws, StoreError};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Failures, failures};
use crate::environments::Pool;
use crate::template::SqsSource;
use crate::work::Work;

/// Concurrent batches of a queue for which the template sets no limit.
const DEFAULT_CONCURRENCY: usize = 10;
/// Divisor of the template's limits, since one machine runs all functions.
const CONCURRENCY_DIVISOR: usize = 5;
/// A limit up to this value is not divided.
const SMALL_CONCURRENCY: usize = 10;
/// Pause after an error of the store.
const ERROR_PAUSE: Duration = Duration::from_millis(500);

/// A queue and its function.
pub struct SqsMapping {
    /// The event source in the template.
    pub source: SqsSource,
    /// The function.
    pub pool: Arc<Pool>,
    /// The AWS endpoint that holds the queue.
    pub aws: Aws,
    /// The count of running invocations.
    pub work: Work,
}

/// Returns the number of concurrent batches for the template's limit.
fn concurrency(limit: Option<usize>) -> usize {
    let limit = limit.unwrap_or(DEFAULT_CONCURRENCY);
    (limit / CONCURRENCY_DIVISOR).max(limit.min(SMALL_CONCURRENCY)).max(1)
}

impl SqsMapping {
    /// Polls the queue and invokes the function until the stack ends.
    pub async fn run(self: Arc<Self>) {
        let permits = Arc::new(Semaphore::new(concurrency(self.source.maximum_concurrency())));
        let queue = self.source.queue_name();
        let mut changes = self.aws.changes();
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            // Marked as seen before the queue is read, so that a later message wakes the loop.
            changes.borrow_and_update();
            match self.aws.sqs().receive_for_mapping(queue, self.source.batch_size).await {
                Ok(records) if records.is_empty() => {
                    drop(permit);
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
                Ok(records) => {
                    tokio::spawn(Arc::clone(&self).handle_batch(records, permit));
                }
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::error!(queue, %error, "cannot receive messages");
                    tokio::time::sleep(ERROR_PAUSE).await;
                }
            }
        }
    }

    async fn handle_batch(self: Arc<Self>, records: Vec<Value>, _permit: OwnedSemaphorePermit) {
        let _task = self.work.begin();
        let queue = self.source.queue_name();
        let handles: Vec<MessageHandle> = records.iter().map(MessageHandle::of).collect();
        let answer = self.pool.invoke(queue, json!({ "Records": records })).await;
        let failed = match answer {
            Err(_logged) => Failures::Everything,
            Ok(answer) if self.source.reports_failures() => failures(&answer),
            Ok(_) => Failures::Items(Vec::new()),
        };
        let (succeeded, failed) = split(handles, failed);
        if let Err(error) = self.aws.sqs().finish(queue, &succeeded, &failed).await {
            tracing::error!(queue, %error, "cannot store the outcome of a batch");
        }
    }
}

struct MessageHandle {
    message_id: String,
    receipt_handle: String,
}

impl MessageHandle {
    fn of(record: &Value) -> Self {
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        Self { message_id: text("messageId"), receipt_handle: text("receiptHandle") }
    }
}

/// Returns the receipt handles of the succeeded and of the failed messages. An unknown identifier fails the whole
/// batch.
fn split(batch: Vec<MessageHandle>, failed: Failures) -> (Vec<String>, Vec<String>) {
    let known: HashSet<&str> = batch.iter().map(|handle| handle.message_id.as_str()).collect();
    let failed: HashSet<String> = match failed {
        Failures::Items(items) if items.iter().all(|item| known.contains(item.as_str())) => items.into_iter().collect(),
        _ => known.into_iter().map(str::to_owned).collect(),
    };
    let (failed, succeeded): (Vec<MessageHandle>, Vec<MessageHandle>) =
        batch.into_iter().partition(|handle| failed.contains(&handle.message_id));
    let receipts = |part: Vec<MessageHandle>| part.into_iter().map(|handle| handle.receipt_handle).collect();
    (receipts(succeeded), receipts(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Vec<MessageHandle> {
        let records =
            [json!({"messageId": "a", "receiptHandle": "ra"}), json!({"messageId": "b", "receiptHandle": "rb"})];
        records.iter().map(MessageHandle::of).collect()
    }

    fn texts(items: &[&str]) -> Vec<String> {
        items.iter().map(|&item| item.to_owned()).collect()
    }

    #[test]
    fn only_reported_messages_fail() {
        assert_eq!(split(batch(), Failures::Items(texts(&["b"]))), (texts(&["ra"]), texts(&["rb"])));
        assert_eq!(split(batch(), Failures::Items(vec![])), (texts(&["ra", "rb"]), vec![]));
    }

    #[test]
    fn a_malformed_report_fails_the_whole_batch() {
        for failed in [Failures::Everything, Failures::Items(texts(&["b", "z"]))] {
            assert_eq!(split(batch(), failed), (vec![], texts(&["ra", "rb"])));
        }
    }
}
