//! One event on its way to one endpoint: what an attempt may find, and what follows from it.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::id::{CoachId, DeliveryId, EndpointId, EventId};
use crate::retry::gap_after;
use crate::retry_after::lengthened;
use crate::time::Timestamp;

/// How long deliveries and their bodies are kept, and can be sent again by hand.
pub const DELIVERY_RETENTION: TimeDelta = TimeDelta::days(30);
/// How long they are kept at least once they are sent again. Twice what the attempts of a chain take, and time for a queue that is behind.
pub const CHAIN_RETENTION: TimeDelta = TimeDelta::days(3);
/// How long an attempt holds its delivery. Longer than any function that sends can live.
pub const ATTEMPT_LEASE: TimeDelta = TimeDelta::seconds(60);
/// How long a recovery holds its endpoint at most. Longer than any function that recovers can live.
pub const RECOVERY_LEASE: TimeDelta = TimeDelta::seconds(60);
/// How long a recovery leaves out what an earlier recovery sent again.
pub const RECOVERY_PAUSE: TimeDelta = TimeDelta::hours(1);
/// How much of a receiver's answer is kept, in bytes.
pub const EXCERPT_BYTES: usize = 1024;

const GONE: u16 = 410;
const TOO_MANY_REQUESTS: u16 = 429;
const UNAVAILABLE: u16 = 503;

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    Pending,
    Delivered,
    Failed,
}

impl DeliveryStatus {
    /// The status of that name.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "pending" => Ok(Self::Pending),
            "delivered" => Ok(Self::Delivered),
            "failed" => Ok(Self::Failed),
            _ => Err("must be pending, delivered or failed"),
        }
    }

    /// The status's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    /// The receiver answered.
    StatusCode(u16),
    /// It did not, for this reason.
    Error(String),
}

impl AttemptResult {
    /// Whether the receiver has taken the event.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::StatusCode(code) if (200..300).contains(code))
    }
}

/// What an [`AttemptResult`] puts into its line. In a schema of two kinds, as the enum's own would be, generators of clients lose one.
#[cfg(feature = "openapi")]
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "it is there for its schema")]
struct AttemptOutcome {
    /// What the receiver answered. Absent where it did not.
    #[schema(required = false)]
    status_code: u16,
    /// Why it did not. Absent where it answered.
    #[schema(required = false)]
    error: String,
}

/// One line of the delivery log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attempt {
    pub at: Timestamp,
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = AttemptOutcome, inline))]
    pub result: AttemptResult,
    pub duration_ms: u32,
    /// The first bytes of the answer's body, as text.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub response_excerpt: Option<String>,
}
crate::discreet! { Attempt }

impl Attempt {
    /// A line that says why nothing was sent.
    pub fn unsent(at: Timestamp, reason: &str) -> Self {
        Self { at, result: AttemptResult::Error(reason.to_owned()), duration_ms: 0, response_excerpt: None }
    }
}

/// What the queues carry: make this attempt when it is due. A delivery that is retried by hand begins another chain, and orders of an
/// older chain count no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryOrder {
    pub coach_id: CoachId,
    pub endpoint_id: EndpointId,
    pub delivery_id: DeliveryId,
    /// From 1.
    pub chain: u32,
    /// From 1 in each chain.
    pub attempt: u32,
    /// How often the order was put back because it was not due yet: a queue holds a message for 15 minutes at most.
    pub hop: u32,
    pub due_at: Timestamp,
}

impl DeliveryOrder {
    /// The order for a new delivery's first attempt.
    pub fn first(coach: &CoachId, endpoint: &EndpointId, delivery: &DeliveryId, due_at: Timestamp) -> Self {
        Self {
            coach_id: coach.clone(),
            endpoint_id: endpoint.clone(),
            delivery_id: delivery.clone(),
            chain: 1,
            attempt: 1,
            hop: 0,
            due_at,
        }
    }

    /// The order for another attempt of the same chain.
    pub fn for_attempt(&self, attempt: u32, due_at: Timestamp) -> Self {
        Self { attempt, hop: 0, due_at, ..self.clone() }
    }

    /// The same order, put back.
    pub fn put_back(&self) -> Self {
        Self { hop: self.hop + 1, ..self.clone() }
    }
}

/// What an operator puts into a queue of orders where messages may be missing, as they are after a restore: whatever waits for this endpoint
/// is ordered anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    pub coach_id: CoachId,
    pub resume: EndpointId,
    /// What comes after this delivery. Absent from what an operator sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DeliveryId>,
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Delivered,
    RetryAt(Timestamp),
    Exhausted,
    /// The receiver wants nothing any more, this or anything else.
    Gone,
}

/// What follows attempt number `made` (from 1) that ended at `now`. `retry_after` is what the receiver asked for; it counts where the
/// status says that it is too busy.
pub fn after_attempt(
    result: &AttemptResult,
    retry_after: Option<&str>,
    made: u32,
    now: Timestamp,
    jitter: u16,
) -> Next {
    let retry_after = match result {
        result if result.is_success() => return Next::Delivered,
        AttemptResult::StatusCode(GONE) => return Next::Gone,
        AttemptResult::StatusCode(TOO_MANY_REQUESTS | UNAVAILABLE) => retry_after,
        AttemptResult::StatusCode(_) | AttemptResult::Error(_) => None,
    };
    match gap_after(made, jitter) {
        Some(gap) => Next::RetryAt(now + lengthened(gap, retry_after, now)),
        None => Next::Exhausted,
    }
}

