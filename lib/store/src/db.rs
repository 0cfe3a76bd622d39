//! What all tables share: the client, item conversion, and how failures are told apart.
//!
//! Requests are made by [`Ask`]. A failed condition is an outcome. `TransactionConflict` means that another transaction touched an item at
//! the same moment: it is retried here, a bounded number of times with jitter. What the SDK gives up on after its own retries is
//! [`StoreError::Unavailable`].

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::builders::{ConditionCheckBuilder, DeleteBuilder, PutBuilder, UpdateBuilder};
use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, KeysAndAttributes, Put, TransactWriteItem};
use runtime::{Environment, error_chain, random_bytes};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::metering::Metering;

mod ask;
mod failure;

pub(crate) use ask::Ask;
pub(crate) use failure::failed;

/// A stored item.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// How often a write that met another transaction is tried, the first time included.
const MAX_CONFLICT_ATTEMPTS: u32 = 12;
/// Longest wait before the second try; doubled each time up to [`LONGEST_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_millis(10);
const LONGEST_BACKOFF: Duration = Duration::from_millis(320);

/// How often a change that lost a race is decided anew.
pub const MAX_ROUNDS: u32 = 20;

/// Keys that one BatchGetItem takes.
const MAX_BATCH_KEYS: usize = 100;

/// A global secondary index.
pub(crate) struct Index<'a> {
    pub(crate) table: &'a str,
    pub(crate) name: &'a str,
    /// Its partition key.
    pub(crate) hash: &'a str,
}

