//! The pace of a late endpoint.
//!
//! An endpoint that answers in time has a few permits, one for each batch that is delivered to it at once. A late
//! endpoint has places in time instead, a gap apart (as in the generic cell rate algorithm): each batch reserves a
//! place once and comes back at that time. The gap follows from the length of an attempt, so that a late endpoint, too,
//! has no more than [`PERMITS`] batches at once. An endpoint that did not answer at all has one batch at once.

use std::time::Duration;

use chrono::TimeDelta;

use crate::delivery::ATTEMPT_TIMEOUT;
use crate::time::Timestamp;

/// Most batches that are delivered to an endpoint at once.
pub const PERMITS: i32 = 3;
/// Time after which an endpoint without a status is late.
pub const LATE_AFTER: Duration = Duration::from_secs(2);
/// Time for which an endpoint that has not answered is marked as late.
const HANGING_FOR: TimeDelta = TimeDelta::seconds(60);
/// Time for which an endpoint that answered late is marked as late.
const SLOW_FOR: TimeDelta = TimeDelta::minutes(10);

/// The pace of a late endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time between two places.
    pub gap: TimeDelta,
    /// When the endpoint no longer counts as late.
    pub until: Timestamp,
}

/// The way in which an endpoint is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lateness {
    /// An attempt is still waiting, after [`LATE_AFTER`].
    Waiting,
    /// The endpoint answered after that time.
    Answered(TimeDelta),
    /// The endpoint has not answered.
    TimedOut,
}

impl Pace {
    /// Returns the pace to record for a late endpoint. `None`: the known pace is close enough and still lasts.
    pub fn to_record(known: Option<Self>, lateness: Lateness, now: Timestamp) -> Option<Self> {
        let known = known.filter(|pace| pace.until > now);
        // In whole milliseconds, like the stored form.
        let share_of = |time: TimeDelta| TimeDelta::milliseconds(time.num_milliseconds() / i64::from(PERMITS));
        let (gap, lasts) = match lateness {
            Lateness::Waiting if known.is_some() => return None,
            Lateness::Waiting => (share_of(ATTEMPT_TIMEOUT), HANGING_FOR),
            Lateness::Answered(after) => (share_of(after), SLOW_FOR),
            Lateness::TimedOut => (ATTEMPT_TIMEOUT, HANGING_FOR),
        };
        let is_close_enough = |pace: Self| pace.gap <= gap * 2 && gap <= pace.gap * 2 && now + lasts / 2 <= pace.until;
        (!known.is_some_and(is_close_enough)).then_some(Self { gap, until: now + lasts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(gap_ms: i64, until_s: i64) -> Pace {
        Pace { gap: TimeDelta::milliseconds(gap_ms), until: Timestamp::from_ms(until_s * 1_000) }
    }

    /// The known pace, the observed lateness, and the pace to record at second 1,000.
    #[rstest::rstest]
    #[case::first_wait(None, Lateness::Waiting, Some(pace(5_000, 1_060)))]
    #[case::wait_of_a_late_one(Some(pace(900, 1_001)), Lateness::Waiting, None)]
    #[case::wait_after_its_time(Some(pace(900, 1_000)), Lateness::Waiting, Some(pace(5_000, 1_060)))]
    #[case::answered(
        Some(pace(5_000, 1_058)),
        Lateness::Answered(TimeDelta::milliseconds(2_700)),
        Some(pace(900, 1_600))
    )]
    #[case::answered_again(Some(pace(900, 1_300)), Lateness::Answered(TimeDelta::seconds(5)), None)]
    #[case::answered_far_later(
        Some(pace(900, 1_600)),
        Lateness::Answered(TimeDelta::seconds(6)),
        Some(pace(2_000, 1_600))
    )]
    #[case::answered_sooner(
        Some(pace(4_000, 1_600)),
        Lateness::Answered(TimeDelta::seconds(3)),
        Some(pace(1_000, 1_600))
    )]
    #[case::answered_after_half_of_its_time(
        Some(pace(900, 1_299)),
        Lateness::Answered(TimeDelta::milliseconds(2_700)),
        Some(pace(900, 1_600))
    )]
    #[case::timed_out(Some(pace(5_000, 1_045)), Lateness::TimedOut, Some(pace(15_000, 1_060)))]
    #[case::timed_out_again(Some(pace(15_000, 1_030)), Lateness::TimedOut, None)]
    #[case::timed_out_though_it_did_answer(Some(pace(5_000, 1_600)), Lateness::TimedOut, Some(pace(15_000, 1_060)))]
    fn a_late_endpoint_is_noted_once_for_a_while(
        #[case] known: Option<Pace>,
        #[case] lateness: Lateness,
        #[case] noted: Option<Pace>,
    ) {
        assert_eq!(Pace::to_record(known, lateness, Timestamp::from_ms(1_000_000)), noted);
    }
}
