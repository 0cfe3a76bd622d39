//! The decision about a delivery after an attempt.

use super::{AttemptResult, DeliveryOrder, DeliveryState, DeliveryStatus};
use crate::retry::gap_after;
use crate::retry_after::lengthened;
use crate::time::Timestamp;

const TOO_MANY_REQUESTS: u16 = 429;
const UNAVAILABLE: u16 = 503;

/// An attempt that has ended.
#[derive(Debug, Clone, Copy)]
pub struct AttemptMade<'a> {
    pub result: &'a AttemptResult,
    /// The answer's `Retry-After`. It counts if the status says that the receiver is too busy.
    pub retry_after: Option<&'a str>,
    pub ended_at: Timestamp,
    /// Spreads the next attempt.
    pub jitter: u16,
}

/// The state of the endpoint after an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum EndpointAfter {
    /// The attempt did not end the endpoint: it is enabled, or was ended or deleted before.
    On,
    /// This attempt ended the endpoint. The reason why its deliveries are not sent.
    Off(String),
    /// The endpoint has another URL meanwhile, so the attempt says nothing about it.
    Moved,
}

/// The state of a delivery after an attempt, and its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    pub state: DeliveryState,
    /// The reason why the delivery ends although attempts are left.
    pub ended_because: Option<String>,
    /// The delivery was ended while the attempt was under way: the reason, the log's last line, stays the last one, or
    /// goes if the receiver took the event.
    pub was_ended_meanwhile: bool,
}

impl DeliveryState {
    /// Returns the state after an order's attempt. The delivery may have changed since the attempt began: a coach has
    /// ended it or sent it again, its client is erased, or another function made the attempt too.
    pub fn after(&self, order: &DeliveryOrder, made: &AttemptMade<'_>, endpoint: &EndpointAfter) -> Conclusion {
        if self.status == DeliveryStatus::Delivered || self.chain != order.chain || self.next_attempt != order.attempt {
            return Conclusion { state: self.clone(), ended_because: None, was_ended_meanwhile: false };
        }
        let was_ended_meanwhile = self.status == DeliveryStatus::Failed;
        let (mut ended_because, mut retry_at) = (None, None);
        match endpoint {
            _ if made.result.is_success() || was_ended_meanwhile => {}
            EndpointAfter::On | EndpointAfter::Off(_) if made.result.is_gone() => {}
            EndpointAfter::Off(reason) => ended_because = Some(reason.clone()),
            EndpointAfter::On | EndpointAfter::Moved => retry_at = next_attempt_at(order, made),
        }
        let status = match retry_at {
            _ if made.result.is_success() => DeliveryStatus::Delivered,
            Some(_) => DeliveryStatus::Pending,
            None => DeliveryStatus::Failed,
        };
        let state = Self { status, next_attempt: order.attempt + 1, next_attempt_at: retry_at, chain: self.chain };
        Conclusion { state, ended_because, was_ended_meanwhile }
    }
}

