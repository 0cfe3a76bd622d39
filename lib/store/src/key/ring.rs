//! A coach's key ring: the names of the live keys, in the item that limits how many there are.
//!
//! The transaction that makes a key adds it. The one that revokes a key removes it. An expired key stays until its
//! place is needed. So every live key is on the ring, which holds [`MAX_LIVE_KEYS`] at most. A write that prolongs
//! the life of a key that may have expired has to add it again.
//!
//! Earlier releases stored the number of live keys, `live_count`, and no names. A ring with that attribute was last
//! written by such a release. It is made anew from all keys of the coach.

use aws_sdk_dynamodb::types::{AttributeValue, Update};
use domain::id::{CoachId, KeyId};
use domain::key::MAX_LIVE_KEYS;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{KeyRecord, Keys, coach_key};
use crate::db::{Ask, Item, Part, StoreError, Write, n, retry, write};

const SORT_KEY: &str = "KEYS";
/// Keys that are read together where a ring is made anew.
const READ_TOGETHER: usize = 100;
const CONCURRENT_READS: usize = 8;

/// The keys on a ring, as of a version.
#[derive(Default)]
pub(super) struct Ring {
    version: u64,
    pub(super) ids: Vec<KeyId>,
}

impl Ring {
    /// `None`: an earlier release has written it.
    pub(super) fn from_item(item: &Item) -> Result<Option<Self>, StoreError> {
        if item.contains_key("live_count") {
            return Ok(None);
        }
        let ids = item.get("live_keys").and_then(|ids| ids.as_ss().ok()).into_iter().flatten();
        let ids = ids.map(|id| KeyId::parse(id).map_err(|rule| StoreError::corrupt("key ring", rule)));
        Ok(Some(Self { version: version_of(item), ids: ids.collect::<Result<_, _>>()? }))
    }
}

fn version_of(item: &Item) -> u64 {
    item.get("version").and_then(|version| version.as_n().ok()?.parse().ok()).unwrap_or_default()
}

impl Keys {
    /// Part of a transaction: a key is added, if the ring has room.
    pub(super) fn add_to_ring(&self, coach: &CoachId, id: &KeyId) -> Write {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(coach_key(coach, SORT_KEY)))
            .update_expression("ADD live_keys :key, version :one")
            .condition_expression(
                "attribute_not_exists(live_count) AND (attribute_not_exists(live_keys) OR size(live_keys) < :most)",
            )
            .expression_attribute_values(":key", set([id]))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":most", n(MAX_LIVE_KEYS));
        Part::KeyRing.update(update)
    }

    /// Part of a transaction: a key is removed, if it is on the ring.
    pub(super) fn remove_from_ring(&self, coach: &CoachId, id: &KeyId) -> Write {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(coach_key(coach, SORT_KEY)))
            .update_expression("DELETE live_keys :key ADD version :one")
            .condition_expression("attribute_not_exists(live_count)")
            .expression_attribute_values(":key", set([id]))
            .expression_attribute_values(":one", n(1));
        Part::KeyRing.update(update)
    }

    /// Removes keys that have expired from a ring. False: all of them are live, and there is room for no more.
    pub(super) async fn make_room(&self, coach: &CoachId, now: Timestamp) -> Result<bool, StoreError> {
        let ring = self.ring(coach, now).await?;
        let live = self.live_among(&ring.ids, now).await?;
        let ended: Vec<&KeyId> = ring.ids.iter().filter(|id| live.iter().all(|live| live.key_id != **id)).collect();
        if ended.is_empty() {
            return Ok(ring.ids.len() < MAX_LIVE_KEYS);
        }
        self.write_ring(coach, ring.version, "DELETE live_keys :keys ADD version :one", Some(set(ended))).await?;
        Ok(true)
    }

    /// The coach's live keys, in no order.
    pub(super) async fn live(&self, coach: &CoachId, now: Timestamp) -> Result<Vec<KeyRecord>, StoreError> {
        let ring = self.ring(coach, now).await?;
        self.live_among(&ring.ids, now).await
    }

    async fn live_among(&self, ids: &[KeyId], now: Timestamp) -> Result<Vec<KeyRecord>, StoreError> {
        let mut records = self.records(ids).await?;
        records.retain(|record| record.is_live(now));
        Ok(records)
    }

    pub(super) async fn ring(&self, coach: &CoachId, now: Timestamp) -> Result<Ring, StoreError> {
        retry("the key ring", || async {
            let item = self.db.get(&self.table, coach_key(coach, SORT_KEY)).await?.unwrap_or_default();
            let ring = Ring::from_item(&item)?;
            if ring.is_none() {
                self.make_anew(coach, version_of(&item), now).await?;
            }
            Ok(ring)
        })
        .await
    }

    /// Puts all live keys on a ring that names none, if it has not changed since that version.
    async fn make_anew(&self, coach: &CoachId, version: u64, now: Timestamp) -> Result<(), StoreError> {
        let ids = self.key_ids(coach).await?;
        let chunks: Vec<_> = ids.chunks(READ_TOGETHER).map(|ids| self.live_among(ids, now)).collect();
        let live: Vec<Vec<KeyRecord>> = stream::iter(chunks).buffer_unordered(CONCURRENT_READS).try_collect().await?;
        let live: Vec<&KeyId> = live.iter().flatten().map(|record| &record.key_id).collect();
        // No set is empty.
        if live.is_empty() {
            return self.write_ring(coach, version, "REMOVE live_count, live_keys ADD version :one", None).await;
        }
        let update = "SET live_keys = :keys REMOVE live_count ADD version :one";
        self.write_ring(coach, version, update, Some(set(live))).await
    }

    /// Changes a ring if it has that version still.
    async fn write_ring(
        &self,
        coach: &CoachId,
        version: u64,
        update: &str,
        keys: Option<AttributeValue>,
    ) -> Result<(), StoreError> {
        let values = [(":version", Some(n(version))), (":one", Some(n(1))), (":keys", keys)];
        let values: Item = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let written = write("UpdateItem", || {
            let request = self.db.client().update_item().table_name(&self.table);
            request
                .set_key(Some(coach_key(coach, SORT_KEY)))
                .update_expression(update)
                .condition_expression("version = :version")
                .set_expression_attribute_values(Some(values.clone()))
                .ask()
        });
        // Refused: somebody else has changed it.
        written.await?;
        Ok(())
    }
}

fn set<'a>(ids: impl IntoIterator<Item = &'a KeyId>) -> AttributeValue {
    AttributeValue::Ss(ids.into_iter().map(|id| id.as_str().to_owned()).collect())
}
