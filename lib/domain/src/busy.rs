//! A coach's busy time, and how two requests for overlapping times are kept apart.
//!
//! Every confirmed event has an entry in the buckets of the UTC days that it touches, or in the one bucket of long
//! events. A bucket's version rises with each change of an entry. A booking reads the buckets that a conflicting event
//! could be in, decides, and commits on condition that their versions are unchanged:
//! - Two events conflict only if less than the longest buffer lies between them. So the guarded buckets reach that far
//!   beyond the booking, and the later of two conflicting writes finds a raised version.
//! - Guarding the booked days alone does not suffice: an event that ends at 23:50 and a booking at 00:05 share no day.
//! - A fact of the application has already happened. Its writes have no condition, but they raise versions, so no
//!   booking is confirmed over a stored event.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use crate::calendar::{Buffers, MAX_BUFFER_MINUTES};
use crate::time::{Timestamp, unix_ms};

/// Longer events have their entry in the bucket of long events.
pub const LONG_EVENT: TimeDelta = TimeDelta::days(31);

/// Most buckets that one change writes. With the record, the outbox entries and the answer, a transaction stays well
/// below its limit of 100 items.
pub const MAX_BUCKET_WRITES: usize = 64;

/// A half-open span of time: includes its start, excludes its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    #[serde(with = "unix_ms")]
    pub starts_at: Timestamp,
    #[serde(with = "unix_ms")]
    pub ends_at: Timestamp,
}

impl Span {
    pub fn is_empty(self) -> bool {
        self.ends_at <= self.starts_at
    }

    /// Returns true if two non-empty spans share any time.
    pub fn overlaps(self, other: Self) -> bool {
        self.starts_at < other.ends_at && other.starts_at < self.ends_at
    }

    fn widened(self, before_min: u32, after_min: u32) -> Self {
        let minutes = |count: u32| TimeDelta::minutes(i64::from(count));
        Self { starts_at: self.starts_at + -minutes(before_min), ends_at: self.ends_at + minutes(after_min) }
    }
}

/// The time and the buffers of a confirmed event. An event without length takes no time and blocks nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Busy {
    pub span: Span,
    pub buffers: Buffers,
}

impl Busy {
    /// Returns the time that an event with these buffers must avoid. On either side, the longer of the two facing
    /// buffers counts. `None`: nothing is blocked.
    pub fn blocked_for(&self, buffers: Buffers) -> Option<Span> {
        let before_min = self.buffers.before_min.max(buffers.after_min);
        let after_min = self.buffers.after_min.max(buffers.before_min);
        (!self.span.is_empty()).then(|| self.span.widened(before_min, after_min))
    }

    /// Returns true if the two events are too close to both be booked.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        !self.span.is_empty() && other.blocked_for(self.buffers).is_some_and(|blocked| blocked.overlaps(self.span))
    }
}

/// A bucket of entries: a UTC day, or all long events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    Day(NaiveDate),
    Long,
}

/// Returns the buckets with an entry of the event: the UTC days that it touches, or the bucket of long events. Empty if
/// the event blocks nothing.
pub fn entry_buckets(span: Span) -> Vec<Bucket> {
    if span.is_empty() {
        Vec::new()
    } else if span.ends_at.utc() - span.starts_at.utc() > LONG_EVENT {
        vec![Bucket::Long]
    } else {
        days_of(span).collect()
    }
}

/// Returns the buckets that could hold a conflicting event, whatever the buffers of the two.
pub fn guarded_buckets(span: Span) -> Vec<Bucket> {
    days_of(span.widened(MAX_BUFFER_MINUTES, MAX_BUFFER_MINUTES)).chain([Bucket::Long]).collect()
}

/// Returns the buckets that guard any slot of that local date in any zone. No zone has ever been 16 hours from UTC, and
/// a slot ends with its date at the latest.
pub fn buckets_near_date(date: NaiveDate) -> Vec<Bucket> {
    let days = [date.pred_opt(), Some(date), date.succ_opt()];
    days.into_iter().flatten().map(Bucket::Day).chain([Bucket::Long]).collect()
}

fn days_of(span: Span) -> impl Iterator<Item = Bucket> {
    let first = utc_day(span.starts_at);
    let last = utc_day(span.ends_at + TimeDelta::milliseconds(-1));
    first.iter_days().take_while(move |day| *day <= last).map(Bucket::Day)
}

pub(crate) fn utc_day(at: Timestamp) -> NaiveDate {
    at.utc().date_naive()
}

/// The effect of a change on a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketWrite {
    pub bucket: Bucket,
    pub change: EntryChange,
    /// The required version; 0: the bucket must not exist. `None`: any version.
    pub only_if: Option<u64>,
}

/// The change of an event's entry in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    /// Stores this entry and raises the version.
    Put(Busy),
    /// Removes the entry and raises the version.
    Remove,
    /// Changes nothing: a mere condition.
    Keep,
}

/// Returns the writes of a booking or a move through the API. `versions` are the bucket versions that were read; a
/// missing bucket did not exist. `old` is the event's previous time.
pub fn booking_writes(old: Option<Span>, new: &Busy, versions: &BTreeMap<Bucket, u64>) -> Vec<BucketWrite> {
    writes_under(&guarded_buckets(new.span), old, new, versions)
}

/// Returns the unconditional writes of a fact or a cancellation. `new` is `None` if the event is not confirmed.
pub fn feed_writes(old: Option<Span>, new: Option<&Busy>) -> Vec<BucketWrite> {
    entry_changes(old, new).into_iter().map(|(bucket, change)| BucketWrite { bucket, change, only_if: None }).collect()
}

fn writes_under(guard: &[Bucket], old: Option<Span>, new: &Busy, versions: &BTreeMap<Bucket, u64>) -> Vec<BucketWrite> {
    let mut changes = entry_changes(old, Some(new));
    for bucket in guard {
        changes.entry(*bucket).or_insert(EntryChange::Keep);
    }
    let write = |(bucket, change)| {
        let only_if = guard.contains(&bucket).then(|| versions.get(&bucket).copied().unwrap_or(0));
        BucketWrite { bucket, change, only_if }
    };
    changes.into_iter().map(write).collect()
}

fn entry_changes(old: Option<Span>, new: Option<&Busy>) -> BTreeMap<Bucket, EntryChange> {
    let left = old.map(entry_buckets).unwrap_or_default().into_iter().map(|bucket| (bucket, EntryChange::Remove));
    let taken = new
        .into_iter()
        .flat_map(|new| entry_buckets(new.span).into_iter().map(|bucket| (bucket, EntryChange::Put(*new))));
    // The entry of `new` replaces a removal in the same bucket.
    left.chain(taken).collect()
}

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod tests;
