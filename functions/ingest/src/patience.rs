//! How long a fact is tried.
//!
//! The queue would set a message aside as it came, with fields that the service has no business with. So the function
//! gives up first.

use chrono::TimeDelta;
use domain::time::Timestamp;
use store::StoreError;

/// How long a fact waits for what it refers to.
const WAIT: TimeDelta = TimeDelta::minutes(15);
/// Receives after which a failure is not going to mend itself.
const MAX_FAILURES: u32 = 5;
/// Receives after which a fact is not tried again: a day of them, at the queue's visibility time-out of three minutes.
/// Whatever takes the function down with it ends here.
const MAX_RECEIVES: u32 = 480;

/// Whether a fact that refers to what has not been seen goes round again.
pub(crate) fn waits_on(since: Timestamp, now: Timestamp) -> bool {
    now.utc() - since.utc() < WAIT
}

/// Whether a message has been received too often to be tried at all.
pub(crate) fn is_worn_out(receives: u32) -> bool {
    receives > MAX_RECEIVES
}

/// Whether a failure is final. A store that does not answer is waited for, however often.
pub(crate) fn is_hopeless(error: &(dyn std::error::Error + 'static), receives: u32) -> bool {
    receives >= MAX_FAILURES && !matches!(error.downcast_ref(), Some(StoreError::Unavailable { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_final_the_fifth_time_unless_the_store_is_silent() {
        let refused = StoreError::Refused { operation: "PutItem", source: "no such thing".into() };
        let silent = StoreError::Unavailable { operation: "PutItem", source: "no answer".into() };
        assert!(!is_hopeless(&refused, 4) && is_hopeless(&refused, 5));
        assert!(!is_hopeless(&silent, 479));
        assert!(!is_worn_out(480) && is_worn_out(481));
    }

    #[test]
    fn a_fact_waits_for_15_minutes() {
        let since = Timestamp::from_ms(0);
        assert!(waits_on(since, Timestamp::from_ms(899_999)) && !waits_on(since, Timestamp::from_ms(900_000)));
    }
}
