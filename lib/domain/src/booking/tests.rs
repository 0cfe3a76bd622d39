//! Decisions and facts of bookings, by tables and properties.

use chrono::TimeDelta;
use rstest::rstest;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::availability::tests::{closed, hours};
use crate::calendar::Weekly;
use crate::change::Change;
use crate::id::CoachId;
use crate::tz::tests::zone;

mod facts;
mod moves;

const LEAD: ContactId = ContactId(Uuid::from_u128(1));
const CALENDAR: CalendarId = CalendarId(Uuid::from_u128(2));
const EVENT: CalendarEntryId = CalendarEntryId(Uuid::from_u128(3));

fn at(text: &str) -> Timestamp {
    Timestamp::parse(&format!("2026-12-{text}:00Z")).unwrap()
}

/// The first of December 2026, a Tuesday.
fn now() -> Timestamp {
    at("01T08:00")
}

fn span(starts: &str, ends: &str) -> Span {
    Span { starts_at: at(starts), ends_at: at(ends) }
}

fn calendar() -> Calendar {
    let day = hours("09:00-17:00");
    Calendar {
        id: CALENDAR,
        slot_interval_minutes: 30,
        buffers: Buffers { before_min: 15, after_min: 0 },
        horizon_days: 30,
        weekly: Weekly { tue: day.clone(), wed: day, ..Weekly::default() },
        ..closed(zone("Europe/Berlin"))
    }
}

fn draft(date: &str, time: &str) -> BookingDraft {
    let body = json!({ "leadId": LEAD, "calendarId": CALENDAR, "date": date, "time": time });
    BookingDraft::parse(&body).unwrap()
}

fn to(date: &str, time: &str) -> RescheduleDraft {
    RescheduleDraft::parse(&json!({ "leadId": LEAD, "date": date, "time": time })).unwrap()
}

/// A booking on the second of December at 10:00 in Berlin.
fn event() -> CalendarEntry {
    let busy = Busy { span: span("02T09:00", "02T10:00"), buffers: calendar().buffers };
    CalendarEntry::booked(EVENT, &draft("2026-12-02", "10:00"), &busy, at("01T07:00"))
}

#[test]
fn a_slot_that_is_offered_is_booked_with_the_calendars_duration_and_buffers() {
    let busy = create(&draft("2026-12-02", "10:00"), Lead::Live, Some(&calendar()), &[], now()).unwrap();
    assert_eq!(busy, event().busy().unwrap());
}

#[test]
fn obstacles_to_a_new_booking_are_reported_in_order() {
    let free = draft("2026-12-02", "10:00");
    let closed = draft("2026-12-02", "08:30");
    let paid = Calendar { price_cents: 1, ..calendar() };
    let off = Calendar { active: false, ..paid.clone() };
    let other = ContactId(Uuid::from_u128(9));
    let refusal = |draft, lead, calendar| create(draft, lead, calendar, &[], now()).unwrap_err();
    assert_eq!(refusal(&closed, Lead::Unknown, None), BookingRefusal::UnknownLead);
    assert_eq!(refusal(&closed, Lead::Merged(other), None), BookingRefusal::LeadMerged(other));
    assert_eq!(refusal(&closed, Lead::Live, None), BookingRefusal::UnknownCalendar);
    assert_eq!(refusal(&closed, Lead::Live, Some(&off)), BookingRefusal::UnknownCalendar);
    for draft in [&closed, &free] {
        let checkout = BookingRefusal::CheckoutRequired(paid.booking_url.clone());
        assert_eq!(refusal(draft, Lead::Live, Some(&paid)), checkout);
    }
    assert_eq!(refusal(&closed, Lead::Live, Some(&calendar())), BookingRefusal::SlotUnavailable);
    let taken = [event().busy().unwrap()];
    let again = create(&free, Lead::Live, Some(&calendar()), &taken, now());
    assert_eq!(again, Err(BookingRefusal::SlotUnavailable));
}

fn moved(
    draft: &RescheduleDraft,
    event: Option<&CalendarEntry>,
    calendar: Option<&Calendar>,
    now: Timestamp,
) -> Result<Move, BookingRefusal> {
    let zone = calendar.map_or(zone("America/New_York"), |calendar| calendar.time_zone);
    reschedule(draft, Lead::Live, event, calendar, zone, &[], now)
}

