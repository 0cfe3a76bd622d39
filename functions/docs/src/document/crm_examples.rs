//! Example values of the CRM's types.

use domain::availability::{Availability, CalendarAvailability, DaySlots};
use domain::booking::{Booking, BookingOutcome, BookingStatus, CalendarEvent};
use domain::busy::Span;
use domain::calendar::{Buffers, Calendar, CalendarView, Weekly};
use domain::contact::{Contact, Marketing};
use domain::email::Email;
use domain::id::{CalendarEventId, CalendarId, ContactId, OpportunityId, PipelineId, StageId, WorkflowId};
use domain::opportunity::OpportunityView;
use domain::phone::Phone;
use domain::pipeline::StageKind;
use domain::tz::Tz;
use domain::workflow::Workflow;

use super::examples::{at, date, id};

pub(super) const CONTACT_ID: &str = "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f74";
pub(super) const MERGED_INTO_ID: &str = "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f7a";
pub(super) const OPPORTUNITY_ID: &str = "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f75";
pub(super) const CALENDAR_ID: &str = "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f76";
pub(super) const BOOKING_ID: &str = "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f77";
pub(super) const BOOKING_URL: &str = "https://coach.example/book/programme-review";

pub(super) fn contact_id() -> ContactId {
    id!(ContactId, CONTACT_ID)
}

/// The contact into which another contact was merged.
pub(super) fn merged_into() -> ContactId {
    id!(ContactId, MERGED_INTO_ID)
}

/// A contact that the API created.
pub(super) fn new_contact() -> Contact {
    Contact { phone: None, marketing: Marketing::default(), ..contact() }
}

pub(super) fn contact() -> Contact {
    Contact {
        id: contact_id(),
        name: "Grace Hopper".to_owned(),
        email: Some(id!(Email, "grace@example.com")),
        phone: Some(Phone::as_given("+1 415 555 0132")),
        do_not_contact: false,
        marketing: Marketing { email: true, sms: false },
        client_id: None,
        created_at: at("09:00:00.000"),
        updated_at: at("09:00:00.000"),
    }
}

pub(super) fn suppressed_contact() -> Contact {
    Contact { do_not_contact: true, updated_at: at("09:12:30.250"), ..contact() }
}

pub(super) fn opportunity() -> OpportunityView {
    OpportunityView {
        id: id!(OpportunityId, OPPORTUNITY_ID),
        contact_id: contact_id(),
        name: "Twelve weeks".to_owned(),
        value_cents: 180_000,
        pipeline_id: id!(PipelineId, "pipeline_coaching"),
        stage: id!(StageId, "new"),
        status: StageKind::Open,
        lost_reason: None,
        created_at: at("09:05:00.000"),
        updated_at: at("09:05:00.000"),
    }
}

pub(super) fn lost_opportunity() -> OpportunityView {
    OpportunityView {
        stage: id!(StageId, "lost"),
        status: StageKind::Lost,
        lost_reason: Some("Chose another coach.".to_owned()),
        updated_at: at("17:40:05.125"),
        ..opportunity()
    }
}

/// Stages that a request may choose.
pub(super) fn stages() -> Vec<StageId> {
    vec![id!(StageId, "new"), id!(StageId, "qualified"), id!(StageId, "lost")]
}

pub(super) fn workflow() -> Workflow {
    Workflow {
        id: id!(WorkflowId, "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f78"),
        name: "Welcome".to_owned(),
        trigger: "contact_created".to_owned(),
        is_active: true,
        activated_at: Some(at("08:00:00.000")),
        updated_at: at("08:00:00.000"),
    }
}

fn new_york() -> Tz {
    "America/New_York".parse().expect("the zone is in the database")
}

fn stored_calendar() -> Calendar {
    Calendar {
        id: id!(CalendarId, CALENDAR_ID),
        name: "Introduction call".to_owned(),
        time_zone: new_york(),
        price_cents: 0,
        currency: "USD".to_owned(),
        booking_url: "https://coach.example/book/introduction".to_owned(),
        active: true,
        slot_minutes: 30,
        slot_interval_minutes: 30,
        buffers: Buffers::default(),
        min_notice_minutes: 0,
        horizon_days: 14,
        weekly: Weekly::default(),
        overrides: Default::default(),
    }
}

pub(super) fn calendar() -> CalendarView {
    stored_calendar().view()
}

pub(super) fn availability() -> Availability {
    let slots = |day: &str, times: &[&str]| DaySlots {
        date: date(day),
        slots: times.iter().map(|time| (*time).to_owned()).collect(),
    };
    let days = vec![slots("2026-11-23", &["09:00", "09:30", "11:00"]), slots("2026-11-24", &[])];
    Availability::new(vec![CalendarAvailability::new(&stored_calendar(), days)])
}

fn event() -> CalendarEvent {
    let day = |time: &str| {
        domain::time::Timestamp::parse(&format!("2026-11-23T{time}:00Z")).expect("the example is a valid time")
    };
    CalendarEvent {
        id: id!(CalendarEventId, BOOKING_ID),
        calendar_id: Some(id!(CalendarId, CALENDAR_ID)),
        lead_id: Some(contact_id()),
        span: Span { starts_at: day("14:30"), ends_at: day("15:00") },
        status: BookingStatus::Confirmed,
        buffers: Some(Buffers::default()),
        created_at: at("09:30:00.000"),
        updated_at: at("09:30:00.000"),
        saved_at: at("09:30:00.000").into(),
        moved_at: None,
        cancelled_at: None,
    }
}

fn booking_view(event: &CalendarEvent) -> Booking {
    event.view(new_york()).expect("the event is on a calendar")
}

pub(super) fn booking() -> Booking {
    booking_view(&event())
}

pub(super) fn booked() -> BookingOutcome {
    BookingOutcome::of(booking())
}

pub(super) fn moved() -> BookingOutcome {
    let before = event();
    let later = |at: domain::time::Timestamp| domain::time::Timestamp::new(at.utc() + chrono::TimeDelta::minutes(90));
    let span = Span { starts_at: later(before.span.starts_at), ends_at: later(before.span.ends_at) };
    let moved = CalendarEvent { span, updated_at: at("10:12:40.000"), ..before.clone() };
    BookingOutcome::moved_from(booking_view(&moved), before.span.starts_at)
}

pub(super) fn cancelled() -> BookingOutcome {
    let event = CalendarEvent { status: BookingStatus::Cancelled, updated_at: at("10:15:02.000"), ..event() };
    BookingOutcome::of(booking_view(&event))
}
