//! The cursor of the event feed: a position, the time until which it leads to all events behind the position, and the
//! beginning of the storing that gave it.
//!
//! The orders are lists of their own, so a cursor fits the order that gave it.

use chrono::TimeDelta;

use super::position::{FEED_RETENTION, FeedPosition};
use crate::cursor::CursorList;
use crate::id::CoachId;
use crate::list::Order;
use crate::time::Timestamp;

/// Greatest number of a position: a sort key has 12 digits for it.
const MAX_NUMBER: u64 = 999_999_999_999;
/// Greatest difference of two functions' clocks.
const CLOCK_SKEW: TimeDelta = TimeDelta::hours(1);

/// A position of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedCursor {
    /// The position of the last event that the reader has passed.
    pub position: FeedPosition,
    /// A time at which no event behind the position was stored yet, or the time at which the first of them was stored.
    /// Once it is older than the feed's retention, events behind the position may be gone.
    pub as_of: Timestamp,
}

/// A coach's feed in one order.
#[derive(Debug, Clone, Copy)]
pub struct OrderedFeed<'a> {
    pub coach: &'a CoachId,
    pub order: Order,
    /// Since when each event has been stored. Earlier there was a time in which no key could read events.
    pub unbroken_since: Timestamp,
}

/// The refusal of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorError {
    /// The text is no cursor of this feed and order.
    Malformed,
    /// Events behind the position may be gone, or were not stored.
    Expired,
}

impl OrderedFeed<'_> {
    /// Parses the `next_cursor` of an earlier answer.
    pub fn parse(&self, text: &str, now: Timestamp) -> Result<FeedCursor, CursorError> {
        let position = self.list().position(text);
        let (cursor, unbroken_since) = position.and_then(|text| read(&text)).ok_or(CursorError::Malformed)?;
        if cursor.as_of > now + CLOCK_SKEW {
            return Err(CursorError::Malformed);
        }
        let is_expired = cursor.as_of + FEED_RETENTION < now || unbroken_since != self.unbroken_since;
        if is_expired { Err(CursorError::Expired) } else { Ok(cursor) }
    }

    /// Returns the text of a cursor.
    pub fn text(&self, cursor: FeedCursor) -> String {
        self.list().cursor(&written(cursor, self.unbroken_since))
    }

    fn list(&self) -> CursorList<'_> {
        let name = match self.order {
            Order::Asc => "events, oldest first",
            Order::Desc => "events, newest first",
        };
        CursorList { name, coach: self.coach }
    }
}

fn written(FeedCursor { position, as_of }: FeedCursor, unbroken_since: Timestamp) -> String {
    let FeedPosition { after, number } = position;
    format!("{}.{number}.{}.{}", after.ms(), as_of.ms(), unbroken_since.ms())
}

/// Reads the text of a cursor in the one form in which it is written.
fn read(text: &str) -> Option<(FeedCursor, Timestamp)> {
    let mut parts = text.split('.');
    let mut decimal = || parts.next()?.parse::<i64>().ok().filter(|number| *number >= 0);
    let (after, number, as_of, since) = (decimal()?, decimal()?.unsigned_abs(), decimal()?, decimal()?);
    let position = FeedPosition { after: Timestamp::from_ms(after), number };
    let (cursor, since) = (FeedCursor { position, as_of: Timestamp::from_ms(as_of) }, Timestamp::from_ms(since));
    (number <= MAX_NUMBER && written(cursor, since) == text).then_some((cursor, since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coach(id: &str) -> CoachId {
        CoachId::parse(id).unwrap()
    }

    proptest! {
        #[test]
        fn a_cursor_reads_back_until_its_events_may_be_gone(
            after in 0i64..4_000_000_000_000,
            number in 0..=MAX_NUMBER,
            as_of in 0i64..4_000_000_000_000,
            unbroken_since in 0i64..4_000_000_000_000,
            late_ms in -5i64..5,
            is_ascending: bool,
        ) {
            let [order, other] = if is_ascending { Order::ALL } else { [Order::Desc, Order::Asc] };
            let (ada, eve) = (coach("ada"), coach("eve"));
            let feed = OrderedFeed { coach: &ada, order, unbroken_since: Timestamp::from_ms(unbroken_since) };
            let position = FeedPosition { after: Timestamp::from_ms(after), number };
            let cursor = FeedCursor { position, as_of: Timestamp::from_ms(as_of) };
            let text = feed.text(cursor);
            let now = Timestamp::from_ms(as_of + FEED_RETENTION.num_milliseconds() + late_ms);
            let expected = if late_ms > 0 { Err(CursorError::Expired) } else { Ok(cursor) };
            prop_assert_eq!(feed.parse(&text, now), expected);
            let anew = OrderedFeed { unbroken_since: Timestamp::from_ms(unbroken_since + 1), ..feed };
            prop_assert_eq!(anew.parse(&text, now), Err(CursorError::Expired));
            for elsewhere in [OrderedFeed { order: other, ..feed }, OrderedFeed { coach: &eve, ..feed }] {
                prop_assert_eq!(elsewhere.parse(&text, now), Err(CursorError::Malformed));
            }
        }

        #[test]
        fn no_text_but_a_cursor_is_read(text in "[0-9.+-]{0,40}") {
            if let Some((cursor, since)) = read(&text) {
                prop_assert_eq!(written(cursor, since), text);
            }
        }
    }

    #[test]
    fn a_number_that_no_position_has_is_malformed() {
        let ada = coach("ada");
        let feed = OrderedFeed { coach: &ada, order: Order::Asc, unbroken_since: Timestamp::from_ms(1) };
        let parse = |text: &str| feed.parse(&feed.list().cursor(text), Timestamp::from_ms(6));
        assert!(parse("5.1.6.1").is_ok() && parse("5.999999999999.6.1").is_ok());
        for bad in [
            "5.1.6",
            "5.1.6.1.7",
            "+5.1.6.1",
            "05.1.6.1",
            "5.-1.6.1",
            "-5.1.6.1",
            "5.1.-6.1",
            "5.1.6.-1",
            "5.1.999999999999999.1",
            "999999999999999.1.6.1",
            "5.1.6.999999999999999",
            "5.1000000000000.6.1",
            "0.18446744073709551615.6.1",
            "5.1.9000000.1",
        ] {
            assert_eq!(parse(bad), Err(CursorError::Malformed), "{bad}");
        }
    }
}
