//! The event feed: a coach's emitted events of the last 30 days, in an order that never changes.
//!
//! Each event has a position, given when the event is stored in the feed. Positions count up without a gap, so an event
//! never appears before an event that a reader has passed. `lib/store/src/event_feed.rs` gives the positions and says
//! why. Here are the query, the cursor, and the choice of the events of a page.

mod cursor;
mod page;
mod position;
mod query;

use serde::Serialize;
use serde_json::Value;

use crate::event::{Event, EventName, PayloadMode};
use crate::id::EventId;
use crate::time::Timestamp;

pub use cursor::{CursorError, FeedCursor, OrderedFeed};
pub use page::{FeedChoice, FeedReader, Further, Scan};
pub use position::{FEED_RETENTION, FeedPosition, Stored};
pub use query::{FeedQuery, parse_sample_type, parse_types};

/// A page of the event feed.
#[derive(Serialize, utoipa::ToSchema)]
pub struct EventPage {
    /// The events of this page: oldest first, or with `order=desc` newest first.
    pub data: Vec<FeedEvent>,
    /// The `cursor` of the next page. In ascending order it is always a string: at the end of the feed it leads to the
    /// events that are stored later. In descending order it is null at the end.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// True if the feed has more events of these types at present.
    pub has_more: bool,
}

/// An example of an event.
#[derive(Serialize, utoipa::ToSchema)]
pub struct EventSamples {
    /// One example.
    pub data: Vec<FeedEvent>,
}

/// An event of the feed: the id and the members of the webhook's body.
#[derive(Serialize, utoipa::ToSchema)]
pub struct FeedEvent {
    /// The id of the event, the same as `webhook-id` of its deliveries.
    pub id: EventId,
    /// The name of the event.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub event_type: EventName,
    /// When the event happened, at the latest when the service stored it.
    pub timestamp: Timestamp,
    /// The content of the event, as in the webhook's body.
    #[schema(value_type = Object)]
    pub data: Value,
}

impl FeedEvent {
    /// Renders an event for a key of this payload mode.
    pub fn render(event: &Event, mode: PayloadMode) -> Self {
        Self {
            id: event.id.clone(),
            event_type: event.event_type,
            timestamp: event.occurred_at,
            data: Value::Object(event.data_for(mode)),
        }
    }
}

impl Event {
    /// Returns true if the event belongs in the feed: subscribers get it, not the steps of an automation.
    pub fn is_in_feed(&self) -> bool {
        matches!(self.event_type, EventName::Emitted(_)) && self.to.is_empty()
    }
}
