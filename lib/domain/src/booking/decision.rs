//! Decisions to create, move or cancel a booking. Obstacles are reported in one order: the contact, the booking, its
//! calendar, its price, its time.

use crate::availability::{Offer, find_slot};
use crate::booking::{BookingDraft, CalendarEntry, RescheduleDraft};
use crate::busy::Busy;
use crate::calendar::Calendar;
use crate::id::ContactId;
use crate::time::Timestamp;
use crate::tz::Tz;
use crate::wall_clock::{date_at, show_time, time_at};

/// The state of the contact that a caller names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    Live,
    /// The contact was merged into this contact, and no named booking is with it.
    Merged(ContactId),
    /// The contact does not exist, or no longer exists.
    Unknown,
}

/// The reason for the refusal of a booking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BookingRefusal {
    UnknownLead,
    LeadMerged(ContactId),
    /// The booking does not exist, or is not with this contact.
    UnknownBooking,
    /// The calendar does not exist, or is not active.
    UnknownCalendar,
    /// The booking's calendar takes no bookings: it is not active, or not stored yet.
    NoBookings,
    /// The calendar is paid. The text is its booking URL.
    CheckoutRequired(String),
    SlotUnavailable,
    /// The booking is cancelled or past.
    NotActive,
}

impl Lead {
    pub fn check(self) -> Result<(), BookingRefusal> {
        match self {
            Self::Live => Ok(()),
            Self::Merged(into) => Err(BookingRefusal::LeadMerged(into)),
            Self::Unknown => Err(BookingRefusal::UnknownLead),
        }
    }
}

/// Decides on a new booking and returns its time. `busy` holds every confirmed event that could conflict.
pub fn create(
    draft: &BookingDraft,
    lead: Lead,
    calendar: Option<&Calendar>,
    busy: &[Busy],
    now: Timestamp,
) -> Result<Busy, BookingRefusal> {
    lead.check()?;
    let calendar = active(calendar)?;
    if calendar.is_paid() {
        return Err(BookingRefusal::CheckoutRequired(calendar.booking_url.clone()));
    }
    let slot = find_slot(calendar, draft.date, draft.time, busy, now).ok_or(BookingRefusal::SlotUnavailable)?;
    Ok(Busy { span: slot.span, buffers: calendar.buffers })
}

/// The target of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// The booking already has this time.
    Unchanged,
    To(Busy),
}

/// Returns the named booking, if it can be moved. `event` is the booking, if it is with the contact.
pub fn movable(lead: Lead, event: Option<&CalendarEntry>, now: Timestamp) -> Result<&CalendarEntry, BookingRefusal> {
    lead.check()?;
    let event = booking(event)?;
    let is_active = event.is_confirmed() && event.span.ends_at > now;
    if is_active { Ok(event) } else { Err(BookingRefusal::NotActive) }
}

/// Returns the times of its calendar to which a booking can be moved. `others` holds all other confirmed events that
/// could conflict.
///
/// The booking keeps its length and its buffers. It must start where the calendar's slots start, end by its closing,
/// and leave room by its own buffers and by the calendar's.
pub fn move_offer<'a>(event: &CalendarEntry, calendar: &'a Calendar, others: &[Busy], now: Timestamp) -> Offer<'a> {
    let length = event.span.ends_at.utc() - event.span.starts_at.utc();
    Offer::to_move(calendar, length, event.buffers.unwrap_or(calendar.buffers), others, now)
}

/// Decides on a booking's new time. `event` is the named booking, if it is with the contact. `zone` is the zone in
/// which the booking is shown. `others` holds all other confirmed events that could conflict. Nothing is charged: a
/// booking is paid at its creation.
pub fn reschedule(
    draft: &RescheduleDraft,
    lead: Lead,
    event: Option<&CalendarEntry>,
    calendar: Option<&Calendar>,
    zone: Tz,
    others: &[Busy],
    now: Timestamp,
) -> Result<Move, BookingRefusal> {
    let event = movable(lead, event, now)?;
    // Compare as shown: a booking may be in the second of an hour that clocks show twice.
    let starts_at = event.span.starts_at;
    if (date_at(zone, starts_at), show_time(time_at(zone, starts_at))) == (draft.date, show_time(draft.time)) {
        return Ok(Move::Unchanged);
    }
    let calendar = active(calendar).map_err(|_| BookingRefusal::NoBookings)?;
    let slot = move_offer(event, calendar, others, now).find(draft.date, draft.time);
    let span = slot.ok_or(BookingRefusal::SlotUnavailable)?.span;
    Ok(Move::To(Busy { span, buffers: event.buffers.unwrap_or(calendar.buffers) }))
}

/// Decides on a cancellation. A cancellation may be repeated until the booking is past. `event` is the named booking,
/// if it is with the contact.
pub fn cancel(lead: Lead, event: Option<&CalendarEntry>, now: Timestamp) -> Result<(), BookingRefusal> {
    lead.check()?;
    let event = booking(event)?;
    if event.is_confirmed() && event.span.ends_at <= now { Err(BookingRefusal::NotActive) } else { Ok(()) }
}

fn booking(event: Option<&CalendarEntry>) -> Result<&CalendarEntry, BookingRefusal> {
    event.filter(|event| event.is_booking()).ok_or(BookingRefusal::UnknownBooking)
}

fn active(calendar: Option<&Calendar>) -> Result<&Calendar, BookingRefusal> {
    calendar.filter(|calendar| calendar.active).ok_or(BookingRefusal::UnknownCalendar)
}
