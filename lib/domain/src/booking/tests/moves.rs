//! Moves of bookings that are shorter or longer than a present slot.

use super::*;

/// The calendar is open until 17:00 and its slots start every half hour; times of events are an hour earlier, in UTC.
#[rstest]
#[case::shorter_than_a_slot(30, 60, "16:30", &[], Some(("15:30", "16:00")))]
#[case::shorter_before_what_a_slot_would_run_into(30, 60, "10:30", &[("10:00", "11:00")], Some(("09:30", "10:00")))]
#[case::shorter_into_what_is_taken(30, 60, "10:30", &[("09:59", "11:00")], None)]
#[case::longer_than_a_slot(90, 30, "15:30", &[], Some(("14:30", "16:00")))]
#[case::longer_than_what_is_left(90, 30, "16:00", &[], None)]
#[case::longer_into_what_is_taken(90, 30, "10:30", &[("10:45", "11:00")], None)]
#[case::longer_than_a_day(1_500, 30, "09:00", &[], None)]
#[case::off_the_grid(30, 60, "10:15", &[], None)]
#[case::without_length(0, 60, "16:30", &[], Some(("15:30", "15:30")))]
fn a_booking_is_moved_to_where_its_own_length_fits(
    #[case] minutes: i64,
    #[case] slot_minutes: u32,
    #[case] time: &str,
    #[case] taken: &[(&str, &str)],
    #[case] expected: Option<(&str, &str)>,
) {
    let on = |(starts, ends): (&str, &str)| span(&format!("02T{starts}"), &format!("02T{ends}"));
    let starts_at = event().span.starts_at + TimeDelta::days(5);
    let (span, none) = (Span { starts_at, ends_at: starts_at + TimeDelta::minutes(minutes) }, Buffers::default());
    let event = CalendarEntry { span, buffers: Some(none), ..event() };
    let calendar = Calendar { slot_minutes, buffers: none, ..calendar() };
    let others: Vec<Busy> = taken.iter().map(|taken| Busy { span: on(*taken), buffers: none }).collect();
    let (draft, zone) = (to("2026-12-02", time), calendar.time_zone);
    let moved = reschedule(&draft, Lead::Live, Some(&event), Some(&calendar), zone, &others, now());
    let expected = expected.map(|expected| Move::To(Busy { span: on(expected), buffers: none }));
    assert_eq!(moved, expected.ok_or(BookingRefusal::SlotUnavailable));
}
