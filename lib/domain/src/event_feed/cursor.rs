//! The cursor of the event feed: a position, and the time until which it leads to all events behind the position.
//!
//! As text: base64url of the order, the position and `as_of`, so that callers treat the cursor as opaque.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::position::{FEED_RETENTION, FeedPosition};
use crate::list::Order;
use crate::time::Timestamp;

/// A position of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct FeedCursor {
    pub order: Order,
    /// The position of the last event that the reader has passed.
    pub position: FeedPosition,
    /// A time at which no event behind the position was stored yet, or the time at which the first of them was stored.
    /// Once it is older than the feed's retention, events behind the position may be gone.
    pub as_of: Timestamp,
}

/// The refusal of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorError {
    /// The text is no cursor of this order.
    Malformed,
    /// Events behind the position may be gone.
    Expired,
}

impl FeedCursor {
    /// Parses the `next_cursor` of an earlier answer in this order.
    pub fn parse(text: &str, order: Order, now: Timestamp) -> Result<Self, CursorError> {
        let cursor = Self::read(text).filter(|cursor| cursor.order == order).ok_or(CursorError::Malformed)?;
        if cursor.as_of + FEED_RETENTION < now { Err(CursorError::Expired) } else { Ok(cursor) }
    }

    fn read(text: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let mut parts = text.split('.');
        let order = Order::parse(parts.next()?).ok()?;
        let (after, number, as_of) = (decimal(parts.next()?)?, decimal(parts.next()?)?, decimal(parts.next()?)?);
        let position = FeedPosition { after: time(after)?, number };
        parts.next().is_none().then_some(Self { order, position, as_of: time(as_of)? })
    }
}

impl From<FeedCursor> for String {
    fn from(FeedCursor { order, position, as_of }: FeedCursor) -> Self {
        let FeedPosition { after, number } = position;
        URL_SAFE_NO_PAD.encode(format!("{}.{}.{number}.{}", order.as_str(), after.ms(), as_of.ms()))
    }
}

/// Parses digits as they are written: without a sign, a space or a zero in front.
fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

/// A time that can be shown: up to the year 9999.
fn time(ms: u64) -> Option<Timestamp> {
    const LAST_MS: u64 = 253_402_300_799_999;
    (ms <= LAST_MS).then(|| i64::try_from(ms).ok().map(Timestamp::from_ms)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_reads_back_until_its_events_may_be_gone(
            after in 0i64..4_000_000_000_000,
            number: u64,
            as_of in 0i64..4_000_000_000_000,
            late_ms in -5i64..5,
            is_ascending: bool,
        ) {
            let [order, other] = if is_ascending { Order::ALL } else { [Order::Desc, Order::Asc] };
            let position = FeedPosition { after: Timestamp::from_ms(after), number };
            let cursor = FeedCursor { order, position, as_of: Timestamp::from_ms(as_of) };
            let text = String::from(cursor);
            let now = Timestamp::from_ms(as_of + FEED_RETENTION.num_milliseconds() + late_ms);
            let expected = if late_ms > 0 { Err(CursorError::Expired) } else { Ok(cursor) };
            prop_assert_eq!(FeedCursor::parse(&text, order, now), expected);
            prop_assert_eq!(FeedCursor::parse(&text, other, now), Err(CursorError::Malformed));
        }

        #[test]
        fn no_text_but_a_cursor_is_read(text in "\\PC{0,80}") {
            if let Some(cursor) = FeedCursor::read(&text) {
                prop_assert_eq!(String::from(cursor), text);
            }
        }
    }

    #[test]
    fn a_text_of_another_form_is_malformed() {
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        assert!(FeedCursor::read(&encode("asc.5.1.6")).is_some());
        for bad in
            ["asc.5.1", "asc.5.1.6.7", "up.5.1.6", "asc.+5.1.6", "asc.05.1.6", "asc.5.-1.6", "asc.5.1.999999999999999"]
        {
            assert_eq!(FeedCursor::read(&encode(bad)), None, "{bad}");
        }
        assert_eq!(FeedCursor::read("asc.5.1.6"), None);
    }
}
