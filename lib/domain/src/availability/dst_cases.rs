//! Slots at clock changes and next to events, worked out by hand from the rules of each zone. Each slot is shown with
//! its start instant.

use super::tests::{closed, date, event, hours, slots_on};
use super::*;

/// Checks the slots of a date, each as `HH:MM@instant`. `grid` is duration and interval, `buffers` before and after, in
/// minutes.
#[track_caller]
fn check(
    zone: &str,
    day: &str,
    opening_hours: &str,
    grid: (u32, u32),
    buffers: (u32, u32),
    events: &[&str],
    expected: &str,
) {
    let mut calendar = closed(zone.parse().unwrap());
    (calendar.slot_minutes, calendar.slot_interval_minutes) = grid;
    (calendar.buffers.before_min, calendar.buffers.after_min) = buffers;
    calendar.overrides.insert(date(day), hours(opening_hours));
    let busy: Vec<Busy> = events.iter().map(|text| event(text)).collect();
    let now = Timestamp::new(date(day).and_time(NaiveTime::MIN).and_utc()) + TimeDelta::days(-30);
    let slots = slots_on(&calendar, date(day), &busy, now);
    let shown = slots.iter().map(|slot| {
        let start = slot.span.starts_at.utc().format("%Y-%m-%dT%H:%MZ");
        assert_eq!(slot.span.ends_at, slot.span.starts_at + TimeDelta::minutes(i64::from(grid.0)));
        format!("{}@{start}", show_time(slot.time))
    });
    assert_eq!(shown.collect::<Vec<_>>(), expected.split_whitespace().collect::<Vec<_>>());
}

/// Central Europe: 2026-03-29 01:00Z 02:00 -> 03:00; 2026-10-25 01:00Z 03:00 -> 02:00.
#[rstest::rstest]
#[case::a_gap_is_left_out("2026-03-29", "01:00-05:00", (60, 60),
    "01:00@2026-03-29T00:00Z 03:00@2026-03-29T01:00Z 04:00@2026-03-29T02:00Z")]
#[case::a_gap_moves_no_grid("2026-03-29", "01:45-04:15", (30, 30),
    "01:45@2026-03-29T00:45Z 03:15@2026-03-29T01:15Z 03:45@2026-03-29T01:45Z")]
#[case::a_slot_lasts_across_a_gap("2026-03-29", "01:30-03:30", (60, 60), "01:30@2026-03-29T00:30Z")]
#[case::closing_in_a_gap_is_the_leap("2026-03-29", "01:00-02:30", (60, 30), "01:00@2026-03-29T00:00Z")]
#[case::closing_where_a_gap_begins("2026-03-29", "01:00-02:00", (60, 60), "01:00@2026-03-29T00:00Z")]
#[case::closing_where_a_gap_ends("2026-03-29", "00:00-03:00", (60, 60),
    "00:00@2026-03-28T23:00Z 01:00@2026-03-29T00:00Z")]
#[case::opening_in_a_gap("2026-03-29", "02:15-04:00", (30, 30), "03:15@2026-03-29T01:15Z")]
#[case::hours_within_a_gap("2026-03-29", "02:00-03:00", (5, 5), "")]
#[case::an_overlap_counts_once("2026-10-25", "01:00-04:00", (60, 60),
    "01:00@2026-10-24T23:00Z 02:00@2026-10-25T00:00Z 03:00@2026-10-25T02:00Z")]
#[case::closing_in_an_overlap_is_the_first("2026-10-25", "01:00-02:30", (60, 30),
    "01:00@2026-10-24T23:00Z 01:30@2026-10-24T23:30Z")]
#[case::two_hours_fit_into_an_overlapped_one("2026-10-25", "02:00-03:00", (120, 60), "02:00@2026-10-25T00:00Z")]
#[case::closing_where_an_overlap_ends("2026-10-25", "02:00-03:00", (60, 30),
    "02:00@2026-10-25T00:00Z 02:30@2026-10-25T00:30Z")]
fn berlin(#[case] day: &str, #[case] hours: &str, #[case] grid: (u32, u32), #[case] expected: &str) {
    check("Europe/Berlin", day, hours, grid, (0, 0), &[], expected);
}

#[rstest::rstest]
// New York: 2026-03-08 07:00Z 02:00 -> 03:00; 2026-11-01 06:00Z 02:00 -> 01:00.
#[case::a_day_of_23_hours("America/New_York", "2026-03-08", "00:00-24:00", (1_380, 60), "00:00@2026-03-08T05:00Z")]
#[case::a_day_of_25_hours("America/New_York", "2026-11-01", "00:00-24:00", (1_440, 60),
    "00:00@2026-11-01T04:00Z 01:00@2026-11-01T05:00Z")]
