//! Events on a coach's calendars: bookings, which the API shows, and private entries, which only take time.
//!
//! Both the application and the API write an event. A fact of the application is the whole record. A creation through
//! the API sets all fields, a reschedule the time, a cancellation the status. The latest write wins, per field
//! ([`register`](crate::register)).

mod decision;
mod draft;
mod filter;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::busy::{Busy, Span};
use crate::calendar::{Buffers, Calendar};
use crate::fact_time::FactTime;
use crate::id::{CalendarEntryId, CalendarId, CoachId, ContactId};
use crate::register::{Register, registers};
use crate::time::Timestamp;
use crate::tz::Tz;
use crate::wall_clock::{date_at, show_time, time_at};

pub use decision::{BookingRefusal, Lead, Move, cancel, create, movable, move_offer, reschedule};
pub use draft::{AvailabilityRequest, BookingDraft, CancelDraft, RescheduleDraft};
pub use filter::{BookingFilter, MAX_READ_BOOKINGS};

crate::named! {
    /// The status of a booking.
    BookingStatus {
        Confirmed = "confirmed",
        Cancelled = "cancelled",
    }
}

/// An event on a coach's calendars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalendarEntry {
    pub id: CalendarEntryId,
    /// `None`: a private entry.
    pub calendar_id: Option<CalendarId>,
    /// The contact that the event is with.
    pub lead_id: Option<ContactId>,
    #[serde(flatten)]
    pub span: Span,
    pub status: BookingStatus,
    /// The buffers at the creation of the event. `None`: the calendar has not been seen yet.
    pub buffers: Option<Buffers>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub registers: EventRegisters,
}

registers! {
    /// The last write of each field. The API sets calendar and contact when it creates the event, and never changes
    /// them.
    pub EventRegisters { calendar, lead, span, status }
}

/// The whole record of an event on a coach's calendars, as the application has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarEventSaved {
    pub event_id: CalendarEntryId,
    pub coach_id: CoachId,
    /// `None`: a private entry, which takes time and is never shown.
    pub calendar_id: Option<CalendarId>,
    /// The contact that the event is with.
    pub lead_id: Option<ContactId>,
    pub span: Span,
    pub status: BookingStatus,
}

impl CalendarEntry {
    /// A confirmed event that is on no calendar and with no contact.
    fn new(id: CalendarEntryId, span: Span, now: Timestamp) -> Self {
        Self {
            id,
            calendar_id: None,
            lead_id: None,
            span,
            status: BookingStatus::Confirmed,
            buffers: None,
            created_at: now,
            updated_at: now,
            registers: EventRegisters::default(),
        }
    }

    /// Creates a booking through the API.
    pub fn booked(id: CalendarEntryId, draft: &BookingDraft, busy: &Busy, now: Timestamp) -> Self {
        Self {
            calendar_id: Some(draft.calendar_id),
            lead_id: Some(draft.lead_id),
            buffers: Some(busy.buffers),
            registers: EventRegisters::whole(Register::by_api(now)),
            ..Self::new(id, busy.span, now)
        }
    }

    /// Returns the event after a move through the API.
    pub fn moved(&self, busy: &Busy, now: Timestamp) -> Self {
        let mut moved = Self { buffers: Some(busy.buffers), updated_at: self.later(now), ..self.clone() };
        moved.registers.span.set(&mut moved.span, busy.span, self.write_time(now));
        moved
    }

    /// Returns the event after the API confirmed its present time. No shown field changes, but an older fact no longer
    /// moves the event.
    pub fn reconfirmed(&self, now: Timestamp) -> Self {
        let mut confirmed = self.clone();
        confirmed.registers.span = Register::by_api(self.write_time(now));
        confirmed
    }

    /// Returns true if the API set the event's time last.
    pub fn is_time_set_by_api(&self) -> bool {
        !self.registers.span.is_set_by_application()
    }

    /// Returns the event after a cancellation through the API. The application's cancellation stays as it is, and an
    /// older fact no longer undoes it. `None`: the API already cancelled the event.
    pub fn cancelled(&self, now: Timestamp) -> Option<Self> {
        let mut cancelled = self.clone();
        let confirms =
            cancelled.registers.status.set(&mut cancelled.status, BookingStatus::Cancelled, self.write_time(now));
        if self.is_confirmed() {
            cancelled.updated_at = self.later(now);
        }
        (self.is_confirmed() || confirms).then_some(cancelled)
    }

    /// Returns the time of the last write, of the application or the API.
    pub fn last_written_at(&self) -> Timestamp {
        self.registers.last_write().max(self.updated_at)
    }

    /// Returns the time of a change, after the previous change.
    fn later(&self, now: Timestamp) -> Timestamp {
        now.after(self.updated_at)
    }

