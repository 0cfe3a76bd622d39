//! A coach's key ring: the ids of the live keys, in the item that limits their number to [`MAX_LIVE_KEYS`].
//!
//! The transaction that creates a key adds its id. The transaction that revokes a key removes it. An expired key stays
//! until a new key needs its room. So every live key is on the ring. A write that prolongs the life of a key that may
//! have expired has to add its id again.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::{CoachId, KeyId};
use domain::key::MAX_LIVE_KEYS;
use domain::time::Timestamp;

use super::{KeyRecord, Keys, coach_key};
use crate::db::{Item, ItemWrite, Part, StoreError, Write, n, number, s};

const SORT_KEY: &str = "KEYS";

/// The keys on a ring, as of a version.
#[derive(Default)]
pub(super) struct Ring {
    version: u64,
    pub(super) ids: Vec<KeyId>,
}

impl Ring {
    pub(super) fn from_item(item: &Item) -> Result<Self, StoreError> {
        let ids = item.get("live_keys").and_then(|ids| ids.as_ss().ok()).into_iter().flatten();
        let ids = ids.map(|id| KeyId::parse(id).map_err(|rule| StoreError::corrupt("key ring", rule)));
        Ok(Self { version: number(item, "version").unwrap_or_default(), ids: ids.collect::<Result<_, _>>()? })
    }
}

impl Keys {
    /// Part of a transaction: adds a key, if the ring has room.
    pub(super) fn add_to_ring(&self, coach: &CoachId, id: &KeyId) -> Write {
        let update = self.ring_write(coach).add("live_keys", set([id]));
        let has_room = "attribute_not_exists(live_keys) OR size(live_keys) < :most";
        update.when(has_room, [(":most", n(MAX_LIVE_KEYS))]).update(Part::KeyRing)
    }

    /// Part of a transaction: keeps a key on the ring, or adds the key again if the ring has room.
    pub(super) fn keep_on_ring(&self, coach: &CoachId, id: &KeyId) -> Write {
        let update = self.ring_write(coach).add("live_keys", set([id]));
        let has_place = "attribute_not_exists(live_keys) OR contains(live_keys, :id) OR size(live_keys) < :most";
        update.when(has_place, [(":id", s(id.as_str())), (":most", n(MAX_LIVE_KEYS))]).update(Part::KeyRing)
    }

    /// Returns true if the ring holds the key, or has room for it once expired keys are removed.
    pub async fn has_place(&self, coach: &CoachId, id: &KeyId, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.ring(coach).await?.ids.contains(id) || self.make_room(coach, now).await?)
    }

    /// Counts the coach's live keys, as their limit does.
    pub async fn count_live(&self, coach: &CoachId, now: Timestamp) -> Result<usize, StoreError> {
        Ok(self.live(coach, now).await?.len())
    }

    /// Part of a transaction: removes a key, if it is on the ring.
    pub(super) fn remove_from_ring(&self, coach: &CoachId, id: &KeyId) -> Write {
        self.ring_write(coach).take_out("live_keys", set([id])).update(Part::KeyRing)
    }

    fn ring_write(&self, coach: &CoachId) -> ItemWrite<'_> {
        self.table.write(coach_key(coach, SORT_KEY)).count("version")
    }

    /// Removes expired keys from a ring. Returns false if all keys are live and the ring is full.
    pub async fn make_room(&self, coach: &CoachId, now: Timestamp) -> Result<bool, StoreError> {
        let ring = self.ring(coach).await?;
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
        let ring = self.ring(coach).await?;
        self.live_among(&ring.ids, now).await
    }

    async fn live_among(&self, ids: &[KeyId], now: Timestamp) -> Result<Vec<KeyRecord>, StoreError> {
        let mut records = self.records(ids).await?;
        records.retain(|record| record.is_live(now));
        Ok(records)
    }

    async fn ring(&self, coach: &CoachId) -> Result<Ring, StoreError> {
        Ring::from_item(&self.table.item(coach_key(coach, SORT_KEY)).await?.unwrap_or_default())
    }
}

fn set<'a>(ids: impl IntoIterator<Item = &'a KeyId>) -> AttributeValue {
    AttributeValue::Ss(ids.into_iter().map(|id| id.as_str().to_owned()).collect())
}
