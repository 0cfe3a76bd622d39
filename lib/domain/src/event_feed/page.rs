//! The choice of a page's events from what was read of the feed.
//!
//! A query of the store is no snapshot: it can return an event and lack the event before, if both are being stored. In
//! ascending order a page therefore ends before the first position that does not follow. In descending order the later
//! event was seen first, so the earlier one is there.
//!
//! A reader of few types would read far for each event. So only the nearest items are read whole, and the further ones
//! by type ([`Further`]).

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
    /// Every item from the beginning of the page on.
    pub items: Vec<Stored>,
    /// True if the feed has no items behind these.
    pub is_end: bool,
    /// The items of the reader's types behind these, if they were looked for.
    pub further: Option<Further>,
}

/// Items of a reader's types, without those of other types between them.
#[derive(Debug, Clone)]
pub struct Further {
    pub items: Vec<Stored>,
    /// The end of the feed, if all items of the types up to there are here. In ascending order its item was stored
    /// before the items were read. So were all items before it, and none of them is missing.
    pub end: Option<FeedPosition>,
}

impl Further {
    /// Merges the items that were read of each type, at most `most` of one. Behind the last item of a type that may
    /// have more, items are missing. `end`: the end of the feed.
    pub fn merge(of_types: Vec<Vec<Stored>>, most: usize, order: Order, end: FeedPosition) -> Self {
        let is_ahead = |one: FeedPosition, other: FeedPosition| match order {
            Order::Asc => one < other,
            Order::Desc => one > other,
        };
        let last_of_full = of_types.iter().filter(|items| items.len() >= most).filter_map(|items| items.last());
        let known_to = last_of_full
            .map(|item| item.position)
            .reduce(|nearest, other| if is_ahead(other, nearest) { other } else { nearest });
        let mut items: Vec<Stored> = of_types.into_iter().flatten().collect();
        items.retain(|item| known_to.is_none_or(|known_to| !is_ahead(known_to, item.position)));
        items.sort_unstable_by_key(|item| item.position);
        if order == Order::Desc {
            items.reverse();
        }
        Self { items, end: known_to.is_none().then_some(end) }
    }
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
    /// The page needs further items of its types.
    ReadOn,
    /// The event behind the cursor is missing: it is being stored, or a restore of the table has lost it.
    Gap,
}

impl FeedReader {
    /// Chooses the events of the page.
    pub fn choose<'a>(&self, scan: &'a Scan) -> FeedChoice<'a> {
        match self.order {
            Order::Asc => self.choose_ascending(scan),
            Order::Desc => self.choose_descending(scan),
        }
    }

    /// Returns the earliest time at which an event of the page was stored.
    pub fn stored_since(&self) -> Timestamp {
        let kept_since = self.now + -FEED_RETENTION;
        self.since.map_or(kept_since, |since| since.max(kept_since))
    }

    fn choose_ascending<'a>(&self, scan: &'a Scan) -> FeedChoice<'a> {
        let first = self.cursor.map(|cursor| cursor.position);
        let (mut passed, mut as_of, mut events) = (first, self.now, Vec::new());
        let page = |events, passed: Option<FeedPosition>, as_of, has_more| FeedChoice::Page {
            events,
            next: Some(self.cursor_at(passed, as_of)),
            has_more,
        };
        for item in &scan.items {
            let follows = passed.is_none_or(|passed| passed.is_followed_by(item.position));
            if !follows && passed == first {
                return FeedChoice::Gap;
            }
            let event = self.wanted(item);
            if !follows || (event.is_some() && events.len() == self.limit) {
                return page(events, passed, item.stored_at, true);
            }
            events.extend(event);
            (passed, as_of) = (Some(item.position), item.stored_at);
        }
        let Some(further) = &scan.further else {
            return if scan.is_end { page(events, passed, self.now, false) } else { FeedChoice::ReadOn };
        };
        for item in &further.items {
            let event = self.wanted(item);
            if event.is_some() && events.len() == self.limit {
                return page(events, passed, as_of, true);
            }
            events.extend(event);
            (passed, as_of) = (Some(item.position), item.stored_at);
        }
        match further.end {
            Some(end) => page(events, Some(end), self.now, false),
            None => page(events, passed, as_of, true),
        }
    }

    fn choose_descending<'a>(&self, scan: &'a Scan) -> FeedChoice<'a> {
        let (mut passed, mut events) = (None, Vec::new());
        let end = |events| FeedChoice::Page { events, next: None, has_more: false };
        let more =
            |events, passed| FeedChoice::Page { events, next: Some(self.cursor_at(passed, self.now)), has_more: true };
        let further = scan.further.iter().flat_map(|further| &further.items);
        for item in scan.items.iter().chain(further) {
            if item.stored_at < self.stored_since() {
                return end(events);
            }
            let event = self.wanted(item);
            if event.is_some() && events.len() == self.limit {
                return more(events, passed);
            }
            events.extend(event);
            passed = Some(item.position);
        }
        match &scan.further {
            None if scan.is_end => end(events),
            None => FeedChoice::ReadOn,
            Some(Further { end: Some(_), .. }) => end(events),
            Some(Further { end: None, .. }) => more(events, passed),
        }
    }

    fn cursor_at(&self, passed: Option<FeedPosition>, as_of: Timestamp) -> FeedCursor {
        FeedCursor { position: passed.unwrap_or_else(FeedPosition::origin), as_of }
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
