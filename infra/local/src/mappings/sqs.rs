//! A queue's messages to a function, several batches at once.

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

/// Batches of a queue at once where the template does not say how many.
const DEFAULT_CONCURRENCY: usize = 10;
/// A machine that runs all functions at once has a fraction of what the template asks of Lambda: so much of its limits counts here.
const SHARE: usize = 5;
/// A limit of no more than this counts in full.
const SMALL_CONCURRENCY: usize = 10;
/// After an error of the store.
const PAUSE: Duration = Duration::from_millis(500);

/// A queue and its function.
pub struct SqsMapping {
    /// What the template says of it.
    pub source: SqsSource,
    /// The function.
    pub pool: Arc<Pool>,
    /// Batches at once; by what the template says where it is not given.
    pub batches_at_once: Option<usize>,
    /// Where the queue is.
    pub aws: Aws,
    /// What counts the invocations.
    pub work: Work,
}

/// How many batches of a queue are handled at once, by what the template says.
fn concurrency(limit: Option<usize>) -> usize {
    let limit = limit.unwrap_or(DEFAULT_CONCURRENCY);
    (limit / SHARE).max(limit.min(SMALL_CONCURRENCY)).max(1)
}

impl SqsMapping {
    /// Carries messages until the stack ends.
    pub async fn run(self: Arc<Self>) {
        let at_once = self.batches_at_once.unwrap_or_else(|| concurrency(self.source.maximum_concurrency()));
        let slots = Arc::new(Semaphore::new(at_once));
        let queue = self.source.queue_name();
        let mut changes = self.aws.changes();
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            // Read before the queue is: what arrives later is noticed.
            changes.borrow_and_update();
            match self.aws.sqs().receive_for_mapping(queue, self.source.batch_size).await {
                Ok(records) if records.is_empty() => {
                    drop(slot);
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
                Ok(records) => {
                    tokio::spawn(Arc::clone(&self).batch(records, slot));
                }
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::error!(queue, %error, "messages cannot be received");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn batch(self: Arc<Self>, records: Vec<Value>, _slot: OwnedSemaphorePermit) {
        let _task = self.work.begin();
        let queue = self.source.queue_name();
        let identities: Vec<Identity> = records.iter().map(Identity::of).collect();
        let answer = self.pool.invoke(queue, json!({ "Records": records })).await;
        let failed = match answer {
            Err(_logged) => Failures::Everything,
            Ok(answer) if self.source.reports_failures() => failures(&answer),
            Ok(_) => Failures::Items(Vec::new()),
        };
        let (succeeded, failed) = split(identities, failed);
        if let Err(error) = self.aws.sqs().finish(queue, &succeeded, &failed).await {
            tracing::error!(queue, %error, "the outcome of a batch cannot be stored");
        }
    }
}

struct Identity {
    message_id: String,
    receipt_handle: String,
}

impl Identity {
    fn of(record: &Value) -> Self {
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        Self { message_id: text("messageId"), receipt_handle: text("receiptHandle") }
    }
}

/// Receipt handles of what succeeded and of what failed. An identifier that is not in the batch fails all of it.
fn split(batch: Vec<Identity>, failed: Failures) -> (Vec<String>, Vec<String>) {
    let known: HashSet<&str> = batch.iter().map(|identity| identity.message_id.as_str()).collect();
    let failed: HashSet<String> = match failed {
        Failures::Items(items) if items.iter().all(|item| known.contains(item.as_str())) => items.into_iter().collect(),
        _ => known.into_iter().map(str::to_owned).collect(),
    };
    let (failed, succeeded): (Vec<Identity>, Vec<Identity>) =
        batch.into_iter().partition(|identity| failed.contains(&identity.message_id));
    let handles = |part: Vec<Identity>| part.into_iter().map(|identity| identity.receipt_handle).collect();
    (handles(succeeded), handles(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Vec<Identity> {
        let records =
            [json!({"messageId": "a", "receiptHandle": "ra"}), json!({"messageId": "b", "receiptHandle": "rb"})];
        records.iter().map(Identity::of).collect()
    }

    fn texts(items: &[&str]) -> Vec<String> {
        items.iter().map(|&item| item.to_owned()).collect()
    }

    #[test]
    fn only_what_is_reported_fails() {
        assert_eq!(split(batch(), Failures::Items(texts(&["b"]))), (texts(&["ra"]), texts(&["rb"])));
        assert_eq!(split(batch(), Failures::Items(vec![])), (texts(&["ra", "rb"]), vec![]));
    }

    #[test]
    fn a_report_that_makes_no_sense_fails_everything() {
        for failed in [Failures::Everything, Failures::Items(texts(&["b", "z"]))] {
            assert_eq!(split(batch(), failed), (vec![], texts(&["ra", "rb"])));
        }
    }
}