#[test]
fn a_move_keeps_the_length_and_the_buffers_it_was_made_with_and_a_price_does_not_stop_it() {
    let changed =
        Calendar { slot_minutes: 90, buffers: Buffers { before_min: 0, after_min: 30 }, price_cents: 5, ..calendar() };
    let target = to("2026-12-02", "10:30");
    let made_with = event().buffers.unwrap();
    assert_ne!(made_with, changed.buffers);
    let to = moved(&target, Some(&event()), Some(&changed), now()).unwrap();
    assert_eq!(to, Move::To(Busy { span: span("02T09:30", "02T10:30"), buffers: made_with }));
    let unknown = CalendarEntry { buffers: None, ..event() };
    let to = moved(&target, Some(&unknown), Some(&changed), now()).unwrap();
    assert_eq!(to, Move::To(Busy { span: span("02T09:30", "02T10:30"), buffers: changed.buffers }));
}

#[test]
fn a_moved_booking_leaves_room_by_its_own_buffers_and_by_those_of_the_calendar() {
    let none = Buffers::default();
    let (draft, zone) = (to("2026-12-02", "10:30"), calendar().time_zone);
    let at_the_time = |others: &[Busy], event: &CalendarEntry, buffers: Buffers| {
        let calendar = Calendar { buffers, ..calendar() };
        reschedule(&draft, Lead::Live, Some(event), Some(&calendar), zone, others, now())
    };
    let buffered = CalendarEntry { buffers: Some(Buffers { before_min: 15, after_min: 0 }), ..event() };
    let bare = CalendarEntry { buffers: Some(none), ..event() };
    let just_before = [Busy { span: span("02T09:00", "02T09:30"), buffers: none }];
    assert!(matches!(at_the_time(&just_before, &bare, none), Ok(Move::To(_))));
    assert_eq!(at_the_time(&just_before, &buffered, none), Err(BookingRefusal::SlotUnavailable), "its own");
    let of_now = Buffers { before_min: 15, after_min: 0 };
    assert_eq!(
        at_the_time(&just_before, &bare, of_now),
        Err(BookingRefusal::SlotUnavailable),
        "what is not listed is refused"
    );
    let earlier = [Busy { span: span("02T08:45", "02T09:15"), buffers: none }];
    assert!(matches!(at_the_time(&earlier, &buffered, of_now), Ok(Move::To(_))));
}

#[test]
fn obstacles_to_a_move_are_reported_in_order() {
    let (calendar, event) = (calendar(), event());
    let cancelled = event.cancelled(now()).unwrap();
    let private = CalendarEntry { calendar_id: None, ..event.clone() };
    let closed = to("2026-12-02", "08:30");
    let over = at("02T10:00");
    for missing in [None, Some(&private)] {
        assert_eq!(moved(&closed, missing, Some(&calendar), now()), Err(BookingRefusal::UnknownBooking));
    }
    assert_eq!(moved(&closed, Some(&cancelled), None, now()), Err(BookingRefusal::NotActive));
    assert_eq!(moved(&closed, Some(&event), None, over), Err(BookingRefusal::NotActive));
    let off = Calendar { active: false, ..calendar.clone() };
    for none in [None, Some(&off)] {
        assert_eq!(moved(&closed, Some(&event), none, now()), Err(BookingRefusal::NoBookings));
    }
    assert_eq!(moved(&closed, Some(&event), Some(&calendar), now()), Err(BookingRefusal::SlotUnavailable));
    let merged = reschedule(&closed, Lead::Merged(LEAD), None, None, zone("UTC"), &[], now());
    assert_eq!(merged, Err(BookingRefusal::LeadMerged(LEAD)));
}

#[test]
fn a_move_to_the_same_instant_changes_nothing_with_any_calendar() {
    let off = Calendar { active: false, ..calendar() };
    assert_eq!(moved(&to("2026-12-02", "10:00"), Some(&event()), Some(&off), now()), Ok(Move::Unchanged));
    // Shown in the given zone, because its calendar has not been seen.
    assert_eq!(moved(&to("2026-12-02", "04:00"), Some(&event()), None, now()), Ok(Move::Unchanged));
}

