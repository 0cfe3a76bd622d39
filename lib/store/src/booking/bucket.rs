//! Buckets: a coach's busy intervals by UTC day (reasons in `domain::busy`). sk `BUSY#<yyyy-mm-dd>` or `BUSY#LONG`: a
//! `version`, and for each event an attribute `e#<uuid>`: start and end in milliseconds, minutes before and after.
//!
//! A bucket holds the events, not only a version. One consistent read gives both, so a booking takes three calls in
//! sequence instead of four. An item has room for some 4,000 events a day.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use domain::busy::{Bucket, BucketWrite, Busy, EntryChange, Span};
use domain::calendar::Buffers;
use domain::id::{CalendarEntryId, CoachId};
use domain::time::Timestamp;

use crate::booking::Bookings;
use crate::db::{self, Item, Part, StoreError, Write, n, query_all, s, sk_of};
use crate::workspace::{key_of, partition};

pub(super) const PREFIX: &str = "BUSY#";

/// The busy intervals of some buckets.
#[derive(Debug, Clone, Default)]
pub struct BusyTimes {
    entries: BTreeMap<CalendarEntryId, Busy>,
    versions: BTreeMap<Bucket, u64>,
}

impl BusyTimes {
    /// Parses the items of buckets.
    pub(super) fn from_items(items: impl IntoIterator<Item = Item>) -> Result<Self, StoreError> {
        let mut read = Self::default();
        for item in items {
            let bucket = bucket_of(sk_of(&item)).ok_or_else(|| corrupt("its key"))?;
            let version = db::number(&item, "version").ok_or_else(|| corrupt("its version"))?;
            read.versions.insert(bucket, version);
            for (name, value) in &item {
                let Some(id) = name.strip_prefix("e#") else { continue };
                let id = CalendarEntryId::parse(id).map_err(|_| corrupt(name))?;
                read.entries.insert(id, busy_of(value).ok_or_else(|| corrupt(name))?);
            }
        }
        Ok(read)
    }

    /// All busy intervals.
    pub fn all(&self) -> Vec<Busy> {
        self.entries.values().copied().collect()
    }

    /// All busy intervals except this event.
    pub fn without(&self, event: CalendarEntryId) -> Vec<Busy> {
        let others = self.entries.iter().filter(|(id, _)| **id != event);
        others.map(|(_, busy)| *busy).collect()
    }

    /// The events with their busy intervals.
    pub(super) fn entries(&self) -> impl Iterator<Item = (CalendarEntryId, Busy)> {
        self.entries.iter().map(|(id, busy)| (*id, *busy))
    }

    /// The versions of the buckets that were read.
    pub(super) fn versions(&self) -> &BTreeMap<Bucket, u64> {
        &self.versions
    }
}

impl Bookings {
    /// Reads all busy intervals on these UTC days, and all long events, consistently.
    pub async fn busy_between(
        &self,
        coach: &CoachId,
        first: NaiveDate,
        last: NaiveDate,
    ) -> Result<BusyTimes, StoreError> {
        let long = self.table.read(vec![key_of(coach, &bucket_sk(Bucket::Long))]);
        let (mut items, long) = futures::future::try_join(self.days(coach, first, last), long).await?;
        items.extend(long);
        BusyTimes::from_items(items)
    }

    async fn days(&self, coach: &CoachId, first: NaiveDate, last: NaiveDate) -> Result<Vec<Item>, StoreError> {
        let [first, last] = [first, last].map(|day| s(bucket_sk(Bucket::Day(day))));
        let values = [(":pk", s(partition(coach))), (":first", first), (":last", last)];
        query_all(self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values).consistent_read(true)).await
    }

    /// Part of a transaction: a change or check of a bucket.
    pub(super) fn bucket_write(&self, coach: &CoachId, event: CalendarEntryId, write: &BucketWrite) -> Write {
        let bucket = self.table.write(key_of(coach, &bucket_sk(write.bucket))).alias("event", format!("e#{event}"));
        let bucket = match write.only_if {
            None => bucket,
            Some(version) => bucket.when_version(Some(version).filter(|version| *version > 0)),
        };
        match write.change {
            EntryChange::Put(busy) => bucket.set("event", attribute_of(busy)).count("version").update(Part::Bucket),
            EntryChange::Remove => bucket.remove(["event"]).count("version").update(Part::Bucket),
            EntryChange::Keep => bucket.check(Part::Bucket),
        }
    }
}

/// The sort key of a bucket.
pub(super) fn bucket_sk(bucket: Bucket) -> String {
    match bucket {
        Bucket::Day(day) => format!("{PREFIX}{}", day.format("%Y-%m-%d")),
        Bucket::Long => format!("{PREFIX}LONG"),
    }
}

fn bucket_of(sk: &str) -> Option<Bucket> {
    match sk.strip_prefix(PREFIX)? {
        "LONG" => Some(Bucket::Long),
        day => day.parse().ok().map(Bucket::Day),
    }
}

fn attribute_of(busy: Busy) -> AttributeValue {
    let Busy { span, buffers } = busy;
    let numbers = [span.starts_at.ms(), span.ends_at.ms(), buffers.before_min.into(), buffers.after_min.into()];
    AttributeValue::L(numbers.map(n).to_vec())
}

fn busy_of(value: &AttributeValue) -> Option<Busy> {
    let [starts_at, ends_at, before, after] = value.as_l().ok()?.as_slice() else { return None };
    let instant = |value: &AttributeValue| number(value).map(Timestamp::from_ms);
    Some(Busy {
        span: Span { starts_at: instant(starts_at)?, ends_at: instant(ends_at)? },
        buffers: Buffers { before_min: number(before)?, after_min: number(after)? },
    })
}

fn number<T: std::str::FromStr>(value: &AttributeValue) -> Option<T> {
    value.as_n().ok()?.parse().ok()
}

fn corrupt(what: &str) -> StoreError {
    StoreError::corrupt("bucket", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Bucket {
        Bucket::Day(text.parse().unwrap())
    }

    #[test]
    fn a_bucket_reads_back_from_its_item() {
        let id = CalendarEntryId::parse("0197a6a0-5c3b-7000-8000-2f1d3c4b5a69").unwrap();
        let busy = Busy {
            span: Span { starts_at: Timestamp::from_ms(1), ends_at: Timestamp::from_ms(2) },
            buffers: Buffers { before_min: 3, after_min: 4 },
        };
        for bucket in [day("2026-12-01"), day("0000-01-01"), day("9999-12-31"), Bucket::Long] {
            let item = Item::from([
                ("pk".to_owned(), s("COACH#ada")),
                ("sk".to_owned(), s(bucket_sk(bucket))),
                ("version".to_owned(), n(7)),
                (format!("e#{id}"), attribute_of(busy)),
            ]);
            let read = BusyTimes::from_items([item]).unwrap();
            assert_eq!((read.all(), read.versions()), (vec![busy], &BTreeMap::from([(bucket, 7)])));
            assert!(read.without(id).is_empty());
        }
    }

    #[test]
    fn days_sort_by_their_keys_and_long_events_stand_after_them() {
        let days = ["0000-01-01", "2026-12-01", "2026-12-02", "9999-12-31"];
        let keys: Vec<String> = days.map(day).into_iter().chain([Bucket::Long]).map(bucket_sk).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }
}
