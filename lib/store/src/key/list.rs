//! The list of a coach's keys, page by page: live keys first, then the others, newest first in both.
//!
//! The first page reads the ring and the newest entries, in one Query. Its cursor names the live keys: later pages read
//! the rest of the live keys by name, and then the entries of all other keys. A page reads the items that it shows, and
//! at most [`MAX_LIVE_KEYS`] entries and records besides.

use std::collections::HashMap;

use chrono::TimeDelta;
use domain::id::{CoachId, KeyId};
use domain::key::{KeyCursor, KeyFilter, MAX_LIVE_KEYS};
use domain::time::Timestamp;

use super::ring::Ring;
use super::{KeyRecord, Keys, coach_key, coach_partition};
use crate::db::{StoreError, query_page, s, sk_of};

/// A page of the list.
#[derive(Debug)]
pub struct KeyPage {
    pub keys: Vec<KeyRecord>,
    /// The cursor of the next page; `None` at the end.
    pub next_cursor: Option<KeyCursor>,
}

/// The time of a key's creation and its id.
type KeyEntry = (Timestamp, KeyId);

impl Keys {
    /// Reads a page of the coach's keys.
    pub async fn page(
        &self,
        coach: &CoachId,
        filter: KeyFilter,
        limit: usize,
        cursor: Option<KeyCursor>,
        now: Timestamp,
    ) -> Result<KeyPage, StoreError> {
        match cursor {
            None => self.first_page(coach, filter, limit, now).await,
            Some(cursor) => self.later_page(coach, filter, limit, cursor, now).await,
        }
    }

    async fn first_page(
        &self,
        coach: &CoachId,
        filter: KeyFilter,
        limit: usize,
        now: Timestamp,
    ) -> Result<KeyPage, StoreError> {
        let (ring, entries) = self.entries(coach, None, limit + MAX_LIVE_KEYS + 1).await?;
        let others = entries.iter().map(|(_, id)| id).filter(|id| !ring.ids.contains(id)).take(limit);
        let wanted: Vec<KeyId> = if filter == KeyFilter::All { others.cloned().collect() } else { Vec::new() };
        let records = self.records(&[ring.ids.as_slice(), &wanted].concat()).await?;
        let (mut live, others): (Vec<KeyRecord>, Vec<KeyRecord>) =
            records.into_iter().partition(|record| record.is_live(now));
        live.sort_by(|one, other| (other.created_at, &other.key_id).cmp(&(one.created_at, &one.key_id)));
        let ids: Vec<KeyId> = live.iter().map(|record| record.key_id.clone()).collect();
        // Later pages skip keys that were created after the first page.
        let newest = entries.first().map(|(at, _)| (*at + TimeDelta::milliseconds(1), KeyId::from_hash(&[0; 32])));
        let rest = OtherKeys::new(entries, &ids, limit.saturating_sub(live.len()));
        let shown = live.len().min(limit);
        live.truncate(limit);
        let cursor = KeyCursor { live: ids, shown, after: newest };
        if filter == KeyFilter::Live || shown < cursor.live.len() {
            let next_cursor = (shown < cursor.live.len()).then_some(cursor);
            return Ok(KeyPage { keys: live, next_cursor });
        }
        let mut others: HashMap<KeyId, KeyRecord> =
            others.into_iter().map(|record| (record.key_id.clone(), record)).collect();
        live.extend(rest.entries.iter().filter_map(|(_, id)| others.remove(id)));
        Ok(KeyPage { keys: live, next_cursor: rest.cursor(cursor) })
    }

    async fn later_page(
        &self,
        coach: &CoachId,
        filter: KeyFilter,
        limit: usize,
        mut cursor: KeyCursor,
        now: Timestamp,
    ) -> Result<KeyPage, StoreError> {
        let next: Vec<KeyId> = cursor.live.iter().skip(cursor.shown).take(limit).cloned().collect();
        cursor.shown += next.len();
        let left = limit - next.len();
        let is_live_left = cursor.shown < cursor.live.len();
        let (next, cursor) = if filter == KeyFilter::Live || is_live_left {
            (next, is_live_left.then_some(cursor))
        } else {
            let (_, entries) = self.entries(coach, cursor.after.as_ref(), left + cursor.live.len() + 1).await?;
            let rest = OtherKeys::new(entries, &cursor.live, left);
            let others = rest.entries.iter().map(|(_, id)| id.clone());
            (next.into_iter().chain(others).collect(), rest.cursor(cursor))
        };
        let mut keys = self.records(&next).await?;
        // A client may forge a cursor. If only live keys are asked for, some may have ended since the first page.
        keys.retain(|record| record.coach_id == *coach && (filter == KeyFilter::All || record.is_live(now)));
        Ok(KeyPage { keys, next_cursor: cursor })
    }

    /// Reads the coach's newest keys after an entry. The first request reads the ring too.
    async fn entries(
        &self,
        coach: &CoachId,
        after: Option<&KeyEntry>,
        limit: usize,
    ) -> Result<(Ring, Vec<KeyEntry>), StoreError> {
        let query = self.table.query("pk = :pk", [(":pk", s(coach_partition(coach)))]);
        let query = query
            .consistent_read(true)
            .scan_index_forward(false)
            .set_exclusive_start_key(after.map(|(at, id)| coach_key(coach, entry_sort_key(*at, id))))
            // The ring's item comes with the first page.
            .limit(i32::try_from(limit + 1).unwrap_or(i32::MAX));
        let (mut ring, mut entries) = (Ring::default(), Vec::new());
        for item in query_page(query).await?.items {
            match entry_of(sk_of(&item)) {
                Some(entry) => entries.push(entry),
                None => ring = Ring::from_item(&item)?,
            }
        }
        Ok((ring, entries))
    }
}

/// Keys of a page that were not live when the first page was read.
struct OtherKeys {
    entries: Vec<KeyEntry>,
    /// True if more entries follow.
    more: bool,
}

impl OtherKeys {
    fn new(entries: Vec<KeyEntry>, live: &[KeyId], most: usize) -> Self {
        let mut entries: Vec<KeyEntry> = entries.into_iter().filter(|(_, id)| !live.contains(id)).collect();
        let more = entries.len() > most;
        entries.truncate(most);
        Self { entries, more }
    }

    /// The cursor after these keys.
    fn cursor(mut self, cursor: KeyCursor) -> Option<KeyCursor> {
        let after = self.entries.pop().or(cursor.after);
        self.more.then_some(KeyCursor { after, ..cursor })
    }
}

/// The sort key of a key's entry in the coach's list.
pub(super) fn entry_sort_key(created_at: Timestamp, id: &KeyId) -> String {
    format!("{ENTRY_PREFIX}{:015}#{id}", created_at.ms())
}

fn entry_of(sk: &str) -> Option<KeyEntry> {
    let (at, id) = sk.strip_prefix(ENTRY_PREFIX)?.split_once('#')?;
    Some((Timestamp::from_ms(at.parse().ok()?), KeyId::parse(id).ok()?))
}

const ENTRY_PREFIX: &str = "KEY#";
