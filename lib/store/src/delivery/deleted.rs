//! Endpoints that a coach has deleted, as long as their deliveries are kept. pk `COACH#<coach_id>`, sk
//! `DELETED#<endpoint_id>`. The transaction of the deletion writes the item.

use domain::delivery::DELIVERY_RETENTION;
use domain::endpoint::MAX_ENDPOINTS;
use domain::id::{CoachId, EndpointId};
use domain::time::Timestamp;

use super::Deliveries;
use super::record::ENTITY;
use crate::db::{Item, Part, StoreError, Write, n, number, query_all, query_page, s, sk_of};
use crate::workspace::{key_of, partition};

pub(crate) const PREFIX: &str = "DELETED#";

impl Deliveries {
    /// Part of a transaction: remembers an endpoint that is deleted.
    pub fn remember_deleted(&self, coach: &CoachId, endpoint: &EndpointId, now: Timestamp) -> Write {
        let mut item = key(coach, endpoint);
        item.insert("expires_at".to_owned(), n((now + DELIVERY_RETENTION).unix_s()));
        self.table.write(item).put(Part::Endpoint)
    }

    /// Reads the deleted endpoints of a coach that are remembered: of more than a coach can have at once, the ones that
    /// were registered last.
    pub async fn deleted_endpoints(&self, coach: &CoachId, now: Timestamp) -> Result<Vec<EndpointId>, StoreError> {
        let query = self
            .table
            .query("pk = :pk AND begins_with(sk, :prefix)", [(":pk", s(partition(coach))), (":prefix", s(PREFIX))]);
        let query = query.scan_index_forward(false).limit(i32::try_from(MAX_ENDPOINTS).unwrap_or(i32::MAX));
        let items = query_page(query).await?.items;
        items.iter().filter(|item| is_remembered(item, now)).map(id_of).collect()
    }

    /// Reads the endpoints that a coach has deleted since then.
    pub async fn deleted_since(&self, coach: &CoachId, since: Timestamp) -> Result<Vec<EndpointId>, StoreError> {
        let values = [(":pk", s(partition(coach))), (":prefix", s(PREFIX))];
        let items = query_all(self.table.query("pk = :pk AND begins_with(sk, :prefix)", values)).await?;
        items.iter().filter(|item| is_remembered(item, since + DELIVERY_RETENTION)).map(id_of).collect()
    }

    /// Returns true if the coach has deleted that endpoint, and its deliveries may be kept.
    pub async fn has_deleted(
        &self,
        coach: &CoachId,
        endpoint: &EndpointId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let item = self.table.item(key(coach, endpoint)).await?;
        Ok(item.is_some_and(|item| is_remembered(&item, now)))
    }
}

fn key(coach: &CoachId, endpoint: &EndpointId) -> Item {
    key_of(coach, &format!("{PREFIX}{endpoint}"))
}

/// Returns true if an item is kept beyond `at`. TTL deletes items late.
fn is_remembered(item: &Item, at: Timestamp) -> bool {
    number(item, "expires_at").is_some_and(|expires_at: i64| expires_at > at.unix_s())
}

fn id_of(item: &Item) -> Result<EndpointId, StoreError> {
    let id = sk_of(item).strip_prefix(PREFIX).and_then(|id| EndpointId::parse(id).ok());
    id.ok_or_else(|| StoreError::corrupt(ENTITY, "the key of a deleted endpoint has another form"))
}