#[case::new_york_overlap("America/New_York", "2026-11-01", "00:30-02:30", (30, 30),
    "00:30@2026-11-01T04:30Z 01:00@2026-11-01T05:00Z 01:30@2026-11-01T05:30Z 02:00@2026-11-01T07:00Z")]
// Lord Howe, half an hour: 2026-04-04 15:00Z 02:00 -> 01:30; 2026-10-03 15:30Z 02:00 -> 02:30.
#[case::half_an_hour_ahead("Australia/Lord_Howe", "2026-10-04", "01:30-04:00", (30, 30),
    "01:30@2026-10-03T15:00Z 02:30@2026-10-03T15:30Z 03:00@2026-10-03T16:00Z 03:30@2026-10-03T16:30Z")]
#[case::half_an_hour_ahead_by_tens("Australia/Lord_Howe", "2026-10-04", "01:50-02:40", (10, 10),
    "01:50@2026-10-03T15:20Z 02:30@2026-10-03T15:30Z")]
#[case::half_an_hour_back("Australia/Lord_Howe", "2026-04-05", "01:00-03:00", (30, 30),
    "01:00@2026-04-04T14:00Z 01:30@2026-04-04T14:30Z 02:00@2026-04-04T15:30Z 02:30@2026-04-04T16:00Z")]
#[case::closing_in_half_an_hour_back("Australia/Lord_Howe", "2026-04-05", "01:00-01:45", (30, 15),
    "01:00@2026-04-04T14:00Z 01:15@2026-04-04T14:15Z")]
// Apia: 2011-12-30 10:00Z 2011-12-30 00:00 (-10) -> 2011-12-31 00:00 (+14).
#[case::a_skipped_day("Pacific/Apia", "2011-12-30", "00:00-24:00", (60, 60), "")]
#[case::before_a_skipped_day("Pacific/Apia", "2011-12-29", "22:00-24:00", (60, 60),
    "22:00@2011-12-30T08:00Z 23:00@2011-12-30T09:00Z")]
#[case::after_a_skipped_day("Pacific/Apia", "2011-12-31", "00:00-02:00", (60, 60),
    "00:00@2011-12-30T10:00Z 01:00@2011-12-30T11:00Z")]
// Kwajalein: 1993-08-21 12:00Z 1993-08-21 00:00 (-12) -> 1993-08-22 00:00 (+12).
#[case::before_kwajalein_crossed_the_date_line("Pacific/Kwajalein", "1993-08-20", "23:00-24:00", (60, 30),
    "23:00@1993-08-21T11:00Z")]
// Sao Paulo, at midnight: 2018-02-18 02:00Z 24:00 -> 23:00; 2018-11-04 03:00Z 00:00 -> 01:00.
#[case::midnight_leapt_over("America/Sao_Paulo", "2018-11-04", "00:00-03:00", (60, 60),
    "01:00@2018-11-04T03:00Z 02:00@2018-11-04T04:00Z")]
#[case::a_day_ends_with_a_leap("America/Sao_Paulo", "2018-11-03", "22:00-24:00", (60, 60),
    "22:00@2018-11-04T01:00Z 23:00@2018-11-04T02:00Z")]
#[case::the_last_hour_twice("America/Sao_Paulo", "2018-02-17", "22:00-24:00", (60, 30),
    "22:00@2018-02-18T00:00Z 22:30@2018-02-18T00:30Z 23:00@2018-02-18T01:00Z 23:30@2018-02-18T01:30Z")]
#[case::the_last_hour_is_two_long("America/Sao_Paulo", "2018-02-17", "22:00-24:00", (120, 60),
    "22:00@2018-02-18T00:00Z 23:00@2018-02-18T01:00Z")]
#[case::closing_in_the_last_hour_twice("America/Sao_Paulo", "2018-02-17", "22:00-23:30", (60, 30),
    "22:00@2018-02-18T00:00Z 22:30@2018-02-18T00:30Z")]
// Havana: 2026-03-08 05:00Z 00:00 -> 01:00; 2025-11-02 05:00Z 01:00 -> 00:00.
#[case::the_first_hour_leapt_over("America/Havana", "2026-03-08", "00:00-02:00", (30, 30),
    "01:00@2026-03-08T05:00Z 01:30@2026-03-08T05:30Z")]
#[case::the_first_hour_twice("America/Havana", "2025-11-02", "00:00-02:00", (60, 60),
    "00:00@2025-11-02T04:00Z 01:00@2025-11-02T06:00Z")]
