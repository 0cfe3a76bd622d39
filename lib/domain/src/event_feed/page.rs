//! The choice of a page's events from what was read of the feed.
//!
//! A query of the store is no snapshot: it can return an event and lack the event before, if both are being stored. In
//! ascending order a page therefore ends before the first position that does not follow. In descending order the later
//! event was seen first, so the earlier one is there.

use super::cursor::FeedCursor;
use super::position::{FEED_RETENTION, FeedPosition, Stored};
use crate::event::{Event, EventName, EventType};
use crate::list::Order;
use crate::time::Timestamp;

/// A reader that asks for a page.
#[derive(Debug, Clone)]
pub struct FeedReader {
    /// The types of the events.
    pub types: Vec<EventType>,
    /// The earliest `timestamp` of an event.
    pub since: Option<Timestamp>,
    pub order: Order,
    /// `None`: the first page.
    pub cursor: Option<FeedCursor>,
    /// The most events of the page.
    pub limit: usize,
    /// The time of the request's arrival.
    pub now: Timestamp,
}

/// The part of the feed that was read, in the order of the page.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    pub items: Vec<Stored>,
    /// True if the feed has no items behind these.
    pub is_end: bool,
}

/// The choice of a page.
#[derive(Debug, PartialEq)]
pub enum FeedChoice<'a> {
    Page {
        events: Vec<&'a Event>,
        /// `None`: the end of a descending read.
        next: Option<FeedCursor>,
        has_more: bool,
    },
    /// The page may need items that were not read.
    ReadOn,
    /// The event behind the cursor is missing: it is being stored, or a restore of the table has lost it.
    Gap,
}

impl FeedReader {
    /// Chooses the events of the page. `is_last`: nothing more is read, so the page may be short.
    pub fn choose<'a>(&self, scan: &'a Scan, is_last: bool) -> FeedChoice<'a> {
        match self.order {
            Order::Asc => self.choose_ascending(scan, is_last),
            Order::Desc => self.choose_descending(scan, is_last),
        }
    }

    /// Returns the earliest time at which an event of the page was stored.
    pub fn stored_since(&self) -> Timestamp {
        let kept_since = self.now + -FEED_RETENTION;
        self.since.map_or(kept_since, |since| since.max(kept_since))
    }

    fn choose_ascending<'a>(&self, scan: &'a Scan, is_last: bool) -> FeedChoice<'a> {
        let first = self.cursor.map(|cursor| cursor.position);
        let (mut passed, mut events) = (first, Vec::new());
        let more = |events, passed: Option<FeedPosition>, as_of| FeedChoice::Page {
            events,
            next: Some(self.cursor_at(passed, as_of)),
            has_more: true,
        };
        for item in &scan.items {
            let follows = passed.is_none_or(|passed| passed.is_followed_by(item.position));
            if !follows && passed == first {
                return FeedChoice::Gap;
            }
            let event = self.wanted(item);
            if !follows || (event.is_some() && events.len() == self.limit) {
                return more(events, passed, item.stored_at);
            }
            events.extend(event);
            passed = Some(item.position);
        }
        match scan.items.last() {
            _ if scan.is_end => {
                FeedChoice::Page { events, next: Some(self.cursor_at(passed, self.now)), has_more: false }
            }
            Some(last) if is_last => more(events, passed, last.stored_at),
            _ => FeedChoice::ReadOn,
        }
    }

    fn choose_descending<'a>(&self, scan: &'a Scan, is_last: bool) -> FeedChoice<'a> {
        let (mut passed, mut events) = (None, Vec::new());
        let end = |events| FeedChoice::Page { events, next: None, has_more: false };
        for item in &scan.items {
            if item.stored_at < self.stored_since() {
                return end(events);
            }
            let event = self.wanted(item);
            if event.is_some() && events.len() == self.limit {
                return FeedChoice::Page { events, next: Some(self.cursor_at(passed, self.now)), has_more: true };
            }
            events.extend(event);
            passed = Some(item.position);
        }
        match () {
            () if scan.is_end => end(events),
            () if is_last => FeedChoice::Page { events, next: Some(self.cursor_at(passed, self.now)), has_more: true },
            () => FeedChoice::ReadOn,
        }
    }

    fn cursor_at(&self, passed: Option<FeedPosition>, as_of: Timestamp) -> FeedCursor {
        FeedCursor { order: self.order, position: passed.unwrap_or_else(FeedPosition::origin), as_of }
    }

    /// Returns the item's event if the page shows it.
    fn wanted<'a>(&self, item: &'a Stored) -> Option<&'a Event> {
        let is_kept = item.stored_at >= self.now + -FEED_RETENTION;
        item.event.as_ref().filter(|event| {
            let is_wanted = matches!(event.event_type, EventName::Emitted(named) if self.types.contains(&named));
            is_kept && is_wanted && self.since.is_none_or(|since| event.occurred_at >= since)
        })
    }
}

#[cfg(test)]
mod tests;
