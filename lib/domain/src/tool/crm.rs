//! Tools for CRM keys.

use serde_json::json;

use super::definition::{ArgumentPlace, Effect, Need, Repeat, TOOL_FREE_DAYS, Tool};
use super::partner;
use super::schema::{formed, size, text_of};
use crate::availability::Availability;
use crate::booking::{AvailabilityRequest, BookingDraft, BookingOutcome, RescheduleDraft};
use crate::contact::{ContactDraft, ContactPatch};
use crate::email::MAX_EMAIL_CHARS;
use crate::list::{CrmPage, Order};
use crate::name_filter::MAX_NAME_FILTER_CHARS;
use crate::opportunity::{OpportunityDraft, OpportunityPatch};
use crate::workflow::Workflow;

/// The meaning of a booking's time.
const TIME: &str = "HH:MM in the calendar's zone";

pub(super) fn tools() -> Vec<Tool> {
    [contacts(), opportunities(), bookings(), vec![workflows(), partner::events()]].into_iter().flatten().collect()
}

/// A list of the CRM.
fn list(name: &'static str, title: &'static str, path: &'static str, about: &'static str) -> Tool {
    // All pages have the same outermost members.
    Tool::reads(name, title, path, about).answers::<CrmPage<Workflow>>()
}

fn contacts() -> Vec<Tool> {
    vec![
        list(
            "find_contacts",
            "Find contacts",
            "/v1/crm/contacts",
            "Contacts of the CRM. `name` finds by a part of the name. A page may be short: follow next_cursor.",
        )
        .query("name", text_of(MAX_NAME_FILTER_CHARS))
        .query("email", text_of(MAX_EMAIL_CHARS))
        .query("updated_since", formed("date-time"))
        .page(),
        Tool::reads("get_contact", "Read a contact", "/v1/crm/contacts/{id}", "One contact.")
            .id("id")
            .answers_record("contact"),
        Tool::new(
            "create_contact",
            "Add a contact",
            Effect::Creates,
            ("POST", "/v1/crm/contacts"),
            "Adds a contact. If a contact has the address, the answer is that contact, unchanged.",
        )
        .body(ContactDraft::schema(), &["name", "email"])
        .repeat(Repeat::DrawnKey)
        .answers_record("contact"),
        Tool::new(
            "update_contact",
            "Change a contact",
            Effect::Changes,
            ("PATCH", "/v1/crm/contacts/{id}"),
            "Renames a contact, or stops all messages to it for good.",
        )
        .id("id")
        .body(ContactPatch::schema(), &["name", "doNotContact"])
        .repeat(Repeat::DrawnKey)
        .answers_record("contact"),
    ]
}

fn opportunities() -> Vec<Tool> {
    vec![
        list("find_opportunities", "Find opportunities", "/v1/crm/opportunities", "Opportunities with their stages.")
            .query("updated_since", formed("date-time"))
            .query("order", json!({ "type": "string", "enum": Order::ALL }))
            .page(),
        Tool::reads("get_opportunity", "Read an opportunity", "/v1/crm/opportunities/{id}", "One opportunity.")
            .id("id")
            .answers_record("opportunity"),
        Tool::new(
            "create_opportunity",
            "Add an opportunity",
            Effect::Creates,
            ("POST", "/v1/crm/opportunities"),
            "Adds an opportunity in the first stage.",
        )
        .body(OpportunityDraft::schema(), &["contactId", "name", "valueCents"])
        .given_key()
        .answers_record("opportunity"),
        Tool::new(
            "update_opportunity",
            "Change an opportunity",
            Effect::Changes,
            ("PATCH", "/v1/crm/opportunities/{id}"),
            "Changes name, value or stage. A lost stage needs lostReason; winning is left to payments.",
        )
        .id("id")
        .body(OpportunityPatch::schema(), &["name", "valueCents", "stage", "lostReason"])
        .repeat(Repeat::DrawnKey)
        .answers_record("opportunity"),
    ]
}

fn bookings() -> Vec<Tool> {
    vec![
        list("list_calendars", "List calendars", "/v1/crm/calendars", "The calendars that can be booked.").page(),
        Tool::new(
            "find_free_times",
            "Find free times",
            Effect::Reads,
            ("POST", "/v1/crm/bookings/availability"),
            "Bookable times of a calendar, in its zone. bookingId: the times to which that booking can be moved.",
        )
        .body(AvailabilityRequest::schema(), &["leadId", "calendarId", "bookingId"])
        .requires("calendarId")
        .says("leadId", "The contact")
        .with("from", ArgumentPlace::Answer, Need::Nobody, formed("date"))
        .says("from", "Default: today")
        .with("days", ArgumentPlace::Answer, Need::Nobody, size(TOOL_FREE_DAYS))
        .answers::<Availability>(),
        list("find_bookings", "Find bookings", "/v1/crm/bookings", "Bookings, cancelled ones left out.")
            .query("from", formed("date-time"))
            .query("to", formed("date-time"))
            .query("calendarId", formed("uuid"))
            .query("leadId", formed("uuid"))
            .page(),
        Tool::reads("get_booking", "Read a booking", "/v1/crm/bookings/{id}", "One booking.")
            .id("id")
            .answers_record("booking"),
        Tool::new(
            "create_booking",
            "Book an appointment",
            Effect::Creates,
            ("POST", "/v1/crm/bookings"),
            "Books a time that find_free_times lists.",
        )
        .body(BookingDraft::schema(), &["leadId", "calendarId", "date", "time"])
        .says("leadId", "The contact")
        .says("time", TIME)
        .given_key()
        .answers::<BookingOutcome>(),
        Tool::new(
            "reschedule_booking",
            "Move an appointment",
            Effect::Changes,
            ("PATCH", "/v1/crm/bookings/{id}"),
            "Moves a booking to another time of its calendar.",
        )
        .id("id")
        .body(RescheduleDraft::schema(), &["leadId", "date", "time"])
        .says("time", TIME)
        .repeat(Repeat::DrawnKey)
        .answers::<BookingOutcome>(),
        Tool::new(
            "cancel_booking",
            "Cancel an appointment",
            Effect::Changes,
            ("DELETE", "/v1/crm/bookings/{id}"),
            "Cancels a booking.",
        )
        .id("id")
        .query("leadId", formed("uuid"))
        .requires("leadId")
        .repeat(Repeat::DrawnKey)
        .answers::<BookingOutcome>(),
    ]
}

fn workflows() -> Tool {
    list("list_workflows", "List workflows", "/v1/crm/workflows", "The workflows of the coach, with their states.")
        .page()
}