#[case::a_day_ends_at_the_first_midnight("America/Havana", "2025-11-01", "23:00-24:00", (60, 30),
    "23:00@2025-11-02T03:00Z")]
// Cairo: 2026-04-23 22:00Z 00:00 -> 01:00; 2026-10-29 21:00Z 24:00 -> 23:00.
#[case::cairo_ahead("Africa/Cairo", "2026-04-24", "00:00-02:00", (60, 60), "01:00@2026-04-23T22:00Z")]
#[case::cairo_back("Africa/Cairo", "2026-10-29", "22:00-24:00", (120, 60),
    "22:00@2026-10-29T19:00Z 23:00@2026-10-29T20:00Z")]
// Chatham, +12:45 and +13:45: 2026-04-04 14:00Z 03:45 -> 02:45; 2026-09-26 14:00Z 02:45 -> 03:45.
#[case::chatham_ahead("Pacific/Chatham", "2026-09-27", "02:00-05:00", (45, 45),
    "02:00@2026-09-26T13:15Z 04:15@2026-09-26T14:30Z")]
#[case::chatham_back("Pacific/Chatham", "2026-04-05", "02:00-05:00", (60, 45),
    "02:00@2026-04-04T12:15Z 02:45@2026-04-04T13:00Z 03:30@2026-04-04T13:45Z")]
// Kathmandu, +05:45, and 1985-12-31 18:30Z 00:00 -> 00:15.
#[case::kathmandu("Asia/Kathmandu", "2026-07-01", "09:00-11:00", (60, 60),
    "09:00@2026-07-01T03:15Z 10:00@2026-07-01T04:15Z")]
#[case::a_quarter_of_an_hour_ahead("Asia/Kathmandu", "1986-01-01", "00:00-00:45", (15, 15),
    "00:15@1985-12-31T18:30Z 00:30@1985-12-31T18:45Z")]
// Casablanca, an hour back for Ramadan: 2026-02-15 02:00Z 03:00 -> 02:00; 2026-03-22 02:00Z 02:00 -> 03:00.
#[case::ramadan_begins("Africa/Casablanca", "2026-02-15", "01:00-04:00", (60, 60),
    "01:00@2026-02-15T00:00Z 02:00@2026-02-15T01:00Z 03:00@2026-02-15T03:00Z")]
#[case::ramadan_ends("Africa/Casablanca", "2026-03-22", "01:00-04:00", (60, 60),
    "01:00@2026-03-22T01:00Z 03:00@2026-03-22T02:00Z")]
// Troll, two hours: 2026-03-29 01:00Z 01:00 -> 03:00; 2026-10-25 01:00Z 03:00 -> 01:00.
#[case::two_hours_ahead("Antarctica/Troll", "2026-03-29", "00:00-05:00", (60, 60),
    "00:00@2026-03-29T00:00Z 03:00@2026-03-29T01:00Z 04:00@2026-03-29T02:00Z")]
#[case::two_hours_back("Antarctica/Troll", "2026-10-25", "00:00-04:00", (60, 60),
    "00:00@2026-10-24T22:00Z 01:00@2026-10-24T23:00Z 02:00@2026-10-25T00:00Z 03:00@2026-10-25T03:00Z")]
// St John's, a minute past midnight: 2010-03-14 03:31Z 00:01 -> 01:01; 2010-11-07 02:31Z 00:01 -> 23:01.
#[case::midnight_is_shown_and_then_a_leap("America/St_Johns", "2010-03-14", "00:00-02:00", (30, 30),
    "00:00@2010-03-14T03:30Z 01:30@2010-03-14T04:00Z")]
#[case::two_midnights_end_the_day_with_the_first("America/St_Johns", "2010-11-06", "22:00-24:00", (60, 30),
    "22:00@2010-11-07T00:30Z 22:30@2010-11-07T01:00Z 23:00@2010-11-07T01:30Z")]
#[case::two_midnights_begin_the_day_with_the_first("America/St_Johns", "2010-11-07", "00:00-01:00", (30, 30),
    "00:00@2010-11-07T02:30Z 00:30@2010-11-07T04:00Z")]
// Pyongyang: 2018-05-04 15:00Z 23:30 -> 00:00. Caracas: 2016-05-01 07:00Z 02:30 -> 03:00.
#[case::the_last_half_hour_leapt_over("Asia/Pyongyang", "2018-05-04", "22:30-24:00", (30, 30),
    "22:30@2018-05-04T14:00Z 23:00@2018-05-04T14:30Z")]
