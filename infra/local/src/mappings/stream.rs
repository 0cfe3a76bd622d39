//! A table's stream to a function: in order, one batch at a time, and no further than what has succeeded.
//!
//! A batch that fails is tried again after a short wait in real time; with `BisectBatchOnFunctionError` it is halved until one
//! record is left. A record that fails more often than the template allows is skipped, and logged by its sequence number.

use std::sync::Arc;
use std::time::{Duration, Instant};

use local_aws::{Aws, StoreError, StreamBatch};
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
    patterns: Vec<Value>,
    reader: Reader,
    poll_interval: Option<Duration>,
    pool: Arc<Pool>,
    aws: Aws,
    work: Work,
}

/// What to do after a batch.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// The first so many records are done.
    Done(usize),
    /// The first record failed.
    Failed,
    /// The batch as a whole failed.
    FailedAsAWhole,
}

/// Where a batch that fails again and again has got to.
#[derive(Debug, Default)]
struct Trouble {
    limit: Option<usize>,
    attempts: u64,
}

impl StreamMapping {
    /// A mapping; `name` is the event's name in the template and tells mappings of one stream apart. The stream is looked at so often, or
    /// whenever something is written.
    pub fn new(
        name: &str,
        source: StreamSource,
        poll_interval: Option<Duration>,
        pool: Arc<Pool>,
        aws: Aws,
        work: Work,
    ) -> Result<Self, crate::template::TemplateError> {
        let reader = Reader { table: source.table_name().to_owned(), consumer: format!("{}-{name}", pool.name()) };
        Ok(Self { patterns: source.patterns()?, source, reader, poll_interval, pool, aws, work })
    }

    /// What `settle` has to look at.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Carries records until the stack ends.
    pub async fn run(self: Arc<Self>) {
        let mut changes = self.aws.changes();
        let mut trouble = Trouble::default();
        let began = Instant::now();
        loop {
            changes.borrow_and_update();
            let limit = trouble.limit.unwrap_or(self.source.batch_size);
            let step = match self.read(limit).await {
                Ok(batch) if batch.records.is_empty() => {
                    trouble = Trouble::default();
                    if changes.changed().await.is_err() {
                        return;
                    }
                    if let Some(interval) = self.poll_interval {
                        tokio::time::sleep(until_next_poll(began.elapsed(), interval)).await;
                    }
                    continue;
                }
                Ok(batch) => self.step(batch, &mut trouble).await,
                Err(error) => Err(error),
            };
            match step {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::error!(table = self.reader.table, %error, "the stream cannot be read");
                    tokio::time::sleep(LONGEST_PAUSE).await;
                }
            }
        }
    }

    async fn step(&self, batch: StreamBatch, trouble: &mut Trouble) -> Result<(), StoreError> {
        let _task = self.work.begin();
        let count = batch.records.len();
        match self.hand_over(&batch.records).await {
            Next::Done(done) => {
                if done == count {
                    self.commit(&batch).await?;
                } else {
                    self.commit(&self.read(done).await?).await?;
                }
                *trouble = Trouble::default();
            }
            Next::FailedAsAWhole if self.source.bisect_batch_on_function_error && count > 1 => {
                trouble.limit = Some(count.div_ceil(2));
                tokio::time::sleep(FIRST_PAUSE).await;
            }
            Next::Failed | Next::FailedAsAWhole => {
                trouble.attempts += 1;
                if self.source.retries().is_some_and(|retries| trouble.attempts > retries) {
                    tracing::error!(
                        table = self.reader.table,
                        sequence_number = sequence_number(&batch.records[0]),
                        "a record failed too often and is skipped"
                    );
                    self.commit(&self.read(1).await?).await?;
                    *trouble = Trouble::default();
                } else {
                    tokio::time::sleep(pause(trouble.attempts)).await;
                }
            }
        }
        Ok(())
    }

    async fn hand_over(&self, records: &[Value]) -> Next {
        let wanted: Vec<&Value> = records.iter().filter(|record| matches_any(&self.patterns, record)).collect();
        if wanted.is_empty() {
            return Next::Done(records.len());
        }
        match self.pool.invoke(&self.reader.consumer, json!({ "Records": wanted })).await {
            Err(_logged) => Next::FailedAsAWhole,
            Ok(answer) if self.source.reports_failures() => next(&answer, records),
            Ok(_) => Next::Done(records.len()),
        }
    }

    async fn read(&self, limit: usize) -> Result<StreamBatch, StoreError> {
        self.aws.dynamodb().stream_read(&self.reader.table, &self.reader.consumer, limit).await
    }

    async fn commit(&self, batch: &StreamBatch) -> Result<(), StoreError> {
        self.aws.dynamodb().stream_commit(&self.reader.table, &self.reader.consumer, &batch.position).await
    }
}