    /// Returns the time of a write through the API, after every known write: so each change has its own id.
    fn write_time(&self, now: Timestamp) -> Timestamp {
        now.after(self.last_written_at())
    }

    /// Returns the event after the application's whole record, a fact of the time `at`. Values that the API has set
    /// since then stay. `calendar` is the named calendar, if it has been seen; `lead` is the contact, if it still
    /// exists. `None`: the fact changes nothing.
    ///
    /// An event keeps its buffers as long as it stays on its calendar.
    pub fn apply_fact(
        known: Option<&Self>,
        saved: &CalendarEventSaved,
        at: FactTime,
        calendar: Option<&Calendar>,
        lead: Option<ContactId>,
        now: Timestamp,
    ) -> Option<Self> {
        let mut applied = known.cloned().unwrap_or_else(|| Self::new(saved.event_id, saved.span, now));
        let registers = &mut applied.registers;
        let kept = applied.buffers.filter(|_| applied.calendar_id == saved.calendar_id);
        if !registers.calendar.offer(&mut applied.calendar_id, saved.calendar_id, at) {
            return None;
        }
        registers.lead.offer(&mut applied.lead_id, lead, at);
        registers.span.offer(&mut applied.span, saved.span, at);
        registers.status.offer(&mut applied.status, saved.status, at);
        applied.buffers = match saved.calendar_id {
            None => Some(Buffers::default()),
            Some(_) => kept.or(calendar.map(|calendar| calendar.buffers)),
        };
        if let Some(known) = known.filter(|known| known.shown() != applied.shown()) {
            applied.updated_at = known.later(now);
        }
        (known != Some(&applied)).then_some(applied)
    }

    /// Returns the values that an answer shows, except the times of creation and update.
    fn shown(&self) -> (Option<CalendarId>, Option<ContactId>, Span, BookingStatus) {
        (self.calendar_id, self.lead_id, self.span, self.status)
    }

    /// Returns true if the event is not cancelled.
    pub fn is_confirmed(&self) -> bool {
        self.status == BookingStatus::Confirmed
    }

    /// Returns true if the event is on a calendar, so that the API shows it.
    pub fn is_booking(&self) -> bool {
        self.calendar_id.is_some()
    }

    /// Returns the coach's time that the event takes. `None`: the event is cancelled.
    pub fn busy(&self) -> Option<Busy> {
        let busy = Busy { span: self.span, buffers: self.buffers.unwrap_or_default() };
        self.is_confirmed().then_some(busy)
    }

    /// Returns the event as the API shows it, with the wall clock of `zone`. `None`: a private entry is never shown.
    pub fn view(&self, zone: Tz) -> Option<Booking> {
        Some(Booking {
            id: self.id,
            calendar_id: self.calendar_id?,
            lead_id: self.lead_id,
            starts_at: self.span.starts_at,
            ends_at: self.span.ends_at,
            timezone: zone.name().to_owned(),
            date: date_at(zone, self.span.starts_at),
            time: show_time(time_at(zone, self.span.starts_at)),
            status: self.status,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// A booking as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Booking {
    /// Names the booking in every other request. Store it.
    pub id: CalendarEntryId,
    /// The calendar on which the time is booked.
    pub calendar_id: CalendarId,
    /// The contact of the booking. Null if there is none.
    #[schema(required, value_type = Option<String>, format = Uuid)]
    pub lead_id: Option<ContactId>,
    /// When the booking begins.
    pub starts_at: Timestamp,
    /// When the booking ends.
    pub ends_at: Timestamp,
    /// The calendar's zone, by its IANA name.
    pub timezone: String,
    /// The date of the start, in `timezone`.
    pub date: NaiveDate,
    /// The time of the start, `HH:MM`, in `timezone`.
    pub time: String,
    pub status: BookingStatus,
    /// When the booking was created, or when the service received it from the application.
    pub created_at: Timestamp,
    /// When the booking last changed, or when the service received the change from the application.
    pub updated_at: Timestamp,
}

/// The answer that shows one booking.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct BookingResult {
    pub booking: Booking,
}

/// The booking after it was created, rescheduled or cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BookingOutcome {
    /// Always true.
    pub ok: bool,
    pub booking: Booking,
    /// The start before the booking was rescheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub previous_starts_at: Option<Timestamp>,
}

impl BookingOutcome {
    /// The outcome of a creation or a cancellation.
    pub fn of(booking: Booking) -> Self {
        Self { ok: true, booking, previous_starts_at: None }
    }

    /// The outcome of a move.
    pub fn moved_from(booking: Booking, previous_starts_at: Timestamp) -> Self {
        Self { ok: true, booking, previous_starts_at: Some(previous_starts_at) }
    }
}

#[cfg(test)]
mod tests;
