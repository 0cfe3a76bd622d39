//! Event source mapping from a table's stream to a function: in order, one batch at a time, with a checkpoint.
//!
//! A failed batch is retried after a short pause in real time. `BisectBatchOnFunctionError` halves it until one record
//! is left. A record that fails more often than the template allows is skipped and logged by its sequence number.

use std::sync::Arc;
use std::time::Duration;

use local_aws::{Aws, Pattern, StoreError, StreamBatch};
use serde_json::{Value, json};

use super::{Failures, failures};
use crate::environments::Pool;
use crate::settle::Reader;
use crate::template::StreamSource;
use crate::work::Work;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A stream and its function.
pub struct StreamMapping {
    source: StreamSource,
    patterns: Vec<Pattern>,
    reader: Reader,
    pool: Arc<Pool>,
    aws: Aws,
    work: Work,
}

/// The outcome of a batch.
#[derive(Debug, PartialEq, Eq)]
enum BatchOutcome {
    /// The records up to this count succeeded.
    Done(usize),
    /// The first record failed.
    FirstFailed,
    /// The batch as a whole failed.
    BatchFailed,
}

/// The retries of a failing batch: its reduced size and its attempts.
#[derive(Debug, Default)]
struct RetryState {
    limit: Option<usize>,
    attempts: u64,
}

impl StreamMapping {
    /// Creates a mapping. `name` is the event's name in the template and distinguishes mappings of one stream.
    pub fn new(
        name: &str,
        source: StreamSource,
        pool: Arc<Pool>,
        aws: Aws,
        work: Work,
    ) -> Result<Self, crate::template::TemplateError> {
        let reader = Reader { table: source.table_name().to_owned(), consumer: format!("{}-{name}", pool.name()) };
        Ok(Self { patterns: source.patterns()?, source, reader, pool, aws, work })
    }

    /// The reader whose backlog `settle` waits for.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Reads the stream and invokes the function until the stack ends.
    pub async fn run(self: Arc<Self>) {
        let mut changes = self.aws.changes();
        let mut retry = RetryState::default();
        loop {
            changes.borrow_and_update();
            let limit = retry.limit.unwrap_or(self.source.batch_size);
            let result = match self.read(limit).await {
                Ok(batch) if batch.records.is_empty() => {
                    retry = RetryState::default();
                    if changes.changed().await.is_err() {
                        return;
                    }
                    continue;
                }
                Ok(batch) => self.handle_batch(batch, &mut retry).await,
                Err(error) => Err(error),
            };
            match result {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::error!(table = self.reader.table, %error, "cannot read the stream");
                    tokio::time::sleep(LONGEST_PAUSE).await;
                }
            }
        }
    }

    async fn handle_batch(&self, batch: StreamBatch, retry: &mut RetryState) -> Result<(), StoreError> {
        let _task = self.work.begin();
        let count = batch.records.len();
        match self.invoke(&batch.records).await {
            BatchOutcome::Done(done) => {
                if done == count {
                    self.commit(&batch).await?;
                } else {
                    self.commit(&self.read(done).await?).await?;
                }
                *retry = RetryState::default();
            }
            BatchOutcome::BatchFailed if self.source.bisect_batch_on_function_error && count > 1 => {
                retry.limit = Some(count.div_ceil(2));
                tokio::time::sleep(FIRST_PAUSE).await;
            }
            BatchOutcome::FirstFailed | BatchOutcome::BatchFailed => {
                retry.attempts += 1;
                if self.source.retries().is_some_and(|retries| retry.attempts > retries) {
                    tracing::error!(
                        table = self.reader.table,
                        sequence_number = sequence_number(&batch.records[0]),
                        "stream record skipped: too many failed attempts"
                    );
                    self.commit(&self.read(1).await?).await?;
                    *retry = RetryState::default();
                } else {
                    tokio::time::sleep(backoff(retry.attempts)).await;
                }
            }
        }
        Ok(())
    }

    async fn invoke(&self, records: &[Value]) -> BatchOutcome {
        let wanted: Vec<&Value> = records.iter().filter(|record| self.is_wanted(record)).collect();
        if wanted.is_empty() {
            return BatchOutcome::Done(records.len());
        }
        match self.pool.invoke(&self.reader.consumer, json!({ "Records": wanted })).await {
            Err(_logged) => BatchOutcome::BatchFailed,
            Ok(answer) if self.source.reports_failures() => outcome(&answer, records),
            Ok(_) => BatchOutcome::Done(records.len()),
        }
    }

    fn is_wanted(&self, record: &Value) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| pattern.matches(record))
    }

    async fn read(&self, limit: usize) -> Result<StreamBatch, StoreError> {
        self.aws.dynamodb().stream_read(&self.reader.table, &self.reader.consumer, limit).await
    }

    async fn commit(&self, batch: &StreamBatch) -> Result<(), StoreError> {
        self.aws.dynamodb().stream_commit(&self.reader.table, &self.reader.consumer, &batch.position).await
    }
}

/// Reads a partial batch response. The records before the first reported one succeeded.
fn outcome(answer: &Value, records: &[Value]) -> BatchOutcome {
    let items = match failures(answer) {
        Failures::Items(items) if items.is_empty() => return BatchOutcome::Done(records.len()),
        Failures::Items(items) => items,
        Failures::Everything => return BatchOutcome::BatchFailed,
    };
    match records.iter().position(|record| items.iter().any(|item| item == sequence_number(record))) {
        None => BatchOutcome::BatchFailed,
        Some(0) => BatchOutcome::FirstFailed,
        Some(done) => BatchOutcome::Done(done),
    }
}

fn backoff(attempts: u64) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

fn sequence_number(record: &Value) -> &str {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Value> {
        ["1", "2", "3"].map(|number| json!({"eventName": "INSERT", "dynamodb": {"SequenceNumber": number}})).into()
    }

    fn failed(items: &[&str]) -> Value {
        let items: Vec<Value> = items.iter().map(|item| json!({ "itemIdentifier": item })).collect();
        json!({ "batchItemFailures": items })
    }

    #[rstest::rstest]
    #[case(json!(null), BatchOutcome::Done(3))]
    #[case(failed(&[]), BatchOutcome::Done(3))]
    #[case(failed(&["3", "2"]), BatchOutcome::Done(1))]
    #[case(failed(&["1"]), BatchOutcome::FirstFailed)]
    #[case(failed(&["9"]), BatchOutcome::BatchFailed)]
    #[case(failed(&[""]), BatchOutcome::BatchFailed)]
    fn the_checkpoint_moves_to_the_first_failure(#[case] answer: Value, #[case] wanted: BatchOutcome) {
        assert_eq!(outcome(&answer, &records()), wanted);
    }

    #[test]
    fn backoff_grows_to_half_a_second() {
        assert_eq!(backoff(1), FIRST_PAUSE);
        assert_eq!(backoff(3), FIRST_PAUSE * 4);
        assert_eq!(backoff(u64::MAX), LONGEST_PAUSE);
    }
}
