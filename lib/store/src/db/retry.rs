//! Retries of conflicting writes, with backoff.

use std::future::Future;
use std::time::Duration;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use runtime::random_bytes;

use super::{Item, StoreError, failed};

/// Attempts at a write that conflicts with other transactions, the first included.
const MAX_CONFLICT_ATTEMPTS: u32 = 12;
/// Longest wait before the second attempt; doubled each time up to [`LONGEST_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_millis(10);
const LONGEST_BACKOFF: Duration = Duration::from_millis(320);

/// Rounds of a read-decide-write loop that keeps losing races.
pub(crate) const MAX_ROUNDS: u32 = 20;

/// The result of a conditional write.
pub(crate) enum Written<T> {
    Done(T),
    /// The condition failed; the current item, if it exists.
    Refused(Option<Item>),
}

impl<T> Written<T> {
    pub(crate) fn map<U>(self, to: impl FnOnce(T) -> U) -> Written<U> {
        match self {
            Self::Done(output) => Written::Done(to(output)),
            Self::Refused(item) => Written::Refused(item),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// Makes a single-item write, and repeats it while other transactions conflict.
pub(super) async fn write<T, E, F, Fut>(operation: &'static str, attempt: F) -> Result<Written<T>, StoreError>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, SdkError<E>>>,
    E: WriteFailure<Refusal = Option<Item>>,
{
    Ok(match retrying_conflicts(operation, attempt).await? {
        Ok(output) => Written::Done(output),
        Err(old) => Written::Refused(old),
    })
}

/// Classification of a write's error.
pub(super) trait WriteFailure: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static {
    /// The data of a failed condition.
    type Refusal;
    /// The data of the failed condition, if the error is one.
    fn refusal(&self) -> Option<Self::Refusal>;
    /// Returns true if another transaction conflicted.
    fn is_conflict(&self) -> bool;
}

macro_rules! single_item_failure {
    ($($error:ident)*) => {$(
        impl WriteFailure for $error {
            type Refusal = Option<Item>;

            fn refusal(&self) -> Option<Option<Item>> {
                match self {
                    Self::ConditionalCheckFailedException(failed) => Some(failed.item().cloned()),
                    _ => None,
                }
            }
            fn is_conflict(&self) -> bool {
                matches!(self, Self::TransactionConflictException(_))
            }
        }
    )*};
}
single_item_failure! { PutItemError UpdateItemError DeleteItemError }

/// Makes a write, and repeats it while other transactions conflict. The inner error is a failed condition.
pub(super) async fn retrying_conflicts<T, E, F, Fut>(
    operation: &'static str,
    attempt: F,
) -> Result<Result<T, E::Refusal>, StoreError>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, SdkError<E>>>,
    E: WriteFailure,
{
    let mut backoff = FIRST_BACKOFF;
    for made in 1.. {
        let error = match attempt().await {
            Ok(output) => return Ok(Ok(output)),
            Err(error) => error,
        };
        let service_error = error.as_service_error();
        if let Some(refusal) = service_error.and_then(WriteFailure::refusal) {
            return Ok(Err(refusal));
        }
        if !service_error.is_some_and(WriteFailure::is_conflict) {
            return Err(failed(operation, error));
        }
        if made == MAX_CONFLICT_ATTEMPTS {
            return Err(StoreError::Unavailable { operation, source: Box::new(error) });
        }
        tokio::time::sleep(jittered(backoff)).await;
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
    }
    unreachable!("the loop ends by returning")
}

/// Makes attempts until one returns a value, with backoff between them. An attempt returns `None` if a concurrent write
/// was in the way.
pub async fn retry<T, E, Fut>(what: &'static str, mut attempt: impl FnMut() -> Fut) -> Result<T, E>
where
    Fut: Future<Output = Result<Option<T>, E>>,
    E: From<StoreError>,
{
    for round in 0..MAX_ROUNDS {
        backoff(round).await;
        if let Some(settled) = attempt().await? {
            return Ok(settled);
        }
    }
    Err(StoreError::contention(what).into())
}

/// Waits before a round: no time before the first, longer before each later one, up to a second.
pub(crate) async fn backoff(round: u32) {
    if round > 0 {
        let longest = FIRST_BACKOFF.saturating_mul(1 << round.min(8)).min(3 * LONGEST_BACKOFF);
        tokio::time::sleep(jittered(longest)).await;
    }
}

/// A random duration up to `longest`, so that conflicting transactions do not meet again.
fn jittered(longest: Duration) -> Duration {
    longest.mul_f64(f64::from(u16::from_be_bytes(random_bytes())) / f64::from(u16::MAX))
}
