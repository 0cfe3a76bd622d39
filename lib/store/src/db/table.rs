//! A table: reads of items, queries, and the start of every write ([`ItemWrite`]).

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, KeysAndAttributes, Select, WriteRequest};
use runtime::{BoxError, Environment};
use serde::de::DeserializeOwned;

use super::item_write::{ItemWrite, names_in};
use super::{Db, Item, MAX_ROUNDS, MeteredRequest, StoreError, backoff, failed, from_item};

/// Keys per BatchGetItem.
const MAX_BATCH_KEYS: usize = 100;
/// Deletions per BatchWriteItem.
const MAX_BATCH_WRITES: usize = 25;

/// A table of the service.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) db: Db,
    pub(crate) name: String,
}

/// The answer to one request of a query.
pub(crate) struct QueryPage {
    pub(crate) items: Vec<Item>,
    /// The start of the next request; `None` at the end of the query.
    pub(crate) next: Option<Item>,
}

impl Table {
    /// The table that the environment variable names.
    pub(crate) fn new(env: &Environment, db: &Db, variable: &str) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), name: env.config().get(variable)?.to_owned() })
    }

    /// Reads the record with that key, consistently.
    pub(crate) async fn get<T>(&self, entity: &'static str, key: Item) -> Result<Option<T>, StoreError>
    where
        T: DeserializeOwned,
    {
        self.item(key).await?.map(|item| from_item(entity, item)).transpose()
    }

    /// Reads the item with that key, consistently.
    pub(crate) async fn item(&self, key: Item) -> Result<Option<Item>, StoreError> {
        let get = self.db.client.get_item().table_name(&self.name).set_key(Some(key)).consistent_read(true);
        Ok(get.send_metered().await.map_err(|error| failed("GetItem", error))?.item)
    }

    /// Reads the items with these keys, consistently, in no order. A missing item is left out.
    pub(crate) async fn read(&self, keys: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        let mut found = Vec::new();
        for chunk in keys.chunks(MAX_BATCH_KEYS) {
            let wanted = HashMap::from([(self.name.clone(), chunk.to_vec())]);
            found.extend(self.db.read(wanted).await?.into_values().flatten());
        }
        Ok(found)
    }

    /// A query with that key condition. In the condition, `#name` stands for the attribute of that name.
    pub(crate) fn query<const N: usize>(
        &self,
        condition: &str,
        values: [(&str, AttributeValue); N],
    ) -> QueryFluentBuilder {
        let values = values.map(|(name, value)| (name.to_owned(), value));
        let query = self.db.client.query().table_name(&self.name).key_condition_expression(condition);
        let query = query.set_expression_attribute_values(Some(values.into()));
        names_in(condition).fold(query, |query, name| query.expression_attribute_names(format!("#{name}"), name))
    }

    /// Deletes the items with these keys, whatever their state.
    pub(crate) async fn delete_all(&self, keys: &[Item]) -> Result<(), StoreError> {
        for chunk in keys.chunks(MAX_BATCH_WRITES) {
            self.delete_batch(chunk).await?;
        }
        Ok(())
    }

    async fn delete_batch(&self, keys: &[Item]) -> Result<(), StoreError> {
        let delete = |key: &Item| {
            let request = DeleteRequest::builder().set_key(Some(key.clone())).build().expect("a key is given");
            WriteRequest::builder().delete_request(request).build()
        };
        let (mut wanted, mut round): (Vec<WriteRequest>, _) = (keys.iter().map(delete).collect(), 0);
        // DynamoDB returns deletions that exceed its capacity: send them again.
        while !wanted.is_empty() {
            if round == MAX_ROUNDS {
                let source = format!("{} items are left undeleted", wanted.len()).into();
                return Err(StoreError::Unavailable { operation: "BatchWriteItem", source });
            }
            backoff(round).await;
            round += 1;
            let request = self.db.client.batch_write_item().request_items(&self.name, wanted);
            let written = request.send_metered().await.map_err(|error| failed("BatchWriteItem", error))?;
            wanted = written.unprocessed_items.unwrap_or_default().remove(&self.name).unwrap_or_default();
        }
        Ok(())
    }

    /// A write of the item. A put takes the whole item, every other write its key.
    pub(crate) fn write(&self, item: Item) -> ItemWrite<'_> {
        ItemWrite::new(&self.db, &self.name, item)
    }
}

impl Db {
    /// Reads up to 100 items by their tables and keys, consistently, in no order. A missing item is left out.
    pub(crate) async fn read(
        &self,
        mut wanted: HashMap<String, Vec<Item>>,
    ) -> Result<HashMap<String, Vec<Item>>, StoreError> {
        let (mut found, mut round) = (HashMap::<String, Vec<Item>>::new(), 0);
        // DynamoDB returns keys that exceed the size of an answer or the capacity: read them again.
        while !wanted.is_empty() {
            if round == MAX_ROUNDS {
                let source = format!("items of {} tables are left unread", wanted.len()).into();
                return Err(StoreError::Unavailable { operation: "BatchGetItem", source });
            }
            backoff(round).await;
            round += 1;
            let request = wanted.into_iter().fold(self.client.batch_get_item(), |request, (table, keys)| {
                let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build();
                request.request_items(table, keys.expect("keys are given"))
            });
            let got = request.send_metered().await.map_err(|error| failed("BatchGetItem", error))?;
            for (table, items) in got.responses.unwrap_or_default() {
                found.entry(table).or_default().extend(items);
            }
            let unread = got.unprocessed_keys.unwrap_or_default().into_iter();
            wanted = unread.map(|(table, unread)| (table, unread.keys)).collect();
        }
        Ok(found)
    }
}

/// Makes one request of a query.
pub(crate) async fn query_page(query: QueryFluentBuilder) -> Result<QueryPage, StoreError> {
    let page = query.send_metered().await.map_err(|error| failed("Query", error))?;
    Ok(QueryPage { items: page.items.unwrap_or_default(), next: page.last_evaluated_key })
}

/// Counts the items that a query finds, up to `most`. They have to be small: one request counts 1 MB of items.
pub(crate) async fn query_count(query: QueryFluentBuilder, most: i32) -> Result<u64, StoreError> {
    let query = query.select(Select::Count).limit(most);
    let counted = query.send_metered().await.map_err(|error| failed("Query", error))?;
    Ok(u64::try_from(counted.count).unwrap_or_default())
}

/// Runs a query to its end, over as many requests as it takes.
pub(crate) async fn query_all(query: QueryFluentBuilder) -> Result<Vec<Item>, StoreError> {
    query_up_to(query, usize::MAX).await
}

/// Runs a query until it has found `most` items or ended.
pub(crate) async fn query_up_to(query: QueryFluentBuilder, most: usize) -> Result<Vec<Item>, StoreError> {
    let mut page = query_page(query.clone()).await?;
    let mut found = page.items;
    while page.next.is_some() && found.len() < most {
        page = query_page(query.clone().set_exclusive_start_key(page.next)).await?;
        found.append(&mut page.items);
    }
    found.truncate(most);
    Ok(found)
}
