//! Events on a coach's calendars: bookings, which the API shows, and private entries, which only take time.
//!
//! Both the application and the API write an event. A fact of the application is the whole record at the fact's time. A
//! write of the API counts like a fact at its own time, for the fields that it sets: a creation sets all fields, a
//! reschedule the time, a cancellation the status.

mod decision;
mod draft;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::busy::{Busy, Span};
use crate::calendar::{Buffers, Calendar};
use crate::fact_time::FactTime;
use crate::id::{CalendarEventId, CalendarId, CoachId, ContactId};
use crate::time::Timestamp;
use crate::tz::Tz;
use crate::wall_clock::{date_at, show_time, time_at};

pub use decision::{BookingRefusal, Lead, Move, cancel, create, reschedule};
pub use draft::{AvailabilityRequest, BookingDraft, CancelDraft, RescheduleDraft};

crate::named! {
    /// The status of a booking.
    BookingStatus {
        Confirmed = "confirmed",
        Cancelled = "cancelled",
    }
}

/// An event on a coach's calendars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarEvent {
    pub id: CalendarEventId,
    /// `None`: a private entry.
    pub calendar_id: Option<CalendarId>,
    /// The contact that the event is with.
    pub lead_id: Option<ContactId>,
    pub span: Span,
    pub status: BookingStatus,
    /// The buffers at the creation of the event. `None`: the calendar has not been seen yet.
    pub buffers: Option<Buffers>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When the whole record was last written: by a fact, or by the creation through the API.
    pub saved_at: FactTime,
    /// When the API last moved the event.
    pub moved_at: Option<Timestamp>,
    /// When the API cancelled the event.
    pub cancelled_at: Option<Timestamp>,
}

/// The whole record of an event on a coach's calendars, as the application has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarEventSaved {
    pub event_id: CalendarEventId,
    pub coach_id: CoachId,
    /// `None`: a private entry, which takes time and is never shown.
    pub calendar_id: Option<CalendarId>,
    /// The contact that the event is with.
    pub lead_id: Option<ContactId>,
    pub span: Span,
    pub status: BookingStatus,
}

impl CalendarEvent {
    /// Creates a booking through the API.
    pub fn booked(id: CalendarEventId, draft: &BookingDraft, busy: &Busy, now: Timestamp) -> Self {
        Self {
            id,
            calendar_id: Some(draft.calendar_id),
            lead_id: Some(draft.lead_id),
            span: busy.span,
            status: BookingStatus::Confirmed,
            buffers: Some(busy.buffers),
            created_at: now,
            updated_at: now,
            saved_at: now.into(),
            moved_at: None,
            cancelled_at: None,
        }
    }

    /// Returns the event after a move through the API.
    pub fn moved(&self, busy: &Busy, now: Timestamp) -> Self {
        let (span, buffers) = (busy.span, Some(busy.buffers));
        Self { span, buffers, updated_at: self.later(now), moved_at: Some(self.after_last_write(now)), ..self.clone() }
    }

    /// Returns the event after the API confirmed its present time. No shown field changes, but an older fact no longer
    /// moves the event.
    pub fn reconfirmed(&self, now: Timestamp) -> Self {
        Self { moved_at: Some(self.after_last_write(now)), ..self.clone() }
    }

    /// Returns true if the API set the event's time last.
    pub fn is_time_set_by_api(&self) -> bool {
        self.is_set_by_api(self.moved_at)
    }

    /// Returns the event after a cancellation through the API. `None`: the API already cancelled the event.
    pub fn cancelled(&self, now: Timestamp) -> Option<Self> {
        let cancelled_at = Some(self.after_last_write(now));
        match self.status {
            BookingStatus::Confirmed => {
                let status = BookingStatus::Cancelled;
                Some(Self { status, updated_at: self.later(now), cancelled_at, ..self.clone() })
            }
            // The application's cancellation stays as it is, and an older fact no longer undoes it.
            BookingStatus::Cancelled if !self.is_set_by_api(self.cancelled_at) => {
                Some(Self { cancelled_at, ..self.clone() })
            }
            BookingStatus::Cancelled => None,
        }
    }

    /// Returns the time of the last write, of the application or the API.
    pub fn last_written_at(&self) -> Timestamp {
        [self.moved_at, self.cancelled_at].into_iter().flatten().fold(self.updated_at, Ord::max)
    }

    /// Returns true if the API wrote last, at this time or by creating the event.
    fn is_set_by_api(&self, set_at: Option<Timestamp>) -> bool {
        set_at.map(FactTime::from) > Some(self.saved_at) || self.saved_at == self.created_at.into()
    }

    /// Returns the time of a change, after the previous change.
    fn later(&self, now: Timestamp) -> Timestamp {
        now.after(self.updated_at)
    }

    /// Returns the time of a write through the API: after every known write, even if the application's clock is ahead
    /// or a later request committed first. So each change has its own id, and no older fact undoes it.
    fn after_last_write(&self, now: Timestamp) -> Timestamp {
        now.after(self.last_written_at().max(self.saved_at.timestamp()))
    }

    /// Returns the event after the application's whole record, a fact of the time `at`. Values that the API has set
    /// since then stay. `calendar` is the named calendar, if it has been seen; `lead` is the contact, if it still
    /// exists. `None`: the known event is newer.
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
        if known.is_some_and(|known| known.saved_at > at) {
            return None;
        }
        let since = |set_at: Option<Timestamp>| set_at.map(FactTime::from) > Some(at);
        let kept = known.filter(|known| known.calendar_id == saved.calendar_id).and_then(|known| known.buffers);
        let saved_event = Self {
            id: saved.event_id,
            calendar_id: saved.calendar_id,
            lead_id: lead,
            span: known.filter(|known| since(known.moved_at)).map_or(saved.span, |known| known.span),
            status: known.filter(|known| since(known.cancelled_at)).map_or(saved.status, |known| known.status),
            buffers: match saved.calendar_id {
                None => Some(Buffers::default()),
                Some(_) => kept.or(calendar.map(|calendar| calendar.buffers)),
            },
            created_at: known.map_or(now, |known| known.created_at),
            updated_at: known.map_or(now, |known| known.updated_at),
            saved_at: at,
            moved_at: known.and_then(|known| known.moved_at),
            cancelled_at: known.and_then(|known| known.cancelled_at),
        };
        let changed = known.filter(|known| known.shown() != saved_event.shown());
        Some(match changed {
            Some(known) => Self { updated_at: known.later(now), ..saved_event },
            None => saved_event,
        })
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
    pub id: CalendarEventId,
    pub calendar_id: CalendarId,
    /// The contact of the booking. Null if there is none.
    #[schema(required, value_type = Option<String>, format = Uuid)]
    pub lead_id: Option<ContactId>,
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
    /// The calendar's zone, by its IANA name.
    pub timezone: String,
    /// The date of the start, in `timezone`.
    pub date: NaiveDate,
    /// The time of the start, `HH:MM`, in `timezone`.
    pub time: String,
    pub status: BookingStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
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