#[case::caracas_ahead("America/Caracas", "2016-05-01", "02:00-04:00", (30, 30),
    "02:00@2016-05-01T06:30Z 03:00@2016-05-01T07:00Z 03:30@2016-05-01T07:30Z")]
// Overlapping hours are one opening, adjacent hours are two. Berlin in July is +02.
#[case::overlapping_hours_give_no_doubles("Europe/Berlin", "2026-07-01", "10:00-12:00 09:00-11:00", (60, 30),
    "09:00@2026-07-01T07:00Z 09:30@2026-07-01T07:30Z 10:00@2026-07-01T08:00Z 10:30@2026-07-01T08:30Z 11:00@2026-07-01T09:00Z")]
#[case::touching_hours_stay_two("Europe/Berlin", "2026-07-01", "09:00-10:00 10:00-11:00", (60, 30),
    "09:00@2026-07-01T07:00Z 10:00@2026-07-01T08:00Z")]
#[case::hours_that_overlap_have_one_grid("Europe/Berlin", "2026-07-01", "09:10-10:30 09:00-10:00", (30, 30),
    "09:00@2026-07-01T07:00Z 09:30@2026-07-01T07:30Z 10:00@2026-07-01T08:00Z")]
#[case::a_slot_may_begin_in_one_and_end_in_the_other("Europe/Berlin", "2026-07-01", "09:00-10:00 09:59-11:00", (60, 30),
    "09:00@2026-07-01T07:00Z 09:30@2026-07-01T07:30Z 10:00@2026-07-01T08:00Z")]
#[case::each_opening_has_its_grid("Europe/Berlin", "2026-07-01", "09:00-10:10 10:10-11:20", (30, 30),
    "09:00@2026-07-01T07:00Z 09:30@2026-07-01T07:30Z 10:10@2026-07-01T08:10Z 10:40@2026-07-01T08:40Z")]
#[case::a_slot_longer_than_the_hours("Europe/Berlin", "2026-07-01", "09:00-10:00", (61, 5), "")]
fn clocks_and_hours(
    #[case] zone: &str,
    #[case] day: &str,
    #[case] hours: &str,
    #[case] grid: (u32, u32),
    #[case] expected: &str,
) {
    check(zone, day, hours, grid, (0, 0), &[], expected);
}

#[rstest::rstest]
#[case::an_event_ends_where_a_slot_starts("Europe/Berlin", "2026-07-01", "09:00-10:30", (30, 30), (0, 0),
    &["2026-07-01T07:30Z/2026-07-01T08:00Z"], "09:00@2026-07-01T07:00Z 10:00@2026-07-01T08:00Z")]
#[case::one_event_ends_and_another_begins_in_a_slot("Europe/Berlin", "2026-07-01", "09:00-11:00", (60, 30), (0, 0),
    &["2026-07-01T07:00Z/2026-07-01T07:30Z", "2026-07-01T08:00Z/2026-07-01T08:30Z"], "")]
#[case::an_event_keeps_its_time_after("Europe/Berlin", "2026-07-01", "09:00-12:00", (60, 30), (0, 0),
    &["2026-07-01T07:00Z/2026-07-01T08:00Z +30"], "10:30@2026-07-01T08:30Z 11:00@2026-07-01T09:00Z")]
#[case::an_event_keeps_its_time_before("Europe/Berlin", "2026-07-01", "09:00-12:00", (60, 30), (0, 0),
    &["2026-07-01T09:00Z/2026-07-01T10:00Z -45"], "09:00@2026-07-01T07:00Z")]
#[case::buffers_do_not_add_up("Europe/Berlin", "2026-07-01", "09:00-11:00", (60, 10), (20, 0),
    &["2026-07-01T06:30Z/2026-07-01T07:00Z +30"],
    "09:30@2026-07-01T07:30Z 09:40@2026-07-01T07:40Z 09:50@2026-07-01T07:50Z 10:00@2026-07-01T08:00Z")]
#[case::the_longer_of_after_and_before("Europe/Berlin", "2026-07-01", "09:00-11:00", (60, 10), (40, 0),
    &["2026-07-01T06:30Z/2026-07-01T07:00Z +30"],
    "09:40@2026-07-01T07:40Z 09:50@2026-07-01T07:50Z 10:00@2026-07-01T08:00Z")]
#[case::the_longer_of_before_and_after("Europe/Berlin", "2026-07-01", "09:00-11:00", (60, 30), (0, 60),
    &["2026-07-01T09:00Z/2026-07-01T09:30Z -15"], "09:00@2026-07-01T07:00Z")]
