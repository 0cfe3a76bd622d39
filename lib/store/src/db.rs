//! What all tables share: the client, item conversion, and how failures are told apart.
//!
//! Requests are made by [`Ask`]. A failed condition is an outcome. `TransactionConflict` means that another transaction
//! touched an item at the same moment: the write is tried again, a bounded number of times with jitter (module
//! `retry`). What the SDK gives up on after its own retries is [`StoreError::Unavailable`].

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use runtime::Environment;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::metering::Metering;

mod ask;
mod failure;
mod retry;
mod transaction;
mod update;

pub(crate) use ask::Ask;
pub(crate) use failure::failed;
pub(crate) use retry::MAX_ROUNDS;
pub(crate) use retry::backoff;
pub use retry::retry;
pub(crate) use retry::{Written, write};
pub(crate) use transaction::{Part, Refused, Transacted, Write};
pub(crate) use update::ItemUpdate;

/// A stored item.
pub(crate) type Item = HashMap<String, AttributeValue>;

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

    pub(crate) fn contention(what: &'static str) -> Self {
        Self::Unavailable { operation: "TransactWriteItems", source: format!("{what} kept changing").into() }
    }
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
                backoff(round).await;
                round += 1;
                let (some, unread) = self.ask_for(table, wanted).await?;
                found.extend(some);
                wanted = unread;
            }
        }
        Ok(found)
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
