//! The metrics line of an attempt. The line names the endpoint by its id: the URL may hold a secret.

use domain::delivery::{Attempt, AttemptResult, DeliveryOrder, DeliveryState, DeliveryStatus};
use domain::id::EventId;
use domain::time::Timestamp;
use runtime::{Line, Metric, Unit, write_line};

/// Attempts, by outcome.
const DELIVERIES: Metric = Metric::logged("deliveries", Unit::Count);
/// Duration of an attempt.
const ATTEMPT_MS: Metric = Metric::logged("attempt_ms", Unit::Milliseconds);
/// Time from the event's creation to the receiver's 2xx.
const DELIVERY_LATENCY_MS: Metric = Metric::new("delivery_latency_ms", Unit::Milliseconds);

/// Writes the metrics line of an attempt, with the state of its delivery after it.
pub(crate) fn write_attempt(
    order: &DeliveryOrder,
    event_id: &EventId,
    made_at: Timestamp,
    attempt: &Attempt,
    state: &DeliveryState,
    now: Timestamp,
) {
    let mut line = Line::default();
    line.set("outcome", outcome(attempt, state));
    line.set("coach_id", order.coach_id.as_str());
    line.set("endpoint_id", order.endpoint_id.as_str());
    line.set("delivery_id", order.delivery_id.as_str());
    line.set("event_id", event_id.as_str());
    line.set("attempt", order.attempt.to_string());
    line.set(
        "result",
        match &attempt.result {
            AttemptResult::StatusCode(code) => code.to_string(),
            AttemptResult::Error(reason) => reason.clone(),
        },
    );
    if let Some(at) = state.next_attempt_at {
        line.set("next_attempt_at", at.to_string());
    }
    line.add(DELIVERIES, 1.0);
    line.add(ATTEMPT_MS, f64::from(attempt.duration_ms));
    // Only the first chain counts: in a later one, the time since the event includes the wait of the coach.
    if let (DeliveryStatus::Delivered, 1) = (state.status, order.chain) {
        line.add(DELIVERY_LATENCY_MS, (now.ms() - made_at.ms()).max(0) as f64);
    }
    write_line(&line);
}

fn outcome(attempt: &Attempt, state: &DeliveryState) -> &'static str {
    match state.status {
        DeliveryStatus::Delivered => "delivered",
        DeliveryStatus::Pending => "retrying",
        DeliveryStatus::Failed if attempt.result.is_gone() => "gone",
        DeliveryStatus::Failed => "failed",
    }
}
