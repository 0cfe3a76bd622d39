//! The decision about a delivery after an attempt.

use super::AttemptResult;
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
    /// The number of the attempt in its chain, from 1.
    pub number: u32,
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

/// The outcome of a delivery after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    RetryAt(Timestamp),
    /// The chain has no attempt left.
    Exhausted,
    /// The receiver answered 410 Gone and takes no more deliveries.
    Gone,
    /// The endpoint takes no more deliveries, for this reason.
    EndpointOff(String),
}

pub fn after_attempt(made: &AttemptMade<'_>, endpoint: &EndpointAfter) -> DeliveryOutcome {
    match endpoint {
        _ if made.result.is_success() => DeliveryOutcome::Delivered,
        EndpointAfter::On | EndpointAfter::Off(_) if made.result.is_gone() => DeliveryOutcome::Gone,
        EndpointAfter::Off(reason) => DeliveryOutcome::EndpointOff(reason.clone()),
        EndpointAfter::On | EndpointAfter::Moved => after_failure(made),
    }
}

fn after_failure(made: &AttemptMade<'_>) -> DeliveryOutcome {
    let is_busy = matches!(made.result, AttemptResult::StatusCode(TOO_MANY_REQUESTS | UNAVAILABLE));
    let retry_after = made.retry_after.filter(|_| is_busy);
    match gap_after(made.number, made.jitter) {
        Some(gap) => DeliveryOutcome::RetryAt(made.ended_at + lengthened(gap, retry_after, made.ended_at)),
        None => DeliveryOutcome::Exhausted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::CHAIN_RETENTION;
    use crate::retry::MAX_ATTEMPTS;

    const NOT_SENT: &str = "not sent: endpoint gone";

    fn off() -> EndpointAfter {
        EndpointAfter::Off(NOT_SENT.to_owned())
    }

    fn status(code: u16) -> AttemptResult {
        AttemptResult::StatusCode(code)
    }

    fn error() -> AttemptResult {
        AttemptResult::Error("timed out".to_owned())
    }

    fn retry(at_s: i64) -> DeliveryOutcome {
        DeliveryOutcome::RetryAt(Timestamp::from_ms(at_s * 1_000))
    }

    fn ended() -> DeliveryOutcome {
        DeliveryOutcome::EndpointOff(NOT_SENT.to_owned())
    }

    /// A result and the number of its attempt, then the outcome if the endpoint is on, off, or moved.
    #[rstest::rstest]
    #[case(status(200), 1, [DeliveryOutcome::Delivered, DeliveryOutcome::Delivered, DeliveryOutcome::Delivered])]
    #[case(status(299), 9, [DeliveryOutcome::Delivered, DeliveryOutcome::Delivered, DeliveryOutcome::Delivered])]
    #[case(status(302), 1, [retry(5), ended(), retry(5)])]
    #[case(status(500), 2, [retry(60), ended(), retry(60)])]
    #[case(error(), 8, [retry(36_000), ended(), retry(36_000)])]
    #[case(status(404), 9, [DeliveryOutcome::Exhausted, ended(), DeliveryOutcome::Exhausted])]
    #[case(error(), 9, [DeliveryOutcome::Exhausted, ended(), DeliveryOutcome::Exhausted])]
    #[case(status(410), 1, [DeliveryOutcome::Gone, DeliveryOutcome::Gone, retry(5)])]
    #[case(status(410), 9, [DeliveryOutcome::Gone, DeliveryOutcome::Gone, DeliveryOutcome::Exhausted])]
    #[case(status(429), 1, [retry(600), ended(), retry(600)])]
    #[case(status(503), 1, [retry(600), ended(), retry(600)])]
    #[case(status(503), 9, [DeliveryOutcome::Exhausted, ended(), DeliveryOutcome::Exhausted])]
    fn an_attempt_delivers_is_repeated_or_was_the_last(
        #[case] result: AttemptResult,
        #[case] number: u32,
        #[case] expected: [DeliveryOutcome; 3],
    ) {
        let (retry_after, ended_at) = (Some("600"), Timestamp::from_ms(0));
        let made = AttemptMade { result: &result, retry_after, number, ended_at, jitter: 0 };
        let decided = [EndpointAfter::On, off(), EndpointAfter::Moved].map(|endpoint| after_attempt(&made, &endpoint));
        assert_eq!(decided, expected);
    }

    #[test]
    fn a_chain_takes_less_than_half_of_the_time_for_which_it_is_kept_however_busy_the_receiver_is() {
        let busy = status(UNAVAILABLE);
        let first = AttemptMade {
            result: &busy,
            retry_after: Some("9999999"),
            number: 1,
            ended_at: Timestamp::from_ms(0),
            jitter: u16::MAX,
        };
        let mut last = first;
        while let DeliveryOutcome::RetryAt(at) = after_attempt(&last, &EndpointAfter::On) {
            last = AttemptMade { number: last.number + 1, ended_at: at, ..last };
        }
        assert_eq!(last.number, MAX_ATTEMPTS);
        assert!(last.ended_at < first.ended_at + CHAIN_RETENTION / 2, "{}", last.ended_at);
    }
}
