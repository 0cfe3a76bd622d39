//! The parts that all tables share: the client, item conversion, and kinds of failures.
//!
//! Requests are sent by [`MeteredRequest`]. A failed condition is an outcome. `TransactionConflict` means that another
//! transaction touched an item at the same moment: module `retry` repeats the write with backoff, a limited number of
//! times. [`StoreError::Unavailable`] is a failure that remains after the SDK's own retries.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::types::AttributeValue;
use runtime::Environment;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::metering::Metering;

mod failure;
mod item_write;
mod request;
mod retry;
mod table;
mod transaction;

pub use failure::StoreError;
pub(crate) use failure::failed;
pub(crate) use item_write::ItemWrite;
pub(crate) use request::MeteredRequest;
pub use retry::retry;
pub(crate) use retry::{MAX_ROUNDS, Written, backoff};
pub(crate) use table::{QueryPage, Table, query_all, query_count, query_page, query_up_to};
pub(crate) use transaction::Transacted;
pub use transaction::{Part, RefusedTransaction, Write};

/// A stored item.
pub(crate) type Item = HashMap<String, AttributeValue>;

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

    /// A client that tries each call once, for a limited time. Its other time-outs are those of all clients: the SDK
    /// shares connections among clients with the same ones.
    pub(crate) fn with_one_try(env: &Environment, within: Duration) -> Self {
        let timeouts = env.sdk().timeout_config().map_or_else(TimeoutConfig::builder, TimeoutConfig::to_builder);
        let config = aws_sdk_dynamodb::config::Builder::from(env.sdk())
            .interceptor(Metering)
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts.operation_timeout(within).build());
        Self { client: Client::from_conf(config.build()) }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
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

/// The key of an item in a table without sort keys.
pub(crate) fn pk(pk: impl Into<String>) -> Item {
    Item::from([("pk".to_owned(), s(pk))])
}

/// The key of an item.
pub(crate) fn key(pk: impl Into<String>, sk: impl Into<String>) -> Item {
    Item::from([("pk".to_owned(), s(pk)), ("sk".to_owned(), s(sk))])
}

/// The key of an item, such as one that an index has.
pub(crate) fn key_of(item: &Item) -> Item {
    key(text(item, "pk"), text(item, "sk"))
}

/// The text of an attribute; empty if the attribute is absent.
pub(crate) fn text<'a>(item: &'a Item, name: &str) -> &'a str {
    item.get(name).and_then(|value| value.as_s().ok()).map_or("", String::as_str)
}

/// An item's sort key.
pub(crate) fn sk_of(item: &Item) -> &str {
    text(item, "sk")
}

/// The number of an attribute.
pub(crate) fn number<T: FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

/// Converts a record to an item. Absent members have no attribute.
pub(crate) fn to_item<T: Serialize>(record: &T) -> Item {
    to_attributes(record).filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Converts the members of a record to attributes; `None` for an absent one.
pub(crate) fn to_attributes<T: Serialize>(record: &T) -> impl Iterator<Item = (String, Option<AttributeValue>)> {
    let item: Item = serde_dynamo::to_item(record).expect("a record converts to an item");
    item.into_iter().map(|(name, value)| (name, Some(value).filter(|value| !value.is_null())))
}

/// Converts an item back to the record that it was written from.
pub(crate) fn from_item<T: DeserializeOwned>(entity: &'static str, item: Item) -> Result<T, StoreError> {
    serde_dynamo::from_item(item).map_err(|error| StoreError::unreadable(entity, error))
}

/// Converts a record to an attribute of an item.
pub(crate) fn to_attribute<T: Serialize>(record: &T) -> AttributeValue {
    serde_dynamo::to_attribute_value(record).expect("a record converts to an attribute")
}
