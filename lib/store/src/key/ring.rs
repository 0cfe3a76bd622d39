//! A coach's key ring: the ids of the live keys, in the item that limits their number to [`MAX_LIVE_KEYS`]. For each
//! key that may read events, the ring also has an attribute `events_<key_id>`: when the key ends, in milliseconds.
//!
//! The transaction that creates a key adds its id. The transaction that revokes a key removes it. An expired key stays
//! until a new key needs its room. So every live key is on the ring. A write that prolongs the life of a key that may
//! have expired has to add its id again.
//!
//! Each transaction that sets a key's events or expiry sets the key's attribute too, on condition that both are as they
//! were read. So the attributes equal the records, and one read of the ring finds whether a live key reads events.
//!
//! `read_since` is the time since which a live key has been able to read events without a break. The transaction that
//! gives a key events sets it, on condition of the ring's version: a new time if no live key read events until then.
//! The key's record copies it. While the key may read events there is no break, so the copy stays true.

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::TimeDelta;
use domain::id::{CoachId, KeyId};
use domain::key::MAX_LIVE_KEYS;
use domain::time::Timestamp;

use super::{KeyRecord, Keys, coach_key};
use crate::db::{Item, ItemWrite, Part, StoreError, Write, n, number, s};

const SORT_KEY: &str = "KEYS";
const READER_PREFIX: &str = "events_";
/// The end of a reader that never expires, in milliseconds: later than any time.
const NEVER_MS: i64 = i64::MAX;
const SINCE: &str = "read_since";
/// Time for which events are stored after the last reader has expired. A request may prolong a key that expires while
/// the request is under way, and clocks differ.
const GRACE: TimeDelta = TimeDelta::minutes(2);

/// The keys on a ring, as of a version.
#[derive(Default)]
pub(super) struct Ring {
    version: u64,
    pub(super) ids: Vec<KeyId>,
    /// The attributes of the keys that may read events, with their ends in milliseconds.
    readers: Vec<(String, i64)>,
    /// Since when a live key has been able to read events without a break, up to now or to the last reader's end.
    read_since: Option<Timestamp>,
}

/// The keys of a ring that may read events, for a key that may read events from now on.
pub struct Readers {
    /// `None`: the coach has no ring yet.
    version: Option<u64>,
    /// Since when keys have been able to read events without a break, this key included.
    pub since: Timestamp,
}

impl Ring {
    pub(super) fn from_item(item: &Item) -> Result<Self, StoreError> {
        let ids = item.get("live_keys").and_then(|ids| ids.as_ss().ok()).into_iter().flatten();
        let ids = ids.map(|id| KeyId::parse(id).map_err(|rule| StoreError::corrupt("key ring", rule)));
        let readers = item.keys().filter(|name| name.starts_with(READER_PREFIX));
        Ok(Self {
            version: number(item, "version").unwrap_or_default(),
            ids: ids.collect::<Result<_, _>>()?,
            readers: readers.filter_map(|name| Some((name.clone(), number(item, name)?))).collect(),
            read_since: number(item, SINCE).map(Timestamp::from_ms),
        })
    }

    /// Returns true if a live key may read events.
    fn has_reader(&self, now: Timestamp) -> bool {
        self.readers.iter().any(|(_, ends_ms)| *ends_ms > now.ms())
    }
}

impl Keys {
    /// Part of a transaction: adds a key, if the ring has room. The key may replace another one, which then ends.
    /// `readers`: of a key that may read events.
    pub(super) fn add_to_ring(
        &self,
        key: &KeyRecord,
        replaced: Option<&KeyRecord>,
        readers: Option<&Readers>,
    ) -> Write {
        let update = self.ring_write(&key.coach_id).add("live_keys", set([&key.key_id]));
        let update = with_readers(update, readers);
        let update = std::iter::once(key).chain(replaced).fold(update, with_reader);
        let has_room = "attribute_not_exists(live_keys) OR size(live_keys) < :most";
        update.when(has_room, [(":most", n(MAX_LIVE_KEYS))]).update(Part::KeyRing)
    }

