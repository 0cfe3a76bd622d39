//! The health of an endpoint. A failing endpoint is disabled five days after the first failed attempt since its last
//! success, if at least three events failed. The decision falls at a failed attempt. The minimum of three events
//! protects an endpoint with little traffic: one event and its retries do not disable it. Failures of test events do
//! not count.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::breaker::Breaker;
use crate::id::EventId;
use crate::outcome::AttemptResult;
use crate::pace::Pace;
use crate::time::Timestamp;

/// Time for which an endpoint may fail.
pub const PATIENCE: TimeDelta = TimeDelta::days(5);
/// Time after which the coach gets a warning.
pub const WARN_AFTER: TimeDelta = TimeDelta::hours(24);
/// Least number of failed events.
pub const LEAST_EVENTS: usize = 3;

/// The record of an endpoint's failures, empty while the endpoint is healthy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EndpointHealth {
    /// The first failed attempt since the last success, test events left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failing_since: Option<Timestamp>,
    /// Events that failed since then, up to the number that matters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failed_events: Vec<EventId>,
    /// True if the coach got the warning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    warned: bool,
    #[serde(flatten)]
    pub breaker: Breaker,
    #[serde(flatten)]
    pub pace: Pace,
}

/// An attempt that has ended, as far as the health of its endpoint depends on it.
#[derive(Debug, Clone, Copy)]
pub struct EndedAttempt<'a> {
    pub result: &'a AttemptResult,
    /// From the request to the status.
    pub took: TimeDelta,
    pub event: &'a EventId,
    /// True for a test event.
    pub is_test: bool,
    /// The breaker when the attempt began.
    pub breaker: Breaker,
    pub ended_at: Timestamp,
}

/// The effect of an attempt on its endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthEffect {
    /// The health to store. An equal one needs no write.
    Health(EndpointHealth),
    /// The health to store, and the time since which the endpoint fails, for the warning.
    Warn(EndpointHealth, Timestamp),
    /// The endpoint has failed since this time, which is too long.
    TooLong(Timestamp),
    /// The receiver answered 410 Gone.
    Gone,
}

impl EndpointHealth {
    /// Returns the time of the first failed attempt since the last success.
    pub fn failing_since(&self) -> Option<Timestamp> {
        self.failing_since
    }

    /// Evaluates an attempt.
    pub fn after(&self, attempt: &EndedAttempt<'_>) -> HealthEffect {
        let pace = self.pace_after(attempt);
        let breaker = match attempt.result {
            result if result.is_success() => return HealthEffect::Health(Self { pace, ..Self::default() }),
            result if result.is_gone() => return HealthEffect::Gone,
            AttemptResult::StatusCode(_) => Breaker::default(),
            AttemptResult::Error(_) => self.breaker.after_silence(&attempt.breaker, attempt.ended_at),
        };
        let answered = Self { breaker, pace, ..self.clone() };
        if attempt.is_test {
            return HealthEffect::Health(answered);
        }
        answered.after_failure(attempt.event, attempt.ended_at)
    }

    /// The pace after an attempt. Silence is the breaker's matter.
    fn pace_after(&self, attempt: &EndedAttempt<'_>) -> Pace {
        let at = attempt.ended_at;
        let was_silent = self.breaker.open_until(at).is_some() || self.breaker.is_half_open(at);
        match attempt.result {
            AttemptResult::StatusCode(_) if was_silent => self.pace.after_silence(at).after_answer(attempt.took, at),
            AttemptResult::StatusCode(_) => self.pace.after_answer(attempt.took, at),
            AttemptResult::Error(_) => self.pace,
        }
    }

