//! The pace of an endpoint. A receiver that takes its time opens no breaker, and each request to it occupies a
//! function all the while. So an endpoint whose receiver answers slowly is marked for some minutes, and its orders have
//! few lanes meanwhile: [`crate::delivery::DeliveryOrder::lane`].
//!
//! A quick answer does not end the mark, which lasts until no answer was slow for that time. So the mark is written
//! every few minutes at most.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::breaker::LONGEST_OPENING;
use crate::time::Timestamp;

/// Longest time of an answer that is not slow.
pub const SLOW_ANSWER: TimeDelta = TimeDelta::seconds(2);
/// Time for which an endpoint stays marked as slow.
pub const SLOW_FOR: TimeDelta = TimeDelta::minutes(5);

/// The mark of an endpoint that answers slowly, and the end of its latest silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pace {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slow_until: Option<Timestamp>,
    /// The first answer after the breaker was open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers_since: Option<Timestamp>,
}

impl Pace {
    /// Returns true while orders may still wait for a breaker that has closed.
    pub fn was_silent(&self, now: Timestamp) -> bool {
        self.answers_since.is_some_and(|since| since + LONGEST_OPENING > now)
    }

    pub fn is_slow(&self, now: Timestamp) -> bool {
        self.slow_until.is_some_and(|until| until > now)
    }

    /// Returns the pace after the answer that ended a silence at `now`.
    #[must_use]
    pub fn after_silence(&self, now: Timestamp) -> Self {
        Self { answers_since: Some(now), ..*self }
    }

    /// Returns the pace after an answer that came at `now`. A mark with more than half of its time left stays as it is.
    #[must_use]
    pub fn after_answer(&self, took: TimeDelta, now: Timestamp) -> Self {
        let is_fresh = self.slow_until.is_some_and(|until| until.utc() - now.utc() > SLOW_FOR / 2);
        if took <= SLOW_ANSWER || is_fresh { *self } else { Self { slow_until: Some(now + SLOW_FOR), ..*self } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_ms(seconds * 1_000)
    }

    #[test]
    fn a_slow_answer_marks_an_endpoint_for_five_minutes_and_a_quick_one_does_not_end_the_mark() {
        let (quick, slow) = (TimeDelta::milliseconds(2_000), TimeDelta::milliseconds(2_001));
        assert_eq!(Pace::default().after_answer(quick, at(0)), Pace::default());
        let marked = Pace::default().after_answer(slow, at(0));
        assert_eq!([0, 299, 300].map(|s| marked.is_slow(at(s))), [true, true, false]);
        assert_eq!(marked.after_answer(quick, at(100)), marked);
    }

    #[test]
    fn slow_answers_prolong_the_mark_once_half_of_it_is_over() {
        let slow = TimeDelta::seconds(14);
        let marked = Pace::default().after_answer(slow, at(0));
        assert_eq!(marked.after_answer(slow, at(149)), marked);
        assert!(marked.after_answer(slow, at(150)).is_slow(at(449)));
    }
}