    /// Part of a transaction: keeps a key on the ring, or adds the key again if the ring has room.
    pub(super) fn keep_on_ring(&self, key: &KeyRecord, readers: Option<&Readers>) -> Write {
        let id = &key.key_id;
        let update = with_reader(self.ring_write(&key.coach_id), key).add("live_keys", set([id]));
        let update = with_readers(update, readers);
        let has_place = "attribute_not_exists(live_keys) OR contains(live_keys, :id) OR size(live_keys) < :most";
        update.when(has_place, [(":id", s(id.as_str())), (":most", n(MAX_LIVE_KEYS))]).update(Part::KeyRing)
    }

    /// Part of a transaction: lists a key among those that may read events, or not.
    pub(super) fn put_reader(&self, key: &KeyRecord, readers: Option<&Readers>) -> Write {
        with_readers(with_reader(self.ring_write(&key.coach_id), key), readers).update(Part::KeyRing)
    }

    /// Returns true if a live key of the coach may read events, or one that has just expired.
    pub async fn may_read_events(&self, coach: &CoachId, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.ring(coach).await?.has_reader(now + -GRACE))
    }

    /// Reads the ring for a key that may read events from now on.
    pub async fn readers(&self, coach: &CoachId, now: Timestamp) -> Result<Readers, StoreError> {
        let item = self.table.item(coach_key(coach, SORT_KEY)).await?;
        let ring = item.as_ref().map(Ring::from_item).transpose()?;
        let version = ring.as_ref().map(|ring| ring.version);
        let ring = ring.unwrap_or_default();
        let since = match ring.read_since {
            Some(since) if ring.has_reader(now) => since,
            Some(earlier) => now.after(earlier),
            None => now,
        };
        Ok(Readers { version, since })
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
        let update = self.ring_write(coach).take_out("live_keys", set([id]));
        update.remove([reader(id).as_str()]).update(Part::KeyRing)
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
        let live: Vec<String> = live.iter().map(|key| reader(&key.key_id)).collect();
        let ended_readers =
            ring.readers.iter().map(|(name, _)| name.as_str()).filter(|name| !live.iter().any(|live| live == name));
        let update = self.ring_write(coach).take_out("live_keys", set(ended)).remove(ended_readers);
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

/// Sets or removes the attribute that says until when a key reads events.
fn with_reader<'a>(update: ItemWrite<'a>, key: &KeyRecord) -> ItemWrite<'a> {
    let ends_ms = key.events.as_ref().map(|_| n(key.expires_at.unwrap_or(NEVER_MS)));
    update.set_or_remove(&reader(&key.key_id), ends_ms)
}

/// Sets since when events are read without a break, on condition that the ring is as it was read.
fn with_readers<'a>(update: ItemWrite<'a>, readers: Option<&Readers>) -> ItemWrite<'a> {
    let Some(readers) = readers else { return update };
    update.when_version(readers.version).set(SINCE, n(readers.since.ms()))
}

/// The attribute of a key that may read events.
fn reader(id: &KeyId) -> String {
    format!("{READER_PREFIX}{id}")
}

fn set<'a>(ids: impl IntoIterator<Item = &'a KeyId>) -> AttributeValue {
    AttributeValue::Ss(ids.into_iter().map(|id| id.as_str().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_a_reader_until_the_last_one_ends() {
        let ids = [1, 2].map(|seed| KeyId::from_hash(&[seed; 32]));
        let ring = |ends_ms: &[i64]| {
            let mut item = Item::from([("version".to_owned(), n(3)), ("live_keys".to_owned(), set(&ids))]);
            item.extend(ids.iter().zip(ends_ms).map(|(id, ends_ms)| (reader(id), n(*ends_ms))));
            Ring::from_item(&item).unwrap()
        };
        for (ends_ms, has_reader) in
            [(&[][..], false), (&[9], false), (&[10], false), (&[11], true), (&[9, NEVER_MS], true)]
        {
            assert_eq!(ring(ends_ms).has_reader(Timestamp::from_ms(10)), has_reader, "{ends_ms:?}");
        }
        assert!(!Ring::default().has_reader(Timestamp::from_ms(10)));
        assert_eq!(ring(&[NEVER_MS]).ids.len(), 2);
    }
}