    fn after_failure(self, event: &EventId, at: Timestamp) -> HealthEffect {
        let since = self.failing_since.map_or(at, |since| since.min(at));
        let mut failed_events = self.failed_events;
        if failed_events.len() < LEAST_EVENTS && !failed_events.contains(event) {
            failed_events.push(event.clone());
        }
        if failed_events.len() >= LEAST_EVENTS && at.utc() - since.utc() >= PATIENCE {
            return HealthEffect::TooLong(since);
        }
        let warn = !self.warned && at.utc() - since.utc() >= WARN_AFTER;
        let health = Self { failing_since: Some(since), failed_events, warned: self.warned || warn, ..self };
        if warn { HealthEffect::Warn(health, since) } else { HealthEffect::Health(health) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_ms(hours * 3_600_000)
    }

    fn status(code: u16) -> AttemptResult {
        AttemptResult::StatusCode(code)
    }

    fn silence() -> AttemptResult {
        AttemptResult::Error("timed out".to_owned())
    }

    /// The effect of an attempt that began with the breaker as it is.
    fn after(health: &EndpointHealth, result: AttemptResult, number: usize, ended_at: Timestamp) -> HealthEffect {
        after_of(health, &result, number, false, ended_at)
    }

    fn after_of(
        health: &EndpointHealth,
        result: &AttemptResult,
        number: usize,
        is_test: bool,
        ended_at: Timestamp,
    ) -> HealthEffect {
        let event = EventId::parse(&format!("evt_{number}")).unwrap();
        let (took, breaker) = (TimeDelta::zero(), health.breaker);
        health.after(&EndedAttempt { result, took, event: &event, is_test, breaker, ended_at })
    }

    /// Returns the hour at which the endpoint is disabled. It fails at these events at these hours; `None` is a
    /// success.
    fn switched_off(attempts: &[(i64, Option<usize>)]) -> Option<i64> {
        let mut health = EndpointHealth::default();
        for (hours, failed) in attempts {
            let result = status(if failed.is_some() { 500 } else { 204 });
            match after(&health, result, failed.unwrap_or_default(), at(*hours)) {
                HealthEffect::Health(next) | HealthEffect::Warn(next, _) => health = next,
                HealthEffect::TooLong(_) | HealthEffect::Gone => return Some(*hours),
            }
        }
        None
    }

    #[test]
    fn five_days_and_three_events_are_needed() {
        let failures =
            |list: &[(i64, usize)]| list.iter().map(|(hours, event)| (*hours, Some(*event))).collect::<Vec<_>>();
        assert_eq!(switched_off(&failures(&[(0, 1), (60, 2), (119, 3)])), None, "an hour too early");
        assert_eq!(switched_off(&failures(&[(0, 1), (60, 2), (120, 3)])), Some(120));
        assert_eq!(switched_off(&failures(&[(0, 1), (1, 2), (2, 3), (119, 3), (121, 3)])), Some(121), "at an attempt");
        assert_eq!(switched_off(&failures(&[(0, 1), (27, 1), (130, 2), (200, 2)])), None, "two events");
        assert_eq!(switched_off(&failures(&[(0, 1), (130, 2), (1_000, 3)])), Some(1_000), "however sparse");
    }

    #[test]
    fn the_coach_is_warned_once_after_a_day() {
        let mut health = EndpointHealth::default();
        let mut warnings = Vec::new();
        for hours in [0, 1, 23, 24, 25, 100] {
            match after(&health, status(500), 1, at(hours)) {
                HealthEffect::Warn(worse, since) => {
                    warnings.push((hours, since));
                    health = worse;
                }
                HealthEffect::Health(worse) => health = worse,
                HealthEffect::TooLong(_) | HealthEffect::Gone => {}
            }
        }
        assert_eq!(warnings, [(24, at(0))]);
    }

    #[test]
    fn a_success_starts_anew() {
        let attempts =
            [(0, Some(1)), (1, Some(2)), (2, Some(3)), (119, None), (121, Some(4)), (240, Some(5)), (241, Some(6))];
        assert_eq!(switched_off(&attempts), Some(241));
        assert_eq!(switched_off(&attempts[..6]), None);
    }

    #[test]
    fn any_status_closes_the_breaker_and_silence_opens_it() {
        let mut health = EndpointHealth::default();
        for number in 0..3 {
            assert_eq!(health.breaker.open_until(at(0)), None);
            let effect = after(&health, silence(), number, at(0));
            let HealthEffect::Health(next) = effect else { panic!("{number}") };
            health = next;
        }
        assert!(health.breaker.open_until(at(0)).is_some());
        for code in [204, 302, 500] {
            let effect = after(&health, status(code), 9, at(1));
            let HealthEffect::Health(closed) = effect else { panic!("{code}") };
            assert_eq!((closed.breaker, closed.failing_since.is_some()), (Breaker::default(), code != 204));
        }
        assert_eq!(after(&health, status(410), 9, at(1)), HealthEffect::Gone);
    }

    #[test]
    fn a_test_event_changes_the_breaker_and_its_failures_end_nothing() {
        let HealthEffect::Health(failing) = after(&EndpointHealth::default(), status(500), 0, at(0)) else {
            panic!("one failure");
        };
        for (result, number) in [(status(500), 1), (status(404), 2), (silence(), 3), (silence(), 4), (silence(), 5)] {
            let effect = after_of(&failing, &result, number, true, at(200));
            let HealthEffect::Health(tested) = effect else { panic!("{result:?}") };
            let is_silent = matches!(result, AttemptResult::Error(_));
            assert_eq!(tested.breaker != Breaker::default(), is_silent);
            assert_eq!(EndpointHealth { breaker: failing.breaker, ..tested }, failing);
        }
        let success = after_of(&failing, &status(204), 6, true, at(200));
        assert_eq!(success, HealthEffect::Health(EndpointHealth::default()));
    }

    proptest! {
        #[test]
        fn the_stored_health_decides_like_the_whole_history(
            steps in prop::collection::vec((1i64..40, prop::option::weighted(0.9, 0usize..6)), 1..60)
        ) {
            let mut hours = 0;
            let attempts: Vec<(i64, Option<usize>)> = steps.iter().map(|(gap, event)| { hours += gap; (hours, *event) }).collect();
            let by_history = attempts.iter().enumerate().find_map(|(index, (now, failed))| {
                (*failed)?;
                let past = &attempts[..=index];
                let start = past.iter().rposition(|(_, failed)| failed.is_none()).map_or(0, |success| success + 1);
                let since = past[start].0;
                let events: std::collections::BTreeSet<usize> = past[start..].iter().filter_map(|(_, failed)| *failed).collect();
                (now - since >= 120 && events.len() >= LEAST_EVENTS).then_some(*now)
            });
            prop_assert_eq!(switched_off(&attempts), by_history);
        }
    }
}
