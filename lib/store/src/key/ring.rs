//! A coach's key ring: the ids of the live keys, in the item that limits their number to [`MAX_LIVE_KEYS`].
//!
//! The transaction that creates a key adds its id. The transaction that revokes a key removes it. An expired key stays
//! until a new key needs its room. So every live key is on the ring. A write that prolongs the life of a key that may
//! have expired has to add its id again.
//!
//! Earlier releases stored only the number of live keys, in `live_count`. A ring with that attribute was last written
//! by such a release, and is rebuilt from all keys of the coach.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::{CoachId, KeyId};
use domain::key::MAX_LIVE_KEYS;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{KeyRecord, Keys, coach_key};
use crate::db::{Item, ItemWrite, Part, StoreError, Write, n, number, retry, s};

const SORT_KEY: &str = "KEYS";
/// Keys per read while a ring is rebuilt.
const READ_TOGETHER: usize = 100;
const CONCURRENT_READS: usize = 8;

/// The keys on a ring, as of a version.
#[derive(Default)]
pub(super) struct Ring {
    version: u64,
    pub(super) ids: Vec<KeyId>,
}

impl Ring {
    /// Parses the ring's item; `None` if an earlier release wrote it.
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
    number(item, "version").unwrap_or_default()
}

impl Keys {
    /// Part of a transaction: adds a key, if the ring has room.
    pub(super) fn add_to_ring(&self, coach: &CoachId, id: &KeyId) -> Write {
        let update = self.ring_write(coach).add("live_keys", set([id])).when("attribute_not_exists(live_count)", []);
        let has_room = "attribute_not_exists(live_keys) OR size(live_keys) < :most";
        update.when(has_room, [(":most", n(MAX_LIVE_KEYS))]).update(Part::KeyRing)
    }

    /// Part of a transaction: keeps a key on the ring, or adds the key again if the ring has room.
    pub(super) fn keep_on_ring(&self, coach: &CoachId, id: &KeyId) -> Write {
        let update = self.ring_write(coach).add("live_keys", set([id])).when("attribute_not_exists(live_count)", []);
        let has_place = "attribute_not_exists(live_keys) OR contains(live_keys, :id) OR size(live_keys) < :most";
        update.when(has_place, [(":id", s(id.as_str())), (":most", n(MAX_LIVE_KEYS))]).update(Part::KeyRing)
    }

    /// Returns true if the ring holds the key, or has room for it once expired keys are removed.
    pub(super) async fn has_place(&self, coach: &CoachId, id: &KeyId, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.ring(coach, now).await?.ids.contains(id) || self.make_room(coach, now).await?)
    }

    /// Counts the coach's live keys, as their limit does.
    pub async fn count_live(&self, coach: &CoachId, now: Timestamp) -> Result<usize, StoreError> {
        Ok(self.live(coach, now).await?.len())
    }

    /// Part of a transaction: removes a key, if it is on the ring.
    pub(super) fn remove_from_ring(&self, coach: &CoachId, id: &KeyId) -> Write {
        let update = self.ring_write(coach).take_out("live_keys", set([id]));
        update.when("attribute_not_exists(live_count)", []).update(Part::KeyRing)
    }

    fn ring_write(&self, coach: &CoachId) -> ItemWrite<'_> {
        self.table.write(coach_key(coach, SORT_KEY)).count("version")
    }

    /// Removes expired keys from a ring. Returns false if all keys are live and the ring is full.
    pub(super) async fn make_room(&self, coach: &CoachId, now: Timestamp) -> Result<bool, StoreError> {
        let ring = self.ring(coach, now).await?;
        let live = self.live_among(&ring.ids, now).await?;
        let ended: Vec<&KeyId> = ring.ids.iter().filter(|id| live.iter().all(|live| live.key_id != **id)).collect();
        if ended.is_empty() {
            return Ok(ring.ids.len() < MAX_LIVE_KEYS);
        }
        let update = self.ring_write(coach).take_out("live_keys", set(ended));
        // Refused: another request has changed the ring.
        update.when_version(Some(ring.version)).update_now().await?;
        Ok(true)
    }

    /// Reads the coach's live keys, in no order.
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
            let item = self.table.item(coach_key(coach, SORT_KEY)).await?.unwrap_or_default();
            let ring = Ring::from_item(&item)?;
            if ring.is_none() {
                self.rebuild(coach, version_of(&item), now).await?;
            }
            Ok(ring)
        })
        .await
    }

    /// Rebuilds a ring from the coach's live keys, unless the ring has changed since that version.
    async fn rebuild(&self, coach: &CoachId, version: u64, now: Timestamp) -> Result<(), StoreError> {
        let ids = self.key_ids(coach).await?;
        let chunks: Vec<_> = ids.chunks(READ_TOGETHER).map(|ids| self.live_among(ids, now)).collect();
        let live: Vec<Vec<KeyRecord>> = stream::iter(chunks).buffer_unordered(CONCURRENT_READS).try_collect().await?;
        let live: Vec<&KeyId> = live.iter().flatten().map(|record| &record.key_id).collect();
        // DynamoDB has no empty sets.
        let live = Some(live).filter(|live| !live.is_empty()).map(set);
        let update = self.ring_write(coach).set_or_remove("live_keys", live).remove(["live_count"]);
        // Refused: another request has changed the ring.
        update.when_version(Some(version)).update_now().await?;
        Ok(())
    }
}

fn set<'a>(ids: impl IntoIterator<Item = &'a KeyId>) -> AttributeValue {
    AttributeValue::Ss(ids.into_iter().map(|id| id.as_str().to_owned()).collect())
}
