//! The decisions to make, move or cancel a booking. Obstacles are reported in one order: the contact, the booking, its
//! calendar, its price, its time.

use crate::availability::{find_move, find_slot};
use crate::booking::{BookingDraft, CalendarEvent, RescheduleDraft};
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
    /// It lives on as this one.
    Merged(ContactId),
    /// There is none, or none any more.
    Unknown,
}

/// The reason why a booking is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    UnknownLead,
    LeadMerged(ContactId),
    /// There is no such booking, or it is not with this contact.
    UnknownBooking,
    /// There is no such calendar, or it is not active.
    UnknownCalendar,
    /// The calendar is paid for, there.
    CheckoutRequired(String),
    SlotUnavailable,
    /// The booking is cancelled or past.
    NotActive,
}

impl Lead {
    pub fn check(self) -> Result<(), Refusal> {
        match self {
            Self::Live => Ok(()),
            Self::Merged(into) => Err(Refusal::LeadMerged(into)),
            Self::Unknown => Err(Refusal::UnknownLead),
        }
    }
}

/// Decides on a new booking: the time that it takes. `busy` holds every confirmed event that could be in its way.
pub fn create(
    draft: &BookingDraft,
    lead: Lead,
    calendar: Option<&Calendar>,
    busy: &[Busy],
    now: Timestamp,
) -> Result<Busy, Refusal> {
    lead.check()?;
    let calendar = active(calendar)?;
    if calendar.is_paid() {
        return Err(Refusal::CheckoutRequired(calendar.booking_url.clone()));
    }
    let slot = find_slot(calendar, draft.date, draft.time, busy, now).ok_or(Refusal::SlotUnavailable)?;
    Ok(Busy { span: slot.span, buffers: calendar.buffers })
}

/// Where a booking goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// It stays where it is.
    Nowhere,
    To(Busy),
}

/// Decides on a booking's new time. `event` is the one that is named, if it is with the contact; `zone` is the one that
/// it is shown in, `others` are all confirmed events but itself that could be in its way. Nothing is charged: what was
/// paid has been paid. The booking keeps the length and the buffers that it was made with. It has to start where the
/// calendar's slots start, to end by its closing, and to leave room by its own buffers and by the calendar's.
pub fn reschedule(
    draft: &RescheduleDraft,
    lead: Lead,
    event: Option<&CalendarEvent>,
    calendar: Option<&Calendar>,
    zone: Tz,
    others: &[Busy],
    now: Timestamp,
) -> Result<Move, Refusal> {
    lead.check()?;
    let event = booking(event)?;
    if !event.is_confirmed() || event.span.ends_at <= now {
        return Err(Refusal::NotActive);
    }
    // As it is shown: of an hour that clocks show twice a booking may stand in the second.
    let stands_at = event.span.starts_at;
    if (date_at(zone, stands_at), show_time(time_at(zone, stands_at))) == (draft.date, show_time(draft.time)) {
        return Ok(Move::Nowhere);
    }
    let calendar = active(calendar)?;
    let length = event.span.ends_at.utc() - event.span.starts_at.utc();
    let slot = find_move(calendar, draft.date, draft.time, length, others, now).ok_or(Refusal::SlotUnavailable)?;
    let moved = Busy { span: slot.span, buffers: event.buffers.unwrap_or(calendar.buffers) };
    if others.iter().any(|other| other.conflicts_with(&moved)) {
        return Err(Refusal::SlotUnavailable);
    }
    Ok(Move::To(moved))
}

/// Decides on a cancellation, which may be repeated, but not once the booking is past. `event` is the named one, if it
/// is with the contact.
pub fn cancel(lead: Lead, event: Option<&CalendarEvent>, now: Timestamp) -> Result<(), Refusal> {
    lead.check()?;
    let event = booking(event)?;
    if event.is_confirmed() && event.span.ends_at <= now { Err(Refusal::NotActive) } else { Ok(()) }
}

fn booking(event: Option<&CalendarEvent>) -> Result<&CalendarEvent, Refusal> {
    event.filter(|event| event.is_booking()).ok_or(Refusal::UnknownBooking)
}

fn active(calendar: Option<&Calendar>) -> Result<&Calendar, Refusal> {
    calendar.filter(|calendar| calendar.active).ok_or(Refusal::UnknownCalendar)
}
