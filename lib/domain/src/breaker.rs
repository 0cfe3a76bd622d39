//! The circuit breaker of an endpoint that does not answer. Three attempts in a row without any status open it for 30
//! seconds, and twice as long each time it opens again. While it is open orders wait. The first one after that is the
//! probe. An order that a person gives is a probe too, and does not wait. Any status closes the breaker.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Attempts in a row without a status that open the breaker.
pub const SILENT_ATTEMPTS: u32 = 3;
/// Time for which the breaker opens first.
pub const FIRST_OPENING: TimeDelta = TimeDelta::seconds(30);
/// Longest time for which the breaker opens.
pub const LONGEST_OPENING: TimeDelta = TimeDelta::minutes(15);

/// The breaker of an endpoint. The default is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Breaker {
    /// Attempts in a row without a status, up to the number that opens the breaker.
    #[serde(default, skip_serializing_if = "is_zero")]
    silent: u32,
    /// The number of openings in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    openings: u32,
    /// The end of the latest opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Breaker {
    /// Returns the time until which the breaker is open; `None`: it is closed, or the next attempt is its probe.
    pub fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.until.filter(|until| *until > now)
    }

    /// Returns true if the next attempt is the breaker's probe: its result opens or closes the breaker.
    pub fn is_half_open(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Returns true if another state closes the breaker before its time, while orders wait for it.
    pub fn is_closed_early_by(&self, next: &Self, now: Timestamp) -> bool {
        self.open_until(now).is_some() && next.until.is_none()
    }

    /// Returns the breaker after an attempt that ended at `now` without a status. `seen` is the breaker when the
    /// attempt began. Attempts that were under way when the breaker opened do not open it again.
    #[must_use]
    pub fn after_silence(&self, seen: &Self, now: Timestamp) -> Self {
        if self.open_until(now).is_some() && self != seen {
            return *self;
        }
        let silent = (self.silent + 1).min(SILENT_ATTEMPTS);
        if silent < SILENT_ATTEMPTS {
            return Self { silent, ..*self };
        }
        let doubled = FIRST_OPENING * (1 << self.openings.min(10));
        Self { silent, openings: self.openings + 1, until: Some(now + doubled.min(LONGEST_OPENING)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_ms(seconds * 1_000)
    }

    #[test]
    fn three_silent_attempts_open_the_breaker_and_each_probe_doubles_its_time() {
        let mut breaker = Breaker::default();
        let mut openings = Vec::new();
        let mut now = at(0);
        for _ in 0..SILENT_ATTEMPTS - 1 {
            breaker = breaker.after_silence(&breaker, now);
            assert_eq!(breaker.open_until(now), None);
        }
        for _ in 0..8 {
            breaker = breaker.after_silence(&breaker, now);
            let until = breaker.open_until(now).unwrap();
            openings.push((until.utc() - now.utc()).num_seconds());
            assert!(!breaker.is_half_open(now));
            now = until;
            assert!(breaker.is_half_open(now) && breaker.open_until(now).is_none(), "the probe");
        }
        assert_eq!(openings, [30, 60, 120, 240, 480, 900, 900, 900]);
    }

    #[test]
    fn attempts_under_way_at_the_opening_do_not_prolong_it() {
        let closed = Breaker::default();
        let opened = (0..3).fold(closed, |breaker, _| breaker.after_silence(&closed, at(0)));
        assert_eq!((0..10).fold(opened, |breaker, _| breaker.after_silence(&closed, at(29))), opened);
        assert_ne!(opened.after_silence(&closed, at(30)), opened);
    }

    #[test]
    fn of_attempts_that_were_made_while_the_breaker_was_open_the_first_to_end_prolongs_it() {
        let opened = (0..3).fold(Breaker::default(), |breaker, _| breaker.after_silence(&breaker, at(0)));
        let prolonged = opened.after_silence(&opened, at(10));
        assert_eq!(prolonged.open_until(at(10)), Some(at(70)));
        assert_eq!(prolonged.after_silence(&opened, at(11)), prolonged);
    }

    proptest! {
        #[test]
        fn an_opening_lasts_30_seconds_to_15_minutes(gaps_s in prop::collection::vec(0i64..2_000, 3..60)) {
            let (mut breaker, mut now) = (Breaker::default(), at(0));
            for gap_s in gaps_s {
                now = now + TimeDelta::seconds(gap_s);
                let before = breaker.open_until(now);
                breaker = breaker.after_silence(&Breaker::default(), now);
                match (before, breaker.open_until(now)) {
                    (Some(before), after) => prop_assert_eq!(after, Some(before)),
                    (None, Some(until)) => prop_assert!((FIRST_OPENING..=LONGEST_OPENING).contains(&(until.utc() - now.utc()))),
                    (None, None) => prop_assert!(breaker.silent < SILENT_ATTEMPTS),
                }
            }
        }
    }
}