#[case::the_buffer_that_faces_away_does_not_count("Europe/Berlin", "2026-07-01", "09:00-11:00", (60, 60), (0, 240),
    &["2026-07-01T06:00Z/2026-07-01T07:00Z -240"], "09:00@2026-07-01T07:00Z 10:00@2026-07-01T08:00Z")]
#[case::a_private_entry_has_the_slots_buffers_alone("Europe/Berlin", "2026-07-01", "09:00-12:00", (30, 15), (15, 15),
    &["2026-07-01T08:00Z/2026-07-01T08:30Z"],
    "09:00@2026-07-01T07:00Z 09:15@2026-07-01T07:15Z 10:45@2026-07-01T08:45Z 11:00@2026-07-01T09:00Z 11:15@2026-07-01T09:15Z 11:30@2026-07-01T09:30Z")]
#[case::an_event_without_length_blocks_nothing("Europe/Berlin", "2026-07-01", "09:00-10:00", (30, 30), (30, 30),
    &["2026-07-01T07:30Z/2026-07-01T07:30Z -60 +60"], "09:00@2026-07-01T07:00Z 09:30@2026-07-01T07:30Z")]
#[case::an_event_of_yesterday_reaches_over_midnight("Etc/UTC", "2026-07-02", "00:00-01:30", (30, 15), (0, 0),
    &["2026-07-01T23:00Z/2026-07-01T23:50Z +30"],
    "00:30@2026-07-02T00:30Z 00:45@2026-07-02T00:45Z 01:00@2026-07-02T01:00Z")]
#[case::an_event_of_tomorrow_reaches_over_midnight("Etc/UTC", "2026-07-01", "22:00-24:00", (60, 30), (0, 0),
    &["2026-07-02T00:05Z/2026-07-02T01:00Z -35"], "22:00@2026-07-01T22:00Z 22:30@2026-07-01T22:30Z")]
#[case::the_slots_buffer_reaches_over_midnight("Etc/UTC", "2026-07-02", "00:00-04:30", (30, 30), (240, 0),
    &["2026-07-01T23:00Z/2026-07-01T23:59Z"], "04:00@2026-07-02T04:00Z")]
#[case::an_event_of_weeks_blocks_its_days("Europe/Berlin", "2026-07-20", "00:00-24:00", (5, 5), (0, 0),
    &["2026-07-01T00:00Z/2026-08-10T00:00Z"], "")]
#[case::a_shorter_event_within_a_longer("Europe/Berlin", "2026-07-01", "09:00-13:00", (60, 60), (0, 0),
    &["2026-07-01T07:00Z/2026-07-01T10:00Z", "2026-07-01T07:30Z/2026-07-01T08:00Z"], "12:00@2026-07-01T10:00Z")]
#[case::a_slot_fits_between_two_events("Europe/Berlin", "2026-07-01", "09:00-13:00", (60, 30), (15, 15),
    &["2026-07-01T07:00Z/2026-07-01T07:45Z", "2026-07-01T09:15Z/2026-07-01T11:00Z"], "10:00@2026-07-01T08:00Z")]
#[case::an_event_in_the_second_pass_of_an_overlap("Europe/Berlin", "2026-10-25", "02:00-04:00", (60, 60), (0, 0),
    &["2026-10-25T01:00Z/2026-10-25T02:00Z"], "02:00@2026-10-25T00:00Z 03:00@2026-10-25T02:00Z")]
#[case::an_event_in_the_first_pass_of_an_overlap("Europe/Berlin", "2026-10-25", "02:00-04:00", (60, 60), (0, 0),
    &["2026-10-25T00:00Z/2026-10-25T01:00Z"], "03:00@2026-10-25T02:00Z")]
#[case::a_buffer_is_real_time_in_an_overlap("Europe/Berlin", "2026-10-25", "02:00-05:00", (60, 60), (0, 0),
    &["2026-10-25T00:00Z/2026-10-25T00:30Z +90"], "03:00@2026-10-25T02:00Z 04:00@2026-10-25T03:00Z")]
#[case::a_buffer_is_real_time_over_a_gap("Europe/Berlin", "2026-03-29", "01:00-05:00", (30, 45), (0, 0),
    &["2026-03-29T00:00Z/2026-03-29T00:45Z +30"], "03:15@2026-03-29T01:15Z 04:00@2026-03-29T02:00Z")]
fn events_and_buffers(
    #[case] zone: &str,
    #[case] day: &str,
    #[case] hours: &str,
    #[case] grid: (u32, u32),
    #[case] buffers: (u32, u32),
    #[case] events: &[&str],
    #[case] expected: &str,
) {
    check(zone, day, hours, grid, buffers, events, expected);
}
