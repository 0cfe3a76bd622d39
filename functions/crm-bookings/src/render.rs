//! Renders bookings, their events, and the problems of refusals.

use domain::booking::{Booking, BookingRefusal, CalendarEntry};
use domain::event::{Event, Person};
use domain::id::ContactId;
use domain::id_kind::IdKind;
use edge::{CrmCaller, Problem};
use store::calendar::{StoredCalendar, zone_of};
use store::contact::ContactState;

/// The problem of a refusal.
pub(crate) fn problem_of(refusal: BookingRefusal) -> Problem {
    match refusal {
        BookingRefusal::UnknownLead => Problem::not_found(IdKind::Contact),
        BookingRefusal::LeadMerged(into) => Problem::ContactMerged(into),
        BookingRefusal::UnknownBooking => Problem::not_found(IdKind::Booking),
        BookingRefusal::UnknownCalendar => Problem::NotFound("calendar"),
        BookingRefusal::CheckoutRequired(booking_url) => Problem::CheckoutRequired(booking_url),
        BookingRefusal::NoBookings => Problem::CalendarTakesNoBookings,
        BookingRefusal::SlotUnavailable => Problem::SlotUnavailable,
        BookingRefusal::NotActive => Problem::BookingNotActive,
    }
}

/// A booking in the time zone of its calendar, or of the workspace if the calendar is unknown. A private entry is not a
/// booking.
pub(crate) fn booking_view(
    event: &CalendarEntry,
    calendars: &[StoredCalendar],
    caller: &CrmCaller,
) -> Result<Booking, Problem> {
    let zone = zone_of(calendars, event.calendar_id, caller.time_zone.zone()?);
    event.view(zone).ok_or_else(|| problem_of(BookingRefusal::UnknownBooking))
}

/// The event of a booking that is new or changed, if receivers see the change. `lead` is the contact that the request
/// names, as it was read.
pub(crate) fn booking_event(
    caller: &CrmCaller,
    lead: (ContactId, &ContactState),
    before: Option<&CalendarEntry>,
    event: &CalendarEntry,
    calendars: &[StoredCalendar],
) -> Result<Option<Event>, Problem> {
    let zone = zone_of(calendars, event.calendar_id, caller.time_zone.zone()?);
    let (id, state) = lead;
    let named = state.person(id).unwrap_or(Person::NoContact);
    // The booking's own contact may have been merged into the one that the request names: the erasure of either finds
    // the event.
    let contact = named.for_records_of(event.lead_id.unwrap_or(id));
    Ok(Event::booking_changed(&caller.coach, contact, before, event, zone))
}
