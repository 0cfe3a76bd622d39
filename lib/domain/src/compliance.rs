//! Compliance: the share of a client's scheduled doses that were logged, over a window of local dates.

use chrono::{NaiveDate, TimeDelta};
use serde::Serialize;

use crate::dose::{DoseSchedule, DosesLogged};
use crate::id::ClientId;
use crate::list::PageSize;
use crate::time::Timestamp;
use crate::tz::Tz;
use crate::wall_clock::date_at;

/// Bounds of `window_days`. The default is what automations evaluate.
pub const WINDOW_DAYS: PageSize = PageSize { default: 7, max: 90 };

/// A run of dates that ends today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first date.
    pub since: NaiveDate,
    /// The last date.
    pub today: NaiveDate,
}

impl Window {
    /// Returns the window of `days` dates that ends with today in this time zone.
    pub fn ending(now: Timestamp, zone: Tz, days: u32) -> Self {
        let today = date_at(zone, now);
        Self { since: today - TimeDelta::days(i64::from(days.max(1)) - 1), today }
    }

    /// Returns the earliest first date of a window of `days` dates in any time zone. No zone is a whole day behind UTC.
    pub fn earliest_since(now: Timestamp, days: u32) -> NaiveDate {
        now.utc().date_naive() - TimeDelta::days(i64::from(days.max(1)))
    }

    fn dates(self) -> impl Iterator<Item = NaiveDate> {
        self.since.iter_days().take_while(move |date| *date <= self.today)
    }
}

/// A client's compliance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Compliance {
    /// The client that the figures are about.
    pub client_id: ClientId,
    /// Number of dates in the window.
    pub window_days: u32,
    /// The window's first date.
    pub since: NaiveDate,
    /// Null, not 0, if nothing was logged or nothing was expected.
    #[schema(required, maximum = 100)]
    pub compliance_pct: Option<u8>,
    /// Logs of scheduled doses in the window.
    pub doses_logged: u64,
    /// Doses that the client's schedule has in the window.
    pub doses_expected: u64,
    /// Date of the last dose log ever; null when there is none.
    #[schema(required)]
    pub last_logged_on: Option<NaiveDate>,
}

impl Compliance {
    /// Computes compliance over a window. `logged` must hold the window's months, and the last month with a log.
    pub fn of(
        client_id: ClientId,
        window_days: u32,
        window: Window,
        schedule: &DoseSchedule,
        logged: &DosesLogged,
    ) -> Self {
        let doses_expected = window.dates().map(|date| schedule.expected_on(date)).sum();
        let doses_logged = window.dates().map(|date| logged.counting_on(date, schedule)).sum();
        Self {
            client_id,
            window_days,
            since: window.since,
            compliance_pct: compliance_pct(doses_logged, doses_expected),
            doses_logged,
            doses_expected,
            last_logged_on: logged.last_logged_on(),
        }
    }
}

/// Returns the share of expected doses that were logged, in percent, half up, at most 100. `None`, not 0, if nothing
/// was logged or nothing was expected.
pub fn compliance_pct(logged: u64, expected: u64) -> Option<u8> {
    if logged == 0 || expected == 0 {
        return None;
    }
    let (logged, expected) = (u128::from(logged), u128::from(expected));
    let half_up = (200 * logged + expected) / (2 * expected);
    u8::try_from(half_up.min(100)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dose::{Month, MonthOfDoses, ScheduledDose};
    use crate::id::DoseId;
    use crate::tz::tests::all_zones;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[rstest::rstest]
    #[case(0, 0, None)]
    #[case(0, 10, None)]
    #[case(3, 0, None)]
    #[case(1, 200, Some(1))]
    #[case(1, 201, Some(0))]
    #[case(1, 3, Some(33))]
    #[case(2, 3, Some(67))]
    #[case(125, 1000, Some(13))]
    #[case(124, 1000, Some(12))]
    #[case(199, 200, Some(100))]
    #[case(14, 14, Some(100))]
    #[case(20, 14, Some(100))]
    #[case(u64::MAX, u64::MAX, Some(100))]
    fn a_percentage_rounds_half_up_and_stops_at_100(
        #[case] logged: u64,
        #[case] expected: u64,
        #[case] pct: Option<u8>,
    ) {
        assert_eq!(compliance_pct(logged, expected), pct);
    }

    fn date(text: &str) -> NaiveDate {
        crate::time::parse_date(text).unwrap()
    }

    proptest! {
        #[test]
        fn a_window_ends_today_and_has_as_many_dates_as_asked_for_in_any_zone(
            ms in 0i64..4_000_000_000_000, zone in prop::sample::select(all_zones()), days in 1u32..=90
        ) {
            let now = Timestamp::from_ms(ms);
            let window = Window::ending(now, zone, days);
            prop_assert_eq!((window.today, window.dates().count()), (date_at(zone, now), days as usize));
            prop_assert_eq!(window.today - window.since, TimeDelta::days(i64::from(days) - 1));
            prop_assert!(Window::earliest_since(now, days) <= window.since);
        }

        #[test]
        fn compliance_is_the_count_of_each_scheduled_log_in_the_window(
            doses in prop::collection::vec((0u8..4, 0u32..4, 0i64..60, prop::option::of(0i64..60)), 0..6),
            logs in prop::collection::vec((0u8..4, 0i64..60), 0..80),
            days in 1u32..=40
        ) {
            let epoch = date("2026-01-15");
            let day = |n: i64| epoch + TimeDelta::days(n);
            let today = day(45);
            let id = |n: u8| DoseId::parse(&format!("dose-{n}")).unwrap();
            let schedule = DoseSchedule(doses.iter().map(|(dose, per_day, from, until)| ScheduledDose {
                dose_id: id(*dose), per_day: *per_day, from: day(*from), until: until.map(day),
            }).collect());
            let mut months: BTreeMap<Month, MonthOfDoses> = BTreeMap::new();
            for (dose, n) in &logs {
                months.entry(Month::of(day(*n))).or_default().add(&id(*dose), day(*n));
            }
            let window = Window { since: today - TimeDelta::days(i64::from(days) - 1), today };
            let client = ClientId::parse("c").unwrap();
            let found = Compliance::of(client, days, window, &schedule, &DosesLogged(months));
            let in_window = |date: NaiveDate| window.since <= date && date <= today;
            let runs = |(dose, per_day, from, until): &(u8, u32, i64, Option<i64>), log: u8, date: NaiveDate|
                *dose == log && *per_day > 0 && day(*from) <= date && until.is_none_or(|until| date <= day(until));
            let logged = logs.iter()
                .filter(|(dose, n)| in_window(day(*n)) && doses.iter().any(|entry| runs(entry, *dose, day(*n)))).count();
            let expected: u64 = (0..60).map(day).filter(|date| in_window(*date))
                .map(|date| doses.iter().filter(|entry| runs(entry, entry.0, date)).map(|entry| u64::from(entry.1)).sum::<u64>()).sum();
            prop_assert_eq!(found.doses_logged, logged as u64);
            prop_assert_eq!(found.doses_expected, expected);
            prop_assert_eq!(found.last_logged_on, logs.iter().map(|(_, n)| day(*n)).max());
            prop_assert_eq!(found.compliance_pct.is_some(), logged > 0 && expected > 0);
            prop_assert!(found.compliance_pct.is_none_or(|pct| pct <= 100));
        }
    }
}
