//! Renders bookings, and refusals to book.

use domain::booking::{Booking, CalendarEvent, Refusal};
use edge::{CrmCaller, Problem};
use store::calendar::{StoredCalendar, zone_of};

/// The problem of a refusal.
pub(crate) fn refused(refusal: Refusal) -> Problem {
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

/// A booking by the wall clock of its calendar, or of the workspace where that has not been seen. A private entry is no
/// booking.
pub(crate) fn shown(
    event: &CalendarEvent,
    calendars: &[StoredCalendar],
    caller: &CrmCaller,
) -> Result<Booking, Problem> {
    let zone = zone_of(calendars, event.calendar_id, caller.time_zone.zone()?);
    event.view(zone).ok_or_else(|| refused(Refusal::UnknownBooking))
}