/// What follows attempt number `made` (from 1) that failed at `now`, whatever the receiver said.
pub fn after_failure(made: u32, now: Timestamp, jitter: u16) -> Next {
    gap_after(made, jitter).map_or(Next::Exhausted, |gap| Next::RetryAt(now + gap))
}

/// Whole seconds until a recovery has ended at the latest, at least 1. After that many the next recovery can begin.
pub fn recovery_ends_in_s(until: Timestamp, now: Timestamp) -> u32 {
    const MS: i64 = 1000;
    let left_ms = until.ms().saturating_sub(now.ms());
    u32::try_from((left_ms + MS - 1) / MS).unwrap_or_default().max(1)
}

/// A delivery that was asked for and is on its way.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ordered {
    pub delivery_id: DeliveryId,
}

/// Deliveries that had failed and are on their way again.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recovered {
    /// How many.
    pub deliveries: usize,
}

/// The log's line for a delivery whose endpoint is no more.
pub const DELETED: &str = "not sent: endpoint deleted";

/// One event on its way to one endpoint.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Delivery))]
pub struct DeliveryView {
    pub id: DeliveryId,
    /// The event's id, as its receiver gets it in `webhook-id`.
    pub webhook_id: EventId,
    /// The event's name.
    #[serde(rename = "type")]
    pub event_type: String,
    pub status: DeliveryStatus,
    pub attempts: Vec<Attempt>,
    #[cfg_attr(feature = "openapi", schema(required))]
    pub next_attempt_at: Option<Timestamp>,
}

/// A page of the delivery log.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeliveryPage {
    /// Newest first.
    pub data: Vec<DeliveryView>,
    /// Leads to the next page; null on the last.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub next_cursor: Option<DeliveryId>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry::MAX_ATTEMPTS;

    #[rstest::rstest]
    #[case(AttemptResult::StatusCode(200), 1, Next::Delivered)]
    #[case(AttemptResult::StatusCode(299), 9, Next::Delivered)]
    #[case(AttemptResult::StatusCode(302), 1, Next::RetryAt(Timestamp::from_ms(5_000)))]
    #[case(AttemptResult::StatusCode(500), 2, Next::RetryAt(Timestamp::from_ms(60_000)))]
    #[case(AttemptResult::Error("timed out".to_owned()), 8, Next::RetryAt(Timestamp::from_ms(36_000_000)))]
    #[case(AttemptResult::StatusCode(404), 9, Next::Exhausted)]
    #[case(AttemptResult::StatusCode(410), 1, Next::Gone)]
    #[case(AttemptResult::StatusCode(429), 1, Next::RetryAt(Timestamp::from_ms(600_000)))]
    #[case(AttemptResult::StatusCode(503), 1, Next::RetryAt(Timestamp::from_ms(600_000)))]
    #[case(AttemptResult::StatusCode(503), 9, Next::Exhausted)]
    fn an_attempt_delivers_is_repeated_or_was_the_last(
        #[case] result: AttemptResult,
        #[case] made: u32,
        #[case] next: Next,
    ) {
        assert_eq!(after_attempt(&result, Some("600"), made, Timestamp::from_ms(0), 0), next);
    }

    #[test]
    fn a_chain_takes_less_than_half_of_the_time_for_which_it_is_kept_however_busy_the_receiver_is() {
        let (busy, began) = (AttemptResult::StatusCode(UNAVAILABLE), Timestamp::from_ms(0));
        let (mut made, mut now) = (1, began);
        while let Next::RetryAt(at) = after_attempt(&busy, Some("9999999"), made, now, u16::MAX) {
            (made, now) = (made + 1, at);
        }
        assert_eq!(made, MAX_ATTEMPTS);
        assert!(now < began + CHAIN_RETENTION / 2, "{now}");
    }

    #[rstest::rstest]
    #[case(60_000, 0, 60)]
    #[case(60_000, 1, 60)]
    #[case(60_000, 59_000, 1)]
    #[case(60_000, 59_001, 1)]
    // The holder has given the lease back, or the clock of whoever asks is ahead.
    #[case(60_000, 60_000, 1)]
    #[case(60_000, 90_000, 1)]
    fn a_recovery_has_ended_after_the_seconds_that_are_told(#[case] until: i64, #[case] now: i64, #[case] told_s: u32) {
        let [until, now] = [until, now].map(Timestamp::from_ms);
        assert_eq!(recovery_ends_in_s(until, now), told_s);
        assert!(now + TimeDelta::seconds(told_s.into()) >= until);
    }

    #[test]
    fn a_log_line_has_a_status_code_or_an_error() {
        let line = |result| {
            let attempt = Attempt { at: Timestamp::from_ms(0), result, duration_ms: 3, response_excerpt: None };
            serde_json::to_value(attempt).unwrap()
        };
        assert_eq!(line(AttemptResult::StatusCode(500))["status_code"], 500);
        assert_eq!(line(AttemptResult::Error("refused".to_owned()))["error"], "refused");
    }

    #[test]
    fn an_order_keeps_what_it_is_for_while_it_is_put_back_and_starts_its_hops_anew_for_the_next_attempt() {
        let coach = CoachId::parse("coach_1").unwrap();
        let endpoint = EndpointId::parse("we_1").unwrap();
        let first =
            DeliveryOrder::first(&coach, &endpoint, &DeliveryId::parse("dlv_1").unwrap(), Timestamp::from_ms(1));
        let back = first.put_back().put_back();
        assert_eq!((back.hop, back.attempt, back.due_at), (2, 1, first.due_at));
        let next = back.for_attempt(2, Timestamp::from_ms(9));
        assert_eq!((next.chain, next.attempt, next.hop, next.due_at), (1, 2, 0, Timestamp::from_ms(9)));
    }
}