/// The time of the next attempt, if one is left.
fn next_attempt_at(order: &DeliveryOrder, made: &AttemptMade<'_>) -> Option<Timestamp> {
    let is_busy = matches!(made.result, AttemptResult::StatusCode(TOO_MANY_REQUESTS | UNAVAILABLE));
    let gap = gap_after(order.attempt, made.jitter)?;
    Some(made.ended_at + lengthened(gap, made.retry_after.filter(|_| is_busy), made.ended_at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::CHAIN_RETENTION;
    use crate::id::{CoachId, DeliveryId, EndpointId};
    use crate::retry::MAX_ATTEMPTS;

    const NOT_SENT: &str = "not sent: endpoint gone";

    fn order(attempt: u32) -> DeliveryOrder {
        let coach = CoachId::parse("coach_1").unwrap();
        let endpoint = EndpointId::parse("we_1").unwrap();
        let first = DeliveryOrder::first(&coach, &endpoint, &DeliveryId::parse("dlv_1").unwrap(), at(0));
        first.for_attempt(attempt, at(0))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_ms(seconds * 1_000)
    }

    fn pending(attempt: u32) -> DeliveryState {
        DeliveryState { status: DeliveryStatus::Pending, chain: 1, next_attempt: attempt, next_attempt_at: Some(at(0)) }
    }

    fn status(code: u16) -> AttemptResult {
        AttemptResult::StatusCode(code)
    }

    fn error() -> AttemptResult {
        AttemptResult::Error("timed out".to_owned())
    }

    /// The status, the wait in seconds, and whether the log has the endpoint's end.
    type Expected = (DeliveryStatus, Option<i64>, bool);

    const DELIVERED: Expected = (DeliveryStatus::Delivered, None, false);
    const FAILED: Expected = (DeliveryStatus::Failed, None, false);
    const ENDED: Expected = (DeliveryStatus::Failed, None, true);

    fn retry(wait_s: i64) -> Expected {
        (DeliveryStatus::Pending, Some(wait_s), false)
    }

    /// A result and the number of its attempt, then the outcome if the endpoint is on, off, or moved.
    #[rstest::rstest]
    #[case(status(200), 1, [DELIVERED, DELIVERED, DELIVERED])]
    #[case(status(299), 9, [DELIVERED, DELIVERED, DELIVERED])]
    #[case(status(302), 1, [retry(5), ENDED, retry(5)])]
    #[case(status(500), 2, [retry(60), ENDED, retry(60)])]
    #[case(error(), 8, [retry(36_000), ENDED, retry(36_000)])]
    #[case(status(404), 9, [FAILED, ENDED, FAILED])]
    #[case(error(), 9, [FAILED, ENDED, FAILED])]
    #[case(status(410), 1, [FAILED, FAILED, retry(5)])]
    #[case(status(410), 9, [FAILED, FAILED, FAILED])]
    #[case(status(429), 1, [retry(600), ENDED, retry(600)])]
    #[case(status(503), 1, [retry(600), ENDED, retry(600)])]
    #[case(status(503), 9, [FAILED, ENDED, FAILED])]
    fn an_attempt_delivers_is_repeated_or_was_the_last(
        #[case] result: AttemptResult,
        #[case] attempt: u32,
        #[case] expected: [Expected; 3],
    ) {
        let made = AttemptMade { result: &result, retry_after: Some("600"), ended_at: at(0), jitter: 0 };
        let decided =
            [EndpointAfter::On, EndpointAfter::Off(NOT_SENT.to_owned()), EndpointAfter::Moved].map(|endpoint| {
                let Conclusion { state, ended_because, was_ended_meanwhile } =
                    pending(attempt).after(&order(attempt), &made, &endpoint);
                assert_eq!((state.chain, state.next_attempt, was_ended_meanwhile), (1, attempt + 1, false));
                let wait_s = state.next_attempt_at.map(|at| at.ms() / 1_000);
                (state.status, wait_s, ended_because.as_deref() == Some(NOT_SENT))
            });
        assert_eq!(decided, expected);
    }

    #[rstest::rstest]
    #[case(204, DeliveryStatus::Delivered)]
    #[case(500, DeliveryStatus::Failed)]
    #[case(410, DeliveryStatus::Failed)]
    fn an_attempt_of_a_delivery_that_was_ended_meanwhile_is_its_last(
        #[case] code: u16,
        #[case] expected: DeliveryStatus,
    ) {
        let result = status(code);
        let made = AttemptMade { result: &result, retry_after: None, ended_at: at(0), jitter: 0 };
        let ended = DeliveryState { status: DeliveryStatus::Failed, next_attempt_at: None, ..pending(2) };
        for endpoint in [EndpointAfter::On, EndpointAfter::Off(NOT_SENT.to_owned())] {
            let after = ended.after(&order(2), &made, &endpoint);
            assert_eq!((after.state.status, after.was_ended_meanwhile, after.ended_because), (expected, true, None));
        }
    }

    #[test]
    fn an_attempt_that_no_longer_counts_changes_nothing_but_the_log() {
        for result in [status(204), status(500), status(410)] {
            let made = AttemptMade { result: &result, retry_after: None, ended_at: at(0), jitter: 0 };
            for state in [
                DeliveryState { chain: 2, next_attempt: 1, ..pending(1) },
                pending(3),
                DeliveryState { status: DeliveryStatus::Delivered, next_attempt_at: None, ..pending(2) },
            ] {
                let after = state.after(&order(2), &made, &EndpointAfter::On);
                assert_eq!(after, Conclusion { state, ended_because: None, was_ended_meanwhile: false });
            }
        }
    }

    #[test]
    fn a_chain_takes_less_than_half_of_the_time_for_which_it_is_kept_however_busy_the_receiver_is() {
        let busy = status(UNAVAILABLE);
        let mut made = AttemptMade { result: &busy, retry_after: Some("9999999"), ended_at: at(0), jitter: u16::MAX };
        let mut last = 1;
        while let Some(next) = pending(last).after(&order(last), &made, &EndpointAfter::On).state.next_attempt_at {
            (last, made.ended_at) = (last + 1, next);
        }
        assert_eq!(last, MAX_ATTEMPTS);
        assert!(made.ended_at < at(0) + CHAIN_RETENTION / 2, "{}", made.ended_at);
    }
}
