//! The bodies of requests about bookings. Unknown fields are refused, and each field has one form.

use chrono::{NaiveDate, NaiveTime};
use serde_json::Value;

use crate::fields::{Fields, Invalid};
use crate::id::{CalendarEntryId, CalendarId, ContactId};
use crate::openapi::{Body, Field};
use crate::wall_clock::{TIME_RULE, parse_time};

/// A booking to create: a slot by the wall clock of its calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookingDraft {
    pub lead_id: ContactId,
    pub calendar_id: CalendarId,
    pub date: NaiveDate,
    pub time: NaiveTime,
}

/// The new time of a booking: a slot by the wall clock of its calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RescheduleDraft {
    pub lead_id: ContactId,
    pub date: NaiveDate,
    pub time: NaiveTime,
}

/// A booking's cancellation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelDraft {
    pub lead_id: ContactId,
}

/// A query for bookable times: the contact, and the calendar or `None` for all calendars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AvailabilityRequest {
    pub lead_id: ContactId,
    pub calendar_id: Option<CalendarId>,
    /// The booking that is to be moved. `None`: the times are for a new booking.
    pub booking_id: Option<CalendarEntryId>,
}

impl BookingDraft {
    /// Reads the body of `POST /v1/crm/bookings`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::strict(body, &["leadId", "calendarId", "date", "time"])?;
        Ok(Self {
            lead_id: lead(fields)?,
            calendar_id: fields.required("calendarId", usize::MAX, CalendarId::parse)?,
            date: fields.required_date("date")?,
            time: time(fields)?,
        })
    }

    pub fn schema() -> Body {
        let calendar = Field::uuid().required().about("One of the calendars that are listed.");
        Body::strict([lead_field(), ("calendarId", calendar), date_field(), time_field()])
    }
}

impl RescheduleDraft {
    /// Reads the body of `PATCH /v1/crm/bookings/{id}`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::strict(body, &["leadId", "date", "time"])?;
        Ok(Self { lead_id: lead(fields)?, date: fields.required_date("date")?, time: time(fields)? })
    }

    pub fn schema() -> Body {
        Body::strict([lead_field(), date_field(), time_field()])
    }
}

impl CancelDraft {
    /// Reads the body of `DELETE /v1/crm/bookings/{id}`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        Ok(Self { lead_id: lead(Fields::strict(body, &["leadId"])?)? })
    }

    pub fn schema() -> Body {
        Body::strict([lead_field()])
    }
}

impl AvailabilityRequest {
    /// Reads the body of `POST /v1/crm/bookings/availability`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::strict(body, &["leadId", "calendarId", "bookingId"])?;
        Ok(Self {
            lead_id: lead(fields)?,
            calendar_id: fields.parsed("calendarId", usize::MAX, CalendarId::parse)?,
            booking_id: fields.parsed("bookingId", usize::MAX, CalendarEntryId::parse)?,
        })
    }

    pub fn schema() -> Body {
        let calendar = Field::uuid().about("Default: all active calendars, or the calendar of `bookingId`.");
        let booking = Field::uuid().about("A booking of the contact: the times to which that booking can be moved.");
        Body::strict([lead_field(), ("calendarId", calendar), ("bookingId", booking)])
    }
}

fn lead(fields: Fields<'_>) -> Result<ContactId, Invalid> {
    fields.required("leadId", usize::MAX, ContactId::parse)
}

fn time(fields: Fields<'_>) -> Result<NaiveTime, Invalid> {
    fields.required("time", usize::MAX, |text| parse_time(text).ok_or(TIME_RULE))
}

fn lead_field() -> (&'static str, Field) {
    ("leadId", Field::uuid().required().about("The contact that the booking is with."))
}

fn date_field() -> (&'static str, Field) {
    ("date", Field::date().required().about("In the calendar's zone."))
}

fn time_field() -> (&'static str, Field) {
    ("time", Field::time_of_day().required().about("In the calendar's zone, as availability lists it."))
}
