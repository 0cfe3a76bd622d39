//! Buckets: which events take a coach's time, by UTC day (`domain::busy` says why). sk `BUSY#<yyyy-mm-dd>` or `BUSY#LONG`: a `version`, and
//! for each event an attribute `e#<uuid>`: start and end in milliseconds, minutes before and after.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Update};
use chrono::NaiveDate;
use domain::busy::{Bucket, BucketWrite, Busy, Change, Span};
use domain::calendar::Buffers;
use domain::id::{CalendarEventId, CoachId};
use domain::time::Timestamp;

use crate::booking::Bookings;
use crate::db::{Item, Part, StoreError, Write, n, query_all, s};
use crate::workspace::{key_of, partition};

/// What the sort keys of buckets begin with.
pub(super) const PREFIX: &str = "BUSY#";

/// What buckets hold.
#[derive(Debug, Clone, Default)]
pub struct BusyTimes {
    entries: BTreeMap<CalendarEventId, Busy>,
    versions: BTreeMap<Bucket, u64>,
}

impl BusyTimes {
    /// What these items hold.
    pub(super) fn from_items(items: impl IntoIterator<Item = Item>) -> Result<Self, StoreError> {
        let mut read = Self::default();
        for item in items {
            let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok());
            let bucket = text("sk").and_then(|sk| bucket_of(sk)).ok_or_else(|| corrupt("its key"))?;
            let version = item.get("version").and_then(number::<u64>).ok_or_else(|| corrupt("its version"))?;
            read.versions.insert(bucket, version);
            for (name, value) in &item {
                let Some(id) = name.strip_prefix("e#") else { continue };
                let id = CalendarEventId::parse(id).map_err(|_| corrupt(name))?;
                read.entries.insert(id, busy_of(value).ok_or_else(|| corrupt(name))?);
            }
        }
        Ok(read)
    }

    /// Everything that takes time.
    pub fn all(&self) -> Vec<Busy> {
        self.entries.values().copied().collect()
    }

    /// Everything that takes time but this event.
    pub fn without(&self, event: CalendarEventId) -> Vec<Busy> {
        let others = self.entries.iter().filter(|(id, _)| **id != event);
        others.map(|(_, busy)| *busy).collect()
    }

    /// Events and the time that each takes.
    pub(super) fn entries(&self) -> impl Iterator<Item = (CalendarEventId, Busy)> {
        self.entries.iter().map(|(id, busy)| (*id, *busy))
    }

    /// The versions under which it was read.
    pub(super) fn versions(&self) -> &BTreeMap<Bucket, u64> {
        &self.versions
    }
}

impl Bookings {
    /// Everything that takes the coach's time on these UTC days, and all long events, read consistently.
    pub async fn busy_between(
        &self,
        coach: &CoachId,
        first: NaiveDate,
        last: NaiveDate,
    ) -> Result<BusyTimes, StoreError> {
        let long = self.db.read(&self.table, vec![key_of(coach, &bucket_sk(Bucket::Long))]);
        let (mut items, long) = futures::future::try_join(self.days(coach, first, last), long).await?;
        items.extend(long);
        BusyTimes::from_items(items)
    }

    async fn days(&self, coach: &CoachId, first: NaiveDate, last: NaiveDate) -> Result<Vec<Item>, StoreError> {
        let query = self.db.client().query().table_name(&self.table).consistent_read(true);
        let query = query
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":pk", s(partition(coach)))
            .expression_attribute_values(":first", s(bucket_sk(Bucket::Day(first))))
            .expression_attribute_values(":last", s(bucket_sk(Bucket::Day(last))));
        query_all(query).await
    }

    /// A change of a bucket as part of a transaction.
    pub(super) fn bucket_write(&self, coach: &CoachId, event: CalendarEventId, write: &BucketWrite) -> Write {
        let bucket_key = key_of(coach, &bucket_sk(write.bucket));
        let condition = write.only_if.map(|version| match version {
            0 => "attribute_not_exists(pk)",
            _ => "version = :version",
        });
        // A value that no expression names is refused.
        let version = write.only_if.filter(|version| *version > 0).map(n);
        let update = |expression: &str| {
            let update = Update::builder()
                .table_name(&self.table)
                .set_key(Some(bucket_key.clone()))
                .update_expression(expression)
                .set_condition_expression(condition.map(str::to_owned))
                .expression_attribute_names("#event", format!("e#{event}"))
                .expression_attribute_values(":one", n(1));
            match version.clone() {
                None => update,
                Some(version) => update.expression_attribute_values(":version", version),
            }
        };
        match write.change {
            Change::Put(busy) => {
                let put = update("SET #event = :busy ADD version :one");
                Part::Bucket.update(put.expression_attribute_values(":busy", attribute_of(busy)))
            }
            Change::Remove => Part::Bucket.update(update("REMOVE #event ADD version :one")),
            Change::Keep => {
                let check = ConditionCheck::builder()
                    .table_name(&self.table)
                    .set_key(Some(bucket_key))
                    .condition_expression(condition.expect("a bucket that stays as it is is named for its version"));
                Part::Bucket.check(match version {
                    None => check,
                    Some(version) => check.expression_attribute_values(":version", version),
                })
            }
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
        let id = CalendarEventId::parse("0197a6a0-5c3b-7000-8000-2f1d3c4b5a69").unwrap();
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
