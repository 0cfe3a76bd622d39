//! Deliveries: one event for one endpoint, with its attempts and their log.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::breaker::Breaker;
use crate::id::{ClientId, DeliveryId, EndpointId, EventId};
use crate::time::Timestamp;

mod activity;
mod conclusion;
mod filter;
mod job;
mod order;
mod overdue;
mod recovery;
mod request;

pub use crate::outcome::{AttemptResult, DeliveryCounts};
pub use activity::{
    ACTIVITY_PARAMETER, ACTIVITY_RETENTION, Activity, ActivityPeriod, Hour, HourCounts, MAX_ACTIVITY_HOURS,
    MIN_ACTIVITY_HOURS,
};
pub use conclusion::{AttemptMade, Conclusion, EndpointAfter};
pub use filter::{DeliveryFilter, ENDPOINT_FILTER, tells_creation, times_around};
pub use job::{DeliveryJob, JobWork, PAGE_GAP_S};
pub use order::{DeliveryOrder, DeliveryState, LANES, SLOW_LANES, SLOW_LANES_OF_COACH, Turn, sendable};
pub use overdue::{OVERDUE_AFTER, OrderFlow, REORDER_PAUSE, is_overdue};
pub use recovery::{
    FailedDelivery, MOST_COUNTED, RECOVERY_LOCK, RECOVERY_PAUSE, Recovered, Recovery, RecoveryRequest,
    RecoverySelection, recovery_ends_in_s,
};
pub use request::{DeliveryDetail, DeliveryRequest, SentRequest, WebhookHeaders};

/// Retention of deliveries and their bodies, which can be sent again meanwhile.
pub const DELIVERY_RETENTION: TimeDelta = TimeDelta::days(30);
/// Shortest retention after a delivery is sent again: twice the length of a retry chain, and time for a queue that is
/// behind.
pub const CHAIN_RETENTION: TimeDelta = TimeDelta::days(3);
/// Time for a receiver to answer.
pub const ATTEMPT_TIMEOUT: TimeDelta = TimeDelta::seconds(15);
/// Size limit of the stored part of a receiver's answer.
pub const EXCERPT_BYTES: usize = 1024;

crate::named! {
    /// The state of a delivery.
    DeliveryStatus {
        Pending = "pending",
        Delivered = "delivered",
        Failed = "failed",
    }
}

/// The result of an attempt: `status_code` or `error`.
// Client generators lose one kind of an enum's `oneOf` schema, so the schema is an object with both members.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "it is there for its schema")]
struct AttemptOutcome {
    /// The status that the receiver answered. Absent if it did not answer.
    #[schema(required = false)]
    status_code: u16,
    /// Why the receiver did not answer. Absent if it answered.
    #[schema(required = false)]
    error: String,
}

/// One attempt, as the delivery log shows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Attempt {
    /// When the attempt began. If nothing was sent: when the service noted the reason.
    pub at: Timestamp,
    #[serde(flatten)]
    #[schema(value_type = AttemptOutcome, inline)]
    pub result: AttemptResult,
    /// Length of the attempt, in milliseconds. 0 if nothing was sent.
    pub duration_ms: u32,
    /// The first bytes of the answer's body, as text.
    #[schema(required)]
    pub response_excerpt: Option<String>,
}
crate::discreet! { Attempt }

impl Attempt {
    /// A log line with the reason why nothing was sent.
    pub fn unsent(at: Timestamp, reason: &str) -> Self {
        Self { at, result: AttemptResult::Error(reason.to_owned()), duration_ms: 0, response_excerpt: None }
    }
}

/// An enqueued delivery.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct Ordered {
    /// Names the delivery in the delivery log, which shows its attempts.
    pub delivery_id: DeliveryId,
}

/// The most deliveries that a page of the log reads to find those that it shows.
pub const MAX_READ_DELIVERIES: usize = 2_000;
/// The most waiting deliveries that are counted.
pub const MAX_COUNTED_PENDING: i32 = 1_000;

/// The log line for a delivery whose endpoint was deleted.
pub const DELETED: &str = "not sent: endpoint deleted";

/// One event on its way to one endpoint.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// Names the delivery in paths, as `delivery_id`.
    pub id: DeliveryId,
    /// The endpoint that the event is delivered to.
    pub endpoint_id: EndpointId,
    /// The event's id, as its receiver gets it in `webhook-id`.
    #[serde(rename = "webhook_id")]
    pub event_id: EventId,
    /// The event's name.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The client that the event is about, or that its contact is. Null if there is none, as for a test event.
    #[schema(required)]
    pub client_id: Option<ClientId>,
    /// True for a test event.
    pub test: bool,
    /// When the event was to be delivered first. The log is in this order.
    pub created_at: Timestamp,
    pub status: DeliveryStatus,
    /// The attempts, oldest first. Empty before the first one.
    pub attempts: Vec<Attempt>,
    /// When the next attempt is made, never before the endpoint's `breaker_open_until`. Null unless the delivery waits.
    #[schema(required)]
    pub next_attempt_at: Option<Timestamp>,
}

impl DeliveryView {
    /// Returns the delivery with the breaker of its endpoint, before whose end no attempt is made by itself.
    #[must_use]
    pub fn behind(self, breaker: &Breaker, now: Timestamp) -> Self {
        let open_until = breaker.open_until(now);
        let next_attempt_at = self.next_attempt_at.map(|at| open_until.map_or(at, |until| at.max(until)));
        Self { next_attempt_at, ..self }
    }
}

/// A page of the delivery log.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct DeliveryPage {
    /// Newest first.
    pub data: Vec<DeliveryView>,
    /// The `cursor` of the next page. Null on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}
