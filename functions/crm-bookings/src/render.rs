//! Renders bookings, and the problems of refusals.

use domain::booking::{Booking, CalendarEvent, Refusal};
use edge::{CrmCaller, Problem};
use store::calendar::{StoredCalendar, zone_of};

/// The problem of a refusal.
pub(crate) fn problem_of(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::UnknownLead => Problem::NotFound("contact"),
        Refusal::LeadMerged(into) => Problem::ContactMerged(into),
        Refusal::UnknownBooking => Problem::NotFound("booking"),
        Refusal::UnknownCalendar => Problem::NotFound("calendar"),
        Refusal::CheckoutRequired(booking_url) => Problem::CheckoutRequired(booking_url),
        Refusal::SlotUnavailable => Problem::SlotUnavailable,
        Refusal::NotActive => Problem::BookingNotActive,
    }
}

/// A booking in the time zone of its calendar, or of the workspace if the calendar is unknown. A private entry is not a
/// booking.
pub(crate) fn booking_view(
    event: &CalendarEvent,
    calendars: &[StoredCalendar],
    caller: &CrmCaller,
) -> Result<Booking, Problem> {
    let zone = zone_of(calendars, event.calendar_id, caller.time_zone.zone()?);
    event.view(zone).ok_or_else(|| problem_of(Refusal::UnknownBooking))
}
