//! Renders bookings, and refusals to book.

use domain::booking::{Booking, BookingRefusal, CalendarEvent};
use edge::{CrmCaller, Problem};
use store::calendar::{StoredCalendar, zone_of};

/// The problem of a refusal.
pub(crate) fn refused(refusal: BookingRefusal) -> Problem {
    match refusal {
        BookingRefusal::UnknownLead => Problem::NotFound("contact"),
        BookingRefusal::LeadMerged(into) => Problem::ContactMerged(into),
        BookingRefusal::UnknownBooking => Problem::NotFound("booking"),
        BookingRefusal::UnknownCalendar => Problem::NotFound("calendar"),
        BookingRefusal::CheckoutRequired(booking_url) => Problem::CheckoutRequired(booking_url),
        BookingRefusal::SlotUnavailable => Problem::SlotUnavailable,
        BookingRefusal::NotActive => Problem::BookingNotActive,
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
    event.view(zone).ok_or_else(|| refused(BookingRefusal::UnknownBooking))
}
