//! Numbers of an endpoint's deliveries, hour by hour. Hours and days are those of UTC.

use std::ops::{Add, AddAssign, RangeInclusive};

use chrono::{NaiveDate, TimeDelta, Timelike};
use serde::Serialize;

use super::{AttemptResult, DeliveryStatus};
use crate::fields::Invalid;
use crate::time::Timestamp;

/// Retention of the counts of an hour. The longest period has 30 days, and begins within an hour.
pub const ACTIVITY_RETENTION: TimeDelta = TimeDelta::days(31);
/// Shortest period that a coach can ask for, and the default: the last day.
pub const MIN_ACTIVITY_HOURS: u32 = 24;
/// Longest period that a coach can ask for.
pub const MAX_ACTIVITY_HOURS: u32 = 720;
/// The parameter with the length of a period.
pub const ACTIVITY_PARAMETER: &str = "hours";

const HOUR_MS: i64 = 3_600_000;

/// An hour of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hour(Timestamp);

impl Hour {
    /// The hour that an instant is in.
    pub fn of(at: Timestamp) -> Self {
        Self(Timestamp::from_ms(at.ms().div_euclid(HOUR_MS) * HOUR_MS))
    }

    pub fn begin(self) -> Timestamp {
        self.0
    }

    pub fn day(self) -> NaiveDate {
        self.0.utc().date_naive()
    }

    /// Returns the hour's number in its day, from 0.
    pub fn of_day(self) -> u32 {
        self.0.utc().hour()
    }

    fn earlier(self, hours: u32) -> Self {
        Self(self.0 + -TimeDelta::hours(hours.into()))
    }
}

/// Consecutive hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityPeriod {
    hours: u32,
    last: Hour,
}

impl ActivityPeriod {
    /// The hour of `now` and the 23 before.
    pub fn last_day(now: Timestamp) -> Self {
        Self { hours: MIN_ACTIVITY_HOURS, last: Hour::of(now) }
    }

    /// Parses the number of hours in a query. The last of them is the hour of `now`.
    pub fn parse(hours: Option<&str>, now: Timestamp) -> Result<Self, Invalid> {
        let Some(text) = hours else { return Ok(Self::last_day(now)) };
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let hours = text.parse().ok().filter(|hours| is_number && Self::HOURS.contains(hours));
        let hours = hours.ok_or_else(|| Invalid::field(ACTIVITY_PARAMETER, Self::rule()))?;
        Ok(Self { hours, last: Hour::of(now) })
    }

    const HOURS: RangeInclusive<u32> = MIN_ACTIVITY_HOURS..=MAX_ACTIVITY_HOURS;

    /// The rule for the number of hours, which completes a sentence that begins with the parameter's name.
    pub fn rule() -> String {
        format!("must be a whole number from {MIN_ACTIVITY_HOURS} to {MAX_ACTIVITY_HOURS}")
    }

    /// The hours of the period, oldest first.
    pub fn hours(self) -> impl Iterator<Item = Hour> {
        (0..self.hours).rev().map(move |ago| self.last.earlier(ago))
    }

    /// The first and the last day that have hours of the period.
    pub fn days(self) -> RangeInclusive<NaiveDate> {
        self.last.earlier(self.hours.saturating_sub(1)).day()..=self.last.day()
    }
}

/// The deliveries and attempts of an endpoint in one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HourCounts {
    /// Deliveries that the receiver took.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Deliveries that failed for good.
    pub failed: u64,
}

impl HourCounts {
    pub const NOTHING: Self = Self { delivered: 0, failed_attempts: 0, failed: 0 };
    /// One delivery that failed without an attempt.
    pub const NOT_SENT: Self = Self { failed: 1, ..Self::NOTHING };

    /// The counts of one attempt, after which its delivery has this status.
    pub fn of_attempt(result: &AttemptResult, status: DeliveryStatus) -> Self {
        match (result.is_success(), status) {
            (true, _) => Self { delivered: 1, ..Self::NOTHING },
            (false, DeliveryStatus::Failed) => Self { failed_attempts: 1, failed: 1, ..Self::NOTHING },
            (false, DeliveryStatus::Pending | DeliveryStatus::Delivered) => {
                Self { failed_attempts: 1, ..Self::NOTHING }
            }
        }
    }
}

impl Add for HourCounts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            delivered: self.delivered.saturating_add(other.delivered),
            failed_attempts: self.failed_attempts.saturating_add(other.failed_attempts),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

impl AddAssign for HourCounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for HourCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::NOTHING, Self::add)
    }
}

/// The numbers of one hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ActivityHour {
    /// When the hour begins.
    pub at: Timestamp,
    /// The deliveries that were delivered in the hour.
    pub delivered: u64,
    /// The attempts that failed in the hour. A delivery may have several.
    pub failed: u64,
}

/// The numbers of each hour of a period, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Activity {
    /// The hours of the period, oldest first. The current hour is the last.
    pub data: Vec<ActivityHour>,
}