#[test]
fn a_booking_in_the_second_of_an_hour_that_comes_twice_stays_where_it_is_shown() {
    let instant = |text: &str| Timestamp::parse(&format!("2027-10-31T{text}:00Z")).unwrap();
    for starts in ["00:30", "01:30"] {
        let starts_at = instant(starts);
        let span = Span { starts_at, ends_at: instant("02:30") };
        let busy = Busy { span, buffers: calendar().buffers };
        let twice = CalendarEntry::booked(EVENT, &draft("2027-10-31", "02:30"), &busy, now());
        let to_itself = moved(&to("2027-10-31", "02:30"), Some(&twice), Some(&calendar()), now());
        assert_eq!(to_itself, Ok(Move::Unchanged), "{starts}");
    }
}

#[rstest]
#[case::due(event(), now(), Ok(()))]
#[case::under_way(event(), at("02T09:59"), Ok(()))]
#[case::past(event(), at("02T10:00"), Err(BookingRefusal::NotActive))]
#[case::cancelled(event().cancelled(now()).unwrap(), now(), Ok(()))]
#[case::cancelled_and_past(event().cancelled(now()).unwrap(), at("09T00:00"), Ok(()))]
fn a_booking_is_cancelled_once_and_not_after_it(
    #[case] event: CalendarEntry,
    #[case] now: Timestamp,
    #[case] due: Result<(), BookingRefusal>,
) {
    assert_eq!(cancel(Lead::Live, Some(&event), now), due);
    assert_eq!(cancel(Lead::Live, None, now), Err(BookingRefusal::UnknownBooking));
    assert_eq!(cancel(Lead::Unknown, Some(&event), now), Err(BookingRefusal::UnknownLead));
}

#[test]
fn a_conflict_has_one_id_for_both_events_and_a_new_one_after_a_move() {
    let coach = CoachId::parse("ada").unwrap();
    let one = event();
    let other = CalendarEntry { id: CalendarEntryId(Uuid::from_u128(4)), ..event() };
    let change = |one: &CalendarEntry, other: &CalendarEntry| {
        Change::booking_conflict(&coach, &one.view(zone("UTC")).unwrap(), other)
    };
    let found = change(&one, &other);
    assert_eq!(found.id, change(&other, &one).id);
    let moved = one.moved(&one.busy().unwrap(), now());
    assert_ne!(found.id, change(&moved, &other).id);
    let expected = json!({
        "id": found.id, "occurred_at": found.occurred_at, "coach_id": "ada", "booking": one.view(zone("UTC")),
        "conflicts_with": { "event_id": other.id, "starts_at": "2026-12-02T09:00:00.000Z", "ends_at": "2026-12-02T10:00:00.000Z" },
    });
    assert_eq!(found.render(), expected);
}

#[test]
fn each_change_of_a_booking_is_a_fact_of_its_own() {
    let coach = CoachId::parse("ada").unwrap();
    let (at, busy) = (now(), event().busy().unwrap());
    // All within one millisecond, and after a fact from a clock that is ahead.
    let by_fact = Register::by_application((at + TimeDelta::seconds(30)).into());
    let ahead = CalendarEntry { registers: EventRegisters::whole(by_fact), ..event() };
    let moved = ahead.moved(&busy, at);
    let again = moved.moved(&busy, at);
    let cancelled = again.cancelled(at).unwrap();
    let view = |event: &CalendarEntry| event.view(zone("UTC")).unwrap();
    let facts = [
        Change::booking_created(&coach, &view(&event())),
        Change::booking_rescheduled(&coach, &view(&moved), at, moved.last_written_at()),
        Change::booking_rescheduled(&coach, &view(&again), at, again.last_written_at()),
        Change::booking_cancelled(&coach, &view(&cancelled), cancelled.last_written_at()),
    ];
    let ids: std::collections::BTreeSet<&str> = facts.iter().map(|fact| fact.id.as_str()).collect();
    assert_eq!(ids.len(), facts.len());
    assert!(facts[1..].windows(2).all(|pair| pair[0].occurred_at < pair[1].occurred_at), "in their order");
}