/// What goes wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No answer, or no capacity, after retries. A write may or may not have happened.
    #[error("the store did not answer {operation}")]
    Unavailable {
        operation: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store refused the request itself: a bug, or a missing permission.
    #[error("the store refused {operation}")]
    Refused {
        operation: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An item does not have the form that it was written in.
    #[error("a stored {entity} cannot be read: {reason}")]
    Corrupt { entity: &'static str, reason: String },
}

impl StoreError {
    pub(crate) fn corrupt(entity: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Corrupt { entity, reason: reason.to_string() }
    }

    /// A change lost the race each time that it was decided: nothing of it has happened, and it may be tried again.
    pub fn kept_changing(what: &'static str) -> Self {
        Self::Unavailable { operation: "TransactWriteItems", source: format!("{what} kept changing").into() }
    }
}

/// What came of a conditional write.
pub(crate) enum Written<T> {
    Done(T),
    /// The condition failed; the item as it is, where it exists and was asked for.
    Refused(Option<Item>),
}

/// What came of a transaction.
pub(crate) enum Transacted {
    Done,
    /// A condition failed; for each item in order the reason's code and, where asked for, the item as it is.
    Refused(Vec<CancellationReason>),
}

/// The DynamoDB client of a function environment.
#[derive(Clone)]
pub struct Db {
    client: Client,
}

impl Db {
    /// A client with the environment's settings.
    pub fn new(env: &Environment) -> Self {
        let config = aws_sdk_dynamodb::config::Builder::from(env.sdk()).interceptor(Metering).build();
        Self { client: Client::from_conf(config) }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The item with that key, consistently.
    pub(crate) async fn get(&self, table: &str, key: Item) -> Result<Option<Item>, StoreError> {
        let get = self.client.get_item().table_name(table).set_key(Some(key)).consistent_read(true);
        let got = get.ask().await;
        Ok(got.map_err(|error| failed("GetItem", error))?.item)
    }

    /// The items with these keys, consistently, in no order. What is not there is left out.
    pub(crate) async fn read(&self, table: &str, keys: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        let mut found = Vec::new();
        for chunk in keys.chunks(MAX_BATCH_KEYS) {
            let (mut wanted, mut round) = (chunk.to_vec(), 0);
            // What DynamoDB had no room for, or no capacity, is asked for again.
            while !wanted.is_empty() {
                if round == MAX_ROUNDS {
                    let source = format!("{} items are left unread", wanted.len()).into();
                    return Err(StoreError::Unavailable { operation: "BatchGetItem", source });
                }
                stand_back(round).await;
                round += 1;
                let (some, unread) = self.ask_for(table, wanted).await?;
                found.extend(some);
                wanted = unread;
            }
        }
        Ok(found)
    }

    /// Those of the items with these keys, of at most a hundred, that one request finds, and the keys of those that it has not read.
    pub(crate) async fn read_some(&self, table: &str, keys: Vec<Item>) -> (Vec<Item>, Vec<Item>) {
        self.ask_for(table, keys.clone()).await.unwrap_or_else(|error| {
            tracing::warn!(error = error_chain(&error), "items are read one by one");
            (Vec::new(), keys)
        })
    }

    async fn ask_for(&self, table: &str, keys: Vec<Item>) -> Result<(Vec<Item>, Vec<Item>), StoreError> {
        let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build();
        let request = self.client.batch_get_item();
        let got = request.request_items(table, wanted.expect("keys are given")).ask().await;
        let got = got.map_err(|error| failed("BatchGetItem", error))?;
        let found = got.responses.unwrap_or_default().remove(table).unwrap_or_default();
        let unread = got.unprocessed_keys.unwrap_or_default().remove(table);
        Ok((found, unread.map(|unread| unread.keys).unwrap_or_default()))
    }

    /// The keys of all items in one partition of an index, as far as the index knows them.
    pub(crate) async fn keys_in(&self, index: &Index<'_>, value: &str) -> Result<Vec<Item>, StoreError> {
        query_all(self.query_keys(index, value)).await
    }

    /// A query of those keys.
    pub(crate) fn query_keys(&self, index: &Index<'_>, value: &str) -> QueryFluentBuilder {
        let query = self.client.query().table_name(index.table).index_name(index.name);
        query
            .key_condition_expression("#hash = :value")
            .expression_attribute_names("#hash", index.hash)
            .expression_attribute_values(":value", s(value))
    }

    /// Carries out all of the writes or none.
    pub(crate) async fn transact(&self, writes: &[TransactWriteItem]) -> Result<Transacted, StoreError> {
        let written = retrying_conflicts("TransactWriteItems", || {
            let request = self.client.transact_write_items();
            request.set_transact_items(Some(writes.to_vec())).ask()
        });
        match written.await? {
            Attempted::Done(_) => Ok(Transacted::Done),
            Attempted::Refused(Refusal::Transaction(reasons)) => Ok(Transacted::Refused(reasons)),
            Attempted::Refused(Refusal::Item(_)) => Ok(Transacted::Refused(Vec::new())),
        }
    }
}

/// Everything that a query finds, in its order, however many pages that takes.
pub(crate) async fn query_all(query: QueryFluentBuilder) -> Result<Vec<Item>, StoreError> {
    let mut found = Vec::new();
    let mut start = None;
    loop {
        let page = query.clone().set_exclusive_start_key(start).ask().await;
        let page = page.map_err(|error| failed("Query", error))?;
        found.extend(page.items.unwrap_or_default());
        start = page.last_evaluated_key;
        if start.is_none() {
            return Ok(found);
        }
    }
}

/// Whether the reason at `index` is a failed condition.
pub(crate) fn refused_at(reasons: &[CancellationReason], index: usize) -> bool {
    reasons.get(index).and_then(CancellationReason::code) == Some("ConditionalCheckFailed")
}

/// Tries a single-item write; see the module's header.
pub(crate) async fn write<T, E, F, Fut>(operation: &'static str, attempt: F) -> Result<Written<T>, StoreError>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, SdkError<E>>>,
    E: WriteFailure,
{
    match retrying_conflicts(operation, attempt).await? {
        Attempted::Done(output) => Ok(Written::Done(output)),
        Attempted::Refused(Refusal::Item(old)) => Ok(Written::Refused(old)),
        Attempted::Refused(Refusal::Transaction(_)) => Ok(Written::Refused(None)),
    }
}

/// A failed condition.
pub(crate) enum Refusal {
    Item(Option<Item>),
    Transaction(Vec<CancellationReason>),
}

enum Attempted<T> {
    Done(T),
    Refused(Refusal),
}

/// What a write's error says about its condition.
pub(crate) trait WriteFailure: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static {
    /// The failed condition, if it was one.
    fn refusal(&self) -> Option<Refusal>;
    /// Whether another transaction was in the way.
    fn is_conflict(&self) -> bool;
}

macro_rules! single_item_failure {
    ($($error:ident)*) => {$(
        impl WriteFailure for $error {
            fn refusal(&self) -> Option<Refusal> {
                match self {
                    Self::ConditionalCheckFailedException(failed) => Some(Refusal::Item(failed.item().cloned())),
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

impl WriteFailure for TransactWriteItemsError {
    fn refusal(&self) -> Option<Refusal> {
        let Self::TransactionCanceledException(cancelled) = self else { return None };
        let reasons = cancelled.cancellation_reasons();
        let failed = reasons.iter().any(|reason| reason.code() == Some("ConditionalCheckFailed"));
        failed.then(|| Refusal::Transaction(reasons.to_vec()))
    }

    fn is_conflict(&self) -> bool {
        let passing = |reason: &CancellationReason| {
            matches!(reason.code(), Some("TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded"))
        };
        match self {
            Self::TransactionCanceledException(cancelled) => cancelled.cancellation_reasons().iter().any(passing),
            _ => false,
        }
    }
}

async fn retrying_conflicts<T, E, F, Fut>(operation: &'static str, attempt: F) -> Result<Attempted<T>, StoreError>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, SdkError<E>>>,
    E: WriteFailure,
{
    let mut backoff = FIRST_BACKOFF;
    for made in 1.. {
        let error = match attempt().await {
            Ok(output) => return Ok(Attempted::Done(output)),
            Err(error) => error,
        };
        let service_error = error.as_service_error();
        if let Some(refusal) = service_error.and_then(WriteFailure::refusal) {
            return Ok(Attempted::Refused(refusal));
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

/// Waits before a change that lost a race is decided anew: not at all before the first round, longer before each later one, up to a second.
pub async fn stand_back(round: u32) {
    if round > 0 {
        let longest = FIRST_BACKOFF.saturating_mul(1 << round.min(8)).min(3 * LONGEST_BACKOFF);
        tokio::time::sleep(jittered(longest)).await;
    }
}

/// Between nothing and the whole of `longest`: transactions that met must not meet again.
fn jittered(longest: Duration) -> Duration {
    longest.mul_f64(f64::from(u16::from_be_bytes(random_bytes())) / f64::from(u16::MAX))
}

/// A put as part of a transaction.
pub(crate) fn putting(put: PutBuilder) -> TransactWriteItem {
    TransactWriteItem::builder().put(put.build().expect("a table and an item are given")).build()
}

/// A put as part of a transaction, in the place of the item with that version, or where there is none.
pub(crate) fn putting_over(table: &str, item: Item, version: Option<u64>) -> TransactWriteItem {
    let put = Put::builder().table_name(table).set_item(Some(item));
    putting(match version {
        None => put.condition_expression("attribute_not_exists(pk)"),
        Some(version) => {
            put.condition_expression("version = :version").expression_attribute_values(":version", n(version))
        }
    })
}

/// An update as part of a transaction.
pub(crate) fn updating(update: UpdateBuilder) -> TransactWriteItem {
    TransactWriteItem::builder().update(update.build().expect("a table, a key and an expression are given")).build()
}

/// A delete as part of a transaction.
pub(crate) fn deleting(delete: DeleteBuilder) -> TransactWriteItem {
    TransactWriteItem::builder().delete(delete.build().expect("a table and a key are given")).build()
}

/// A condition as part of a transaction.
pub(crate) fn checking(check: ConditionCheckBuilder) -> TransactWriteItem {
    TransactWriteItem::builder()
        .condition_check(check.build().expect("a table, a key and a condition are given"))
        .build()
}

/// A string attribute.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A number attribute.
pub(crate) fn n(number: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A binary attribute.
pub(crate) fn b(bytes: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(aws_sdk_dynamodb::primitives::Blob::new(bytes))
}

/// An item's sort key.
pub(crate) fn sk_of(item: &Item) -> &str {
    item.get("sk").and_then(|sk| sk.as_s().ok()).map_or("", String::as_str)
}

/// A record as an item. Records are plain structs of ours: they convert.
pub(crate) fn to_item<T: Serialize>(record: &T) -> Item {
    serde_dynamo::to_item(record).expect("a record converts to an item")
}

/// An item as the record that it was written from.
pub(crate) fn from_item<T: DeserializeOwned>(entity: &'static str, item: Item) -> Result<T, StoreError> {
    serde_dynamo::from_item(item).map_err(|error| crate::unreadable::unreadable(entity, error))
}

/// A record inside an item.
pub(crate) fn to_attribute<T: Serialize>(record: &T) -> AttributeValue {
    serde_dynamo::to_attribute_value(record).expect("a record converts to an attribute")
}