impl Activity {
    /// The sums over endpoints. Each endpoint has its counts for every hour of the period.
    pub fn sum(period: ActivityPeriod, endpoints: &[Vec<HourCounts>]) -> Self {
        let of_hour = |(index, hour): (usize, Hour)| {
            let counts: HourCounts = endpoints.iter().filter_map(|hours| hours.get(index)).copied().sum();
            ActivityHour { at: hour.begin(), delivered: counts.delivered, failed: counts.failed_attempts }
        };
        Self { data: period.hours().enumerate().map(of_hour).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[rstest::rstest]
    #[case("2026-11-27T23:59:59.999Z", "2026-11-27T23:00:00.000Z", "2026-11-27", 23)]
    #[case("2026-11-28T00:00:00Z", "2026-11-28T00:00:00.000Z", "2026-11-28", 0)]
    #[case("2026-11-28T01:30:00+02:00", "2026-11-27T23:00:00.000Z", "2026-11-27", 23)]
    fn an_hour_begins_in_its_day(#[case] text: &str, #[case] begin: &str, #[case] day: &str, #[case] of_day: u32) {
        let hour = Hour::of(at(text));
        assert_eq!(
            (hour.begin().to_string(), hour.day().to_string(), hour.of_day()),
            (begin.into(), day.into(), of_day)
        );
    }

    #[rstest::rstest]
    #[case(None, Some((24, "2026-11-26")))]
    #[case(Some("24"), Some((24, "2026-11-26")))]
    #[case(Some("25"), Some((25, "2026-11-26")))]
    #[case(Some("48"), Some((48, "2026-11-25")))]
    #[case(Some("720"), Some((720, "2026-10-28")))]
    #[case(Some("23"), None)]
    #[case(Some("721"), None)]
    #[case(Some("0"), None)]
    #[case(Some("-24"), None)]
    #[case(Some("+24"), None)]
    #[case(Some("24.0"), None)]
    #[case(Some("day"), None)]
    #[case(Some(""), None)]
    #[case(Some("99999999999"), None)]
    fn a_period_has_its_hours_up_to_the_current_one(
        #[case] asked: Option<&str>,
        #[case] expected: Option<(usize, &str)>,
    ) {
        let now = at("2026-11-27T13:45:00Z");
        let Some((count, first_day)) = expected else {
            let refused = ActivityPeriod::parse(asked, now).unwrap_err();
            assert_eq!(refused.message, "hours must be a whole number from 24 to 720");
            return;
        };
        let period = ActivityPeriod::parse(asked, now).unwrap();
        assert_eq!(period.hours().count(), count);
        assert_eq!(period.hours().last(), Some(Hour::of(now)));
        let days = period.days();
        assert_eq!((days.start().to_string(), days.end().to_string()), (first_day.to_owned(), "2026-11-27".to_owned()));
    }

    proptest! {
        /// The counts of every hour of a period are kept, and its days have no hour before the first.
        #[test]
        fn a_period_has_consecutive_hours_within_its_days_and_their_retention(
            now_ms in 0i64..4_000_000_000_000, hours in MIN_ACTIVITY_HOURS..=MAX_ACTIVITY_HOURS,
        ) {
            let now = Timestamp::from_ms(now_ms);
            let period = ActivityPeriod::parse(Some(&hours.to_string()), now).unwrap();
            let all: Vec<Hour> = period.hours().collect();
            prop_assert!(all.windows(2).all(|pair| pair[1].begin().ms() - pair[0].begin().ms() == HOUR_MS));
            prop_assert_eq!((all[0].day(), all[all.len() - 1].day()), period.days().into_inner());
            prop_assert!(all[0].begin() + ACTIVITY_RETENTION > now);
        }
    }

    #[rstest::rstest]
    #[case(204, DeliveryStatus::Delivered, [1, 0, 0])]
    // Another attempt of the delivery failed meanwhile.
    #[case(204, DeliveryStatus::Failed, [1, 0, 0])]
    #[case(500, DeliveryStatus::Pending, [0, 1, 0])]
    #[case(500, DeliveryStatus::Failed, [0, 1, 1])]
    #[case(500, DeliveryStatus::Delivered, [0, 1, 0])]
    fn an_attempt_counts_by_its_result(#[case] code: u16, #[case] status: DeliveryStatus, #[case] expected: [u64; 3]) {
        let HourCounts { delivered, failed_attempts, failed } =
            HourCounts::of_attempt(&AttemptResult::StatusCode(code), status);
        assert_eq!([delivered, failed_attempts, failed], expected);
    }

    #[test]
    fn activity_sums_delivered_and_failed_attempts_over_endpoints() {
        let period = ActivityPeriod::last_day(at("2026-11-27T13:45:00Z"));
        let counts = |hour: u64| HourCounts { delivered: hour, failed_attempts: 2 * hour, failed: 1_000 };
        let endpoint: Vec<HourCounts> = (0..24).map(counts).collect();
        let activity = Activity::sum(period, &[endpoint.clone(), endpoint]);
        assert_eq!(activity.data.len(), 24);
        let [first, .., last] = &activity.data[..] else { panic!("24 hours") };
        assert_eq!(*first, ActivityHour { at: at("2026-11-26T14:00:00Z"), delivered: 0, failed: 0 });
        assert_eq!(*last, ActivityHour { at: at("2026-11-27T13:00:00Z"), delivered: 46, failed: 92 });
        assert!(Activity::sum(period, &[]).data.iter().all(|hour| (hour.delivered, hour.failed) == (0, 0)));
    }
}
