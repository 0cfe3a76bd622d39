//! The metrics line of an attempt. The line names the endpoint by its id: the URL may hold a secret.

use domain::delivery::{Attempt, AttemptResult, DeliveryOutcome};
use domain::time::Timestamp;
use runtime::{Line, Metric, Unit, write_line};
use store::delivery::ClaimedAttempt;

/// Attempts, by outcome.
const DELIVERIES: Metric = Metric::logged("deliveries", Unit::Count);
/// Duration of an attempt.
const ATTEMPT_MS: Metric = Metric::logged("attempt_ms", Unit::Milliseconds);
/// Time from the event's creation to the receiver's 2xx.
const DELIVERY_LATENCY_MS: Metric = Metric::new("delivery_latency_ms", Unit::Milliseconds);

/// Writes the metrics line of an attempt.
pub(crate) fn write_attempt(taken: &ClaimedAttempt, attempt: &Attempt, next: &DeliveryOutcome, now: Timestamp) {
    let order = &taken.order;
    let mut line = Line::default();
    line.set("outcome", outcome(next));
    line.set("coach_id", order.coach_id.as_str());
    line.set("endpoint_id", order.endpoint_id.as_str());
    line.set("delivery_id", order.delivery_id.as_str());
    line.set("event_id", taken.event_id.as_str());
    line.set("attempt", order.attempt.to_string());
    line.set(
        "result",
        match &attempt.result {
            AttemptResult::StatusCode(code) => code.to_string(),
            AttemptResult::Error(reason) => reason.clone(),
        },
    );
    if let DeliveryOutcome::RetryAt(at) = next {
        line.set("next_attempt_at", at.to_string());
    }
    line.add(DELIVERIES, 1.0);
    line.add(ATTEMPT_MS, f64::from(attempt.duration_ms));
    // Only the first chain counts: in a later one, the time since the event includes the wait of the coach.
    if let (DeliveryOutcome::Delivered, 1) = (next, order.chain) {
        line.add(DELIVERY_LATENCY_MS, (now.ms() - taken.made_at.ms()).max(0) as f64);
    }
    write_line(&line);
}

fn outcome(next: &DeliveryOutcome) -> &'static str {
    match next {
        DeliveryOutcome::Delivered => "delivered",
        DeliveryOutcome::RetryAt(_) => "retrying",
        DeliveryOutcome::Exhausted | DeliveryOutcome::EndpointOff(_) => "failed",
        DeliveryOutcome::Gone => "gone",
    }
}
