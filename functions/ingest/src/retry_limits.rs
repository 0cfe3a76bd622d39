//! Limits of a fact's retries.
//!
//! The queue would move a message to the dead letters unchanged, with fields that the service must not keep. So the
//! function gives up first.

use chrono::TimeDelta;
use domain::time::Timestamp;
use store::StoreError;

/// Time for which a fact waits for a record that it refers to.
const WAIT: TimeDelta = TimeDelta::minutes(15);
/// Receives after which a failure is final.
const MAX_FAILURES: u32 = 5;
/// Receives after which a fact is not tried again: one day, at the queue's visibility time-out of three minutes. The
/// limit also ends facts that crash the function.
const MAX_RECEIVES: u32 = 480;

/// Returns true while a fact may wait for a record that it refers to.
pub(crate) fn still_waits(since: Timestamp, now: Timestamp) -> bool {
    now.utc() - since.utc() < WAIT
}

/// Returns true if a message was received too often to be tried again.
pub(crate) fn is_over(receives: u32) -> bool {
    receives > MAX_RECEIVES
}

/// Returns true if a failure is final. An unavailable store never makes a failure final.
pub(crate) fn is_final(error: &(dyn std::error::Error + 'static), receives: u32) -> bool {
    receives >= MAX_FAILURES && !matches!(error.downcast_ref(), Some(StoreError::Unavailable { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_final_the_fifth_time_unless_the_store_is_silent() {
        let refused = StoreError::Refused { operation: "PutItem", source: "no such thing".into() };
        let silent = StoreError::Unavailable { operation: "PutItem", source: "no answer".into() };
        assert!(!is_final(&refused, 4) && is_final(&refused, 5));
        assert!(!is_final(&silent, 479));
        assert!(!is_over(480) && is_over(481));
    }

    #[test]
    fn a_fact_waits_for_15_minutes() {
        let since = Timestamp::from_ms(0);
        assert!(still_waits(since, Timestamp::from_ms(899_999)) && !still_waits(since, Timestamp::from_ms(900_000)));
    }
}
