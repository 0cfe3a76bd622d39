//! The net under the queues. A pending delivery has an order in a queue. Should the order be lost, the delivery stays
//! pending and its due time passes: the relay's schedule finds it, and sends its order again.
//!
//! An order that is only late is sent twice. The second is harmless: of two orders of an attempt, one counts. How much
//! the finding says depends on the endpoint: [`OrderFlow`].

use chrono::TimeDelta;

use crate::endpoint::{EndpointStatus, EndpointWithHealth};
use crate::time::Timestamp;

/// Time after which a delivery that is due counts as one without an order.
pub const OVERDUE_AFTER: TimeDelta = TimeDelta::minutes(30);
/// Time for which a delivery whose order was sent again is left alone, so that late orders do not multiply.
pub const REORDER_PAUSE: TimeDelta = TimeDelta::hours(24);

/// Returns true if a pending delivery has been due for too long. `reordered_at`: when its order was last sent again
/// since its latest attempt.
pub fn is_overdue(due_at: Timestamp, reordered_at: Option<Timestamp>, now: Timestamp) -> bool {
    due_at + OVERDUE_AFTER <= now && reordered_at.is_none_or(|at| at + REORDER_PAUSE <= now)
}

/// The reasons that an endpoint gives its orders to be late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderFlow {
    /// None: an order that is long due is lost. The orders of an endpoint that is off or deleted end their deliveries.
    Moves,
    /// Its receiver answers slowly, so orders may have to wait for their turn.
    Lags,
    /// Its breaker is not closed, or closed a moment ago: its orders wait on purpose.
    Waits,
}

impl OrderFlow {
    /// Returns the flow of an endpoint's orders. `None`: the endpoint is deleted.
    pub fn of(endpoint: Option<&EndpointWithHealth>, now: Timestamp) -> Self {
        let enabled = endpoint.filter(|found| found.endpoint.status == EndpointStatus::Enabled);
        let Some(EndpointWithHealth { health, .. }) = enabled else { return Self::Moves };
        let breaker = &health.breaker;
        if breaker.open_until(now).is_some() || breaker.is_half_open(now) || health.pace.was_silent(now) {
            Self::Waits
        } else if health.pace.is_slow(now) {
            Self::Lags
        } else {
            Self::Moves
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_ms(minutes * 60_000)
    }

    #[rstest::rstest]
    #[case::due(0, None, 0, false)]
    #[case::late(0, None, 29, false)]
    #[case::overdue(0, None, 30, true)]
    #[case::ahead(60, None, 30, false)]
    #[case::sent_again(0, Some(30), 29 + 24 * 60, false)]
    #[case::sent_again_a_day_ago(0, Some(30), 30 + 24 * 60, true)]
    fn a_delivery_is_overdue_half_an_hour_after_its_time_and_again_after_a_day(
        #[case] due_at: i64,
        #[case] reordered_at: Option<i64>,
        #[case] now: i64,
        #[case] expected: bool,
    ) {
        assert_eq!(is_overdue(at(due_at), reordered_at.map(at), at(now)), expected);
    }
}
