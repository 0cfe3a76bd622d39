//! The rules of availability by example, worked out by hand: clock changes and opening hours. Each slot is shown with
//! its start instant. `oracle` tries all zones and random calendars and events.

use super::tests::{closed, date, hours, slots_on};
use super::*;

// Berlin: 2026-03-29 01:00Z 02:00 -> 03:00; 2026-10-25 01:00Z 03:00 -> 02:00. Lord Howe: 2026-10-03 15:30Z 02:00 ->
// 02:30. Apia skipped 2011-12-30. Sao Paulo: 2018-11-04 03:00Z 00:00 -> 01:00. Havana: 2025-11-02 05:00Z 01:00 ->
// 00:00.
#[rstest::rstest]
#[case::a_gap_is_left_out("Europe/Berlin", "2026-03-29", "01:00-05:00", (60, 60),
    "01:00@2026-03-29T00:00Z 03:00@2026-03-29T01:00Z 04:00@2026-03-29T02:00Z")]
#[case::closing_in_a_gap_is_the_leap("Europe/Berlin", "2026-03-29", "01:00-02:30", (60, 30), "01:00@2026-03-29T00:00Z")]
#[case::an_overlap_counts_once("Europe/Berlin", "2026-10-25", "01:00-04:00", (60, 60),
    "01:00@2026-10-24T23:00Z 02:00@2026-10-25T00:00Z 03:00@2026-10-25T02:00Z")]
#[case::closing_in_an_overlap_is_the_first("Europe/Berlin", "2026-10-25", "01:00-02:30", (60, 30),
    "01:00@2026-10-24T23:00Z 01:30@2026-10-24T23:30Z")]
#[case::half_an_hour_ahead("Australia/Lord_Howe", "2026-10-04", "01:30-04:00", (30, 30),
    "01:30@2026-10-03T15:00Z 02:30@2026-10-03T15:30Z 03:00@2026-10-03T16:00Z 03:30@2026-10-03T16:30Z")]
#[case::a_skipped_day("Pacific/Apia", "2011-12-30", "00:00-24:00", (60, 60), "")]
#[case::midnight_leapt_over("America/Sao_Paulo", "2018-11-04", "00:00-03:00", (60, 60),
    "01:00@2018-11-04T03:00Z 02:00@2018-11-04T04:00Z")]
#[case::the_first_hour_twice("America/Havana", "2025-11-02", "00:00-02:00", (60, 60),
    "00:00@2025-11-02T04:00Z 01:00@2025-11-02T06:00Z")]
#[case::a_day_ends_at_the_first_midnight("America/Havana", "2025-11-01", "23:00-24:00", (60, 30),
    "23:00@2025-11-02T03:00Z")]
#[case::touching_hours_stay_two("Europe/Berlin", "2026-07-01", "09:00-10:00 10:00-11:00", (60, 30),
    "09:00@2026-07-01T07:00Z 10:00@2026-07-01T08:00Z")]
#[case::a_slot_may_begin_in_one_and_end_in_the_other("Europe/Berlin", "2026-07-01", "09:00-10:00 09:59-11:00", (60, 30),
    "09:00@2026-07-01T07:00Z 09:30@2026-07-01T07:30Z 10:00@2026-07-01T08:00Z")]
#[case::each_opening_has_its_grid("Europe/Berlin", "2026-07-01", "09:00-10:10 10:10-11:20", (30, 30),
    "09:00@2026-07-01T07:00Z 09:30@2026-07-01T07:30Z 10:10@2026-07-01T08:10Z 10:40@2026-07-01T08:40Z")]
fn clocks_and_hours(
    #[case] zone: &str,
    #[case] day: &str,
    #[case] opening_hours: &str,
    #[case] grid: (u32, u32),
    #[case] expected: &str,
) {
    let mut calendar = closed(zone.parse().unwrap());
    (calendar.slot_minutes, calendar.slot_interval_minutes) = grid;
    calendar.overrides.insert(date(day), hours(opening_hours));
    let now = Timestamp::new(date(day).and_time(NaiveTime::MIN).and_utc()) + TimeDelta::days(-30);
    let slots = slots_on(&calendar, date(day), &[], now);
    let shown = slots.iter().map(|slot| {
        let start = slot.span.starts_at.utc().format("%Y-%m-%dT%H:%MZ");
        assert_eq!(slot.span.ends_at, slot.span.starts_at + TimeDelta::minutes(i64::from(grid.0)));
        format!("{}@{start}", show_time(slot.time))
    });
    assert_eq!(shown.collect::<Vec<_>>(), expected.split_whitespace().collect::<Vec<_>>());
}
