//! The time, by AWS: what an act writes has the time that the functions have, even if this machine's clock is wrong.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_cloudformation::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_cloudformation::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_cloudformation::error::BoxError;
use chrono::{DateTime, TimeDelta, Utc};
use runtime::{Clock, SystemClock};

/// Difference of the clocks that does not matter: an answer tells whole seconds, and takes a moment.
const TOLERANCE: TimeDelta = TimeDelta::seconds(3);

/// A clock that is ahead of this machine's.
pub(crate) struct AwsClock {
    pub(crate) ahead: TimeDelta,
}

impl Clock for AwsClock {
    fn now(&self) -> DateTime<Utc> {
        SystemClock.now() + self.ahead
    }
}

/// The `Date` of the latest answer, as the time by which it is ahead of this machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dated(Arc<Mutex<TimeDelta>>);

impl Dated {
    pub(crate) fn ahead(&self) -> TimeDelta {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Intercept for Dated {
    fn name(&self) -> &'static str {
        "Dated"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date").and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        if let Some(date) = date {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ahead(date.with_timezone(&Utc), SystemClock.now());
        }
        Ok(())
    }
}

fn ahead(date: DateTime<Utc>, now: DateTime<Utc>) -> TimeDelta {
    let ahead = date - now;
    if ahead.abs() > TOLERANCE { ahead } else { TimeDelta::zero() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_by_more_than_an_answer_takes_is_corrected() {
        let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        for (seconds, corrected) in [(0, 0), (-2, 0), (3, 0), (86_400, 86_400), (-60, -60)] {
            assert_eq!(ahead(now + TimeDelta::seconds(seconds), now), TimeDelta::seconds(corrected));
        }
    }
}