/// The checkpoint moves to before the first record that is reported.
fn next(answer: &Value, records: &[Value]) -> Next {
    let items = match failures(answer) {
        Failures::Items(items) if items.is_empty() => return Next::Done(records.len()),
        Failures::Items(items) => items,
        Failures::Everything => return Next::FailedAsAWhole,
    };
    match records.iter().position(|record| items.iter().any(|item| item == sequence_number(record))) {
        None => Next::FailedAsAWhole,
        Some(0) => Next::Failed,
        Some(done) => Next::Done(done),
    }
}

/// Polls come at fixed times, whatever is written between them.
fn until_next_poll(elapsed: Duration, interval: Duration) -> Duration {
    let polls = elapsed.as_nanos() / interval.as_nanos().max(1) + 1;
    (interval * u32::try_from(polls).unwrap_or(u32::MAX)).saturating_sub(elapsed)
}

fn pause(attempts: u64) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

fn sequence_number(record: &Value) -> &str {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default()
}

fn matches_any(patterns: &[Value], record: &Value) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, record))
}

/// Event filtering, as far as streams need it: nested objects, and lists of values one of which the field has to have.
fn matches(pattern: &Value, value: &Value) -> bool {
    match pattern {
        Value::Object(fields) => fields.iter().all(|(name, inner)| matches(inner, &value[name])),
        Value::Array(allowed) => allowed.iter().any(|one| match one {
            Value::Object(rule) => {
                rule.get("prefix")
                    .and_then(Value::as_str)
                    .is_some_and(|prefix| value.as_str().is_some_and(|text| text.starts_with(prefix)))
                    || rule.get("exists").and_then(Value::as_bool).is_some_and(|exists| exists != value.is_null())
            }
            plain => plain == value,
        }),
        plain => plain == value,
    }
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
    #[case(json!(null), Next::Done(3))]
    #[case(failed(&[]), Next::Done(3))]
    #[case(failed(&["3", "2"]), Next::Done(1))]
    #[case(failed(&["1"]), Next::Failed)]
    #[case(failed(&["9"]), Next::FailedAsAWhole)]
    #[case(failed(&[""]), Next::FailedAsAWhole)]
    fn the_checkpoint_moves_to_the_first_failure(#[case] answer: Value, #[case] wanted: Next) {
        assert_eq!(next(&answer, &records()), wanted);
    }

    #[rstest::rstest]
    #[case(json!({"eventName": ["INSERT", "MODIFY"]}), true)]
    #[case(json!({"eventName": ["REMOVE"]}), false)]
    #[case(json!({"eventName": [{"prefix": "INS"}]}), true)]
    #[case(json!({"dynamodb": {"SequenceNumber": ["1"]}}), true)]
    #[case(json!({"dynamodb": {"NewImage": [{"exists": false}]}}), true)]
    #[case(json!({"dynamodb": {"NewImage": {"kind": {"S": ["x"]}}}}), false)]
    fn patterns_select_records(#[case] pattern: Value, #[case] wanted: bool) {
        assert_eq!(matches_any(&[pattern], &records()[0]), wanted);
        assert!(matches_any(&[], &records()[0]));
    }

    #[rstest::rstest]
    #[case(0, 250)]
    #[case(1, 249)]
    #[case(250, 250)]
    #[case(1_100, 150)]
    fn polls_come_at_fixed_times(#[case] elapsed_ms: u64, #[case] rest_ms: u64) {
        let rest = until_next_poll(Duration::from_millis(elapsed_ms), Duration::from_millis(250));
        assert_eq!(rest, Duration::from_millis(rest_ms));
    }

    #[test]
    fn waits_grow_to_half_a_second() {
        assert_eq!(pause(1), FIRST_PAUSE);
        assert_eq!(pause(3), FIRST_PAUSE * 4);
        assert_eq!(pause(u64::MAX), LONGEST_PAUSE);
    }
}
