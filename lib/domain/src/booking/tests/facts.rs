//! Facts about calendar events beside writes of the API.

use proptest::prelude::*;

use super::*;

fn saved(span: Span, confirmed: bool, calendar: Option<CalendarId>) -> CalendarEventSaved {
    let coach_id = CoachId::parse("ada").unwrap();
    let status = if confirmed { BookingStatus::Confirmed } else { BookingStatus::Cancelled };
    CalendarEventSaved { event_id: EVENT, coach_id, calendar_id: calendar, lead_id: Some(LEAD), span, status }
}

#[test]
fn an_event_keeps_its_buffers_as_long_as_it_stays_on_its_calendar() {
    let made = Buffers { before_min: 15, after_min: 0 };
    let changed = Calendar { buffers: Buffers { before_min: 1, after_min: 2 }, ..calendar() };
    let applied = |calendar_id, calendar: Option<&Calendar>, found: &CalendarEntry| {
        let fact = saved(found.span, true, calendar_id);
        let applied = CalendarEntry::apply_fact(Some(found), &fact, now().into(), calendar, None, now());
        applied.unwrap()
    };
    assert_eq!(applied(Some(CALENDAR), Some(&changed), &event()).buffers, Some(made));
    let elsewhere = CalendarId(Uuid::from_u128(8));
    assert_eq!(applied(Some(elsewhere), Some(&changed), &event()).buffers, Some(changed.buffers));
    let unseen = applied(Some(elsewhere), None, &event());
    assert_eq!(unseen.buffers, None);
    assert_eq!(applied(Some(elsewhere), Some(&changed), &unseen).buffers, Some(changed.buffers));
    assert_eq!(applied(None, None, &event()).buffers, Some(Buffers::default()));
}

#[test]
fn an_echo_of_the_known_record_keeps_the_time_of_the_last_change() {
    let echo = saved(event().span, true, Some(CALENDAR));
    let applied = |at| CalendarEntry::apply_fact(Some(&event()), &echo, at, Some(&calendar()), Some(LEAD), now());
    let registers = EventRegisters::whole(Register::by_application(now().into()));
    assert_eq!(applied(now().into()), Some(CalendarEntry { registers, ..event() }));
    assert_eq!(applied(at("01T06:59").into()), None, "older than the booking itself");
}

proptest! {
    /// Facts arrive in any order, the API's changes at their own times: each field has its latest value.
    #[test]
    fn the_latest_write_wins_in_any_order_of_arrival(
        mut facts in proptest::collection::btree_map(0..100i64, (0..5i64, any::<bool>()), 1..6),
        moved_at in proptest::option::of(0..100i64),
        cancelled_at in proptest::option::of(0..100i64),
        order in any::<u64>(),
    ) {
        let minute = |minute: i64| now() + TimeDelta::minutes(minute);
        let hour = |hour: i64| Span { starts_at: minute(hour * 60), ends_at: minute(hour * 60 + 30) };
        let moved_span = hour(9);
        let mut made = event();
        made.registers = EventRegisters::whole(Register::by_api(minute(-1)));
        if let Some(at) = moved_at {
            made = made.moved(&Busy { span: moved_span, buffers: Buffers::default() }, minute(at));
        }
        if let Some(at) = cancelled_at {
            made = made.cancelled(minute(at)).unwrap();
        }
        let mut shuffled: Vec<_> = facts.iter().map(|(at, applied)| (*at, *applied)).collect();
        shuffled.sort_by_key(|(at, _)| (*at as u64 + 1).wrapping_mul(order | 1));
        let mut known = made;
        for (at, (starts, confirmed)) in shuffled {
            let fact = saved(hour(starts), confirmed, Some(CALENDAR));
            let applied = CalendarEntry::apply_fact(Some(&known), &fact, minute(at).into(), None, Some(LEAD), now());
            known = applied.unwrap_or(known);
        }
        let (last, (starts, confirmed)) = facts.pop_last().unwrap();
        let span = if moved_at.is_some_and(|at| at > last) { moved_span } else { hour(starts) };
        // The cancellation comes after the move, whichever request came first.
        let cancelled_at = cancelled_at.map(|at| minute(at).max(moved_at.map_or(minute(0), minute) + TimeDelta::milliseconds(1)));
        let confirmed = confirmed && cancelled_at.is_none_or(|at| at <= minute(last));
        prop_assert_eq!(known.registers.calendar, Register::by_application(minute(last).into()));
        prop_assert_eq!((known.span, known.is_confirmed()), (span, confirmed));
    }
}
