//! When a coach is taken, and how two requests for overlapping times are kept apart.
//!
//! Every confirmed event of a coach has an entry in the buckets of the UTC days that it touches, or in the one bucket
//! of long events. A bucket has a version, which goes up whenever an entry comes, changes or goes. A booking reads the
//! buckets in which anything that could be in its way would stand, decides, and commits under the condition that their
//! versions are what it read:
//! - Two events conflict only if less than the longest buffer lies between them. So the buckets that a booking guards
//!   reach that far beyond its own time, and whichever of two conflicting writes comes second finds a version gone up.
//! - Guarding the booked days alone would not do: an event that ends at 23:50 and a booking at 00:05 share no day.
//! - What the application says has happened. Its writes take no condition, but they raise versions, so that no booking
//!   is confirmed over what is stored.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};

use crate::calendar::{Buffers, MAX_BUFFER_MINUTES};
use crate::time::Timestamp;

/// An event that lasts longer than this stands in the bucket of long ones.
pub const LONG_EVENT: TimeDelta = TimeDelta::days(31);

/// Most buckets that one change names. With the record, what tells of it and the answer it stays well below the 100
/// items that a transaction may have.
pub const MAX_BUCKET_WRITES: usize = 64;

/// A stretch of time with its start and without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
}

impl Span {
    pub fn is_empty(self) -> bool {
        self.ends_at <= self.starts_at
    }

    /// True if two stretches, neither of them empty, share any time.
    pub fn overlaps(self, other: Self) -> bool {
        self.starts_at < other.ends_at && other.starts_at < self.ends_at
    }

    fn widened(self, before_min: u32, after_min: u32) -> Self {
        let minutes = |count: u32| TimeDelta::minutes(i64::from(count));
        Self { starts_at: self.starts_at + -minutes(before_min), ends_at: self.ends_at + minutes(after_min) }
    }
}

/// A confirmed event: when it is, and the buffers it was made with. One without length takes no time and blocks
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Busy {
    pub span: Span,
    pub buffers: Buffers,
}

impl Busy {
    /// The time that an event with these buffers has to stay out of: the longer of the two buffers that face each other
    /// counts, on either side. `None`: there is none.
    pub fn blocked_for(&self, buffers: Buffers) -> Option<Span> {
        let before_min = self.buffers.before_min.max(buffers.after_min);
        let after_min = self.buffers.after_min.max(buffers.before_min);
        (!self.span.is_empty()).then(|| self.span.widened(before_min, after_min))
    }

    /// True if two events are too close to both be booked.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        !self.span.is_empty() && other.blocked_for(self.buffers).is_some_and(|blocked| blocked.overlaps(self.span))
    }
}

/// Where entries stand: a UTC day, or all events that are too long for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    Day(NaiveDate),
    Long,
}

/// The buckets in which an event's entry stands: the UTC days that it touches, or the one of long events. None if it
/// blocks nothing.
pub fn held_in(span: Span) -> Vec<Bucket> {
    if span.is_empty() {
        Vec::new()
    } else if span.ends_at.utc() - span.starts_at.utc() > LONG_EVENT {
        vec![Bucket::Long]
    } else {
        days_of(span).collect()
    }
}

/// The buckets in which anything stands that could conflict with an event at that time, whatever the buffers of either.
pub fn guarded_by(span: Span) -> Vec<Bucket> {
    days_of(span.widened(MAX_BUFFER_MINUTES, MAX_BUFFER_MINUTES)).chain([Bucket::Long]).collect()
}

/// The buckets that guard any slot of that local date, whatever the zone: no zone has ever been 16 hours from UTC, and
/// a slot ends with its date at the latest.
pub fn reach_of(date: NaiveDate) -> Vec<Bucket> {
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
    pub change: Change,
    /// The version that must stand; 0 where the bucket does not exist. `None`: whatever stands.
    pub only_if: Option<u64>,
}

/// The change of an event's entry in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It stands with this. Raises the version.
    Put(Busy),
    /// It is gone. Raises the version.
    Remove,
    /// Nothing changes: a mere condition.
    Keep,
}

/// How an event is booked or moved through the API, after the buckets were read with these versions (a bucket that is
/// not among them did not exist). `old` is where the event has been.
pub fn booking_writes(old: Option<Span>, new: &Busy, versions: &BTreeMap<Bucket, u64>) -> Vec<BucketWrite> {
    writes_under(&guarded_by(new.span), old, new, versions)
}

/// The writes for an event that is cancelled, or stored as the application has it: whatever else stands. `new` is
/// `None` where the event is not confirmed.
pub fn feed_writes(old: Option<Span>, new: Option<&Busy>) -> Vec<BucketWrite> {
    changes(old, new).into_iter().map(|(bucket, change)| BucketWrite { bucket, change, only_if: None }).collect()
}

fn writes_under(guard: &[Bucket], old: Option<Span>, new: &Busy, versions: &BTreeMap<Bucket, u64>) -> Vec<BucketWrite> {
    let mut changes = changes(old, Some(new));
    for bucket in guard {
        changes.entry(*bucket).or_insert(Change::Keep);
    }
    let write = |(bucket, change)| {
        let only_if = guard.contains(&bucket).then(|| versions.get(&bucket).copied().unwrap_or(0));
        BucketWrite { bucket, change, only_if }
    };
    changes.into_iter().map(write).collect()
}

fn changes(old: Option<Span>, new: Option<&Busy>) -> BTreeMap<Bucket, Change> {
    let left = old.map(held_in).unwrap_or_default().into_iter().map(|bucket| (bucket, Change::Remove));
    let taken = new.into_iter().flat_map(|new| held_in(new.span).into_iter().map(|bucket| (bucket, Change::Put(*new))));
    // A bucket that is left and taken again is taken.
    left.chain(taken).collect()
}

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod tests;
