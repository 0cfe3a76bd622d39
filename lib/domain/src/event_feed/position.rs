//! Positions in the event feed, and the items at them.

use chrono::TimeDelta;

use crate::event::Event;
use crate::time::Timestamp;

/// Time for which the feed shows an event.
pub const FEED_RETENTION: TimeDelta = TimeDelta::days(30);

/// The position of an event in the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedPosition {
    /// The time at which the event before was stored; of the first event, the time at which the feed began.
    pub after: Timestamp,
    /// Counts from 1. Distinguishes events that were stored in the same millisecond.
    pub number: u64,
}

impl FeedPosition {
    /// Returns the position before all events.
    pub fn origin() -> Self {
        Self { after: Timestamp::from_ms(0), number: 0 }
    }

    /// Returns the first position of a feed that begins at this time.
    pub fn first(began_at: Timestamp) -> Self {
        Self { after: began_at, number: 1 }
    }

    /// Returns the position after this one, whose event was stored at this time.
    pub fn next(self, stored_at: Timestamp) -> Self {
        Self { after: stored_at, number: self.number + 1 }
    }

    /// Returns true if no event lies between two positions. A feed that begins again counts from 1 again.
    pub(super) fn is_followed_by(self, next: Self) -> bool {
        next.number == self.number + 1 || next.number == 1
    }
}

/// An item of the feed.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub position: FeedPosition,
    pub stored_at: Timestamp,
    /// `None` after the erasure of its subject.
    pub event: Option<Event>,
}
