//! Operations for CRM keys.

use domain::availability::{Availability, MAX_CANDIDATES};
use domain::booking::{
    AvailabilityRequest, Booking, BookingDraft, BookingOutcome, BookingResult, CancelDraft, RescheduleDraft,
};
use domain::calendar::CalendarView;
use domain::contact::{Contact, ContactDraft, ContactPatch, MergedContact};
use domain::cursor::CURSOR_RULE;
use domain::email::MAX_EMAIL_CHARS;
use domain::id::{ContactId, InvalidUuid, StageId};
use domain::list::{CRM_PAGE, Order};
use domain::name_filter::InvalidNameFilter;
use domain::names::one_of;
use domain::opportunity::{OpportunityDraft, OpportunityPatch, OpportunityResult, OpportunityView};
use domain::time::TIME_RULE;
use domain::workflow::Workflow;
use edge::Problem;
use serde_json::{Value, json};

use crate::document::answer::Answer;
use crate::document::examples::{BOOKING_ID, CALENDAR_ID, CONTACT_ID, at};
use crate::document::operation::{Operation, invalid, matching, name_filter, or_empty, uuid};

pub(super) fn operations() -> Vec<Operation> {
    [contacts(), opportunities(), bookings(), workflows()].into_iter().flatten().collect()
}

/// A UUID as a cursor, in either case.
const CURSOR: &str = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";

/// A list in the order of ids, with the parameters and refusals that all lists share.
fn list(path: &str, id: &'static str, answer: Answer) -> Operation {
    pages(path, id, answer).cursor_of(matching(&format!("^({CURSOR})?$"))).refuses([invalid("cursor", InvalidUuid)])
}

/// A list in the order of ids or of updates.
fn list_with_updates(path: &str, id: &'static str, answer: Answer) -> Operation {
    pages(path, id, answer)
        .cursor_of(matching(&format!("^({CURSOR}|[A-Za-z0-9_-]{{92}})?$")))
        .filter("updated_since", date_time())
        .refuses([invalid("cursor", CURSOR_RULE), invalid("updated_since", TIME_RULE)])
}

fn pages(path: &str, id: &'static str, answer: Answer) -> Operation {
    let orders = Order::ALL.map(Order::as_str);
    Operation::new("GET", path, id)
        .size("limit", "Records in the answer", CRM_PAGE)
        .in_query("order", or_empty(json!({ "type": "string", "enum": orders, "default": orders[0] })))
        .refuses([invalid("order", one_of(&orders))])
        .refuses_unknown("oder")
        .answers(answer)
}

fn date_time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn survivor() -> ContactId {
    ContactId::parse("019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f7a").expect("the example is a UUID")
}

fn merged() -> Problem {
    Problem::ContactMerged(survivor())
}

fn contacts() -> Vec<Operation> {
    let answer =
        |status, name, given| Answer::with_record::<Contact>(status).example(name, json!({ "contact": given }));
    let created = json!({ "phone": null, "marketing": { "email": false, "sms": false } });
    let suppressed = json!({ "doNotContact": true, "updatedAt": at("09:12:30.250") });
    vec![
        list_with_updates("/v1/crm/contacts", "listContacts", Answer::page_of::<Contact>().or_item::<MergedContact>())
            .filter("name", name_filter())
            .in_query("email", json!({ "type": "string", "maxLength": MAX_EMAIL_CHARS }))
            .refuses([
                invalid("name", InvalidNameFilter::Length),
                invalid("email", format!("must be at most {MAX_EMAIL_CHARS} characters")),
            ]),
        Operation::new("GET", "/v1/crm/contacts/{id}", "readContact")
            .answers(Answer::with_record::<Contact>(200))
            .refuses([Problem::MergedContactNotFound(survivor())]),
        Operation::new("POST", "/v1/crm/contacts", "createContact")
            .body(ContactDraft::schema())
            .example("contact", json!({ "name": "Grace Hopper", "email": "grace@example.com" }))
            .answers(answer(201, "contact", created))
            .refuses([invalid("email", "is required")]),
        Operation::new("PATCH", "/v1/crm/contacts/{id}", "updateContact")
            .body(ContactPatch::schema())
            .example("suppress", json!({ "doNotContact": true }))
            .example("rename", json!({ "name": "Rear Admiral Grace Hopper" }))
            .answers(answer(200, "suppressed", suppressed))
            .refuses([merged()]),
    ]
}

fn opportunities() -> Vec<Operation> {
    let answer = Answer::of::<OpportunityResult>;
    let lost = json!({
        "stage": "lost", "status": "lost", "lostReason": "Chose another coach.", "updatedAt": at("17:40:05.125"),
    });
    let stages = ["new", "qualified", "lost"].map(|id| StageId::parse(id).expect("the example is the id of a stage"));
    vec![
        list_with_updates("/v1/crm/opportunities", "listOpportunities", Answer::page_of::<OpportunityView>()),
        Operation::new("GET", "/v1/crm/opportunities/{id}", "readOpportunity").answers(answer(200)),
        Operation::new("POST", "/v1/crm/opportunities", "createOpportunity")
            .body(OpportunityDraft::schema())
            .example("least", json!({ "contactId": CONTACT_ID }))
            .example("most", json!({ "contactId": CONTACT_ID, "name": "Twelve weeks", "valueCents": 180_000 }))
            .answers(answer(201))
            .refuses([invalid("contactId", InvalidUuid), Problem::NotFound("contact"), merged()]),
        Operation::new("PATCH", "/v1/crm/opportunities/{id}", "updateOpportunity")
            .body(OpportunityPatch::schema())
            .example("move", json!({ "stage": "qualified", "valueCents": 240_000 }))
            .example("lose", json!({ "stage": "lost", "lostReason": "Chose another coach." }))
            .example("rename", json!({ "name": "Six months" }))
            .answers(answer(200).example("lost", json!({ "opportunity": lost })))
            .refuses([
                Problem::StageUnknown(stages.into()),
                Problem::LostReasonRequired,
                Problem::LostReasonNotAllowed,
                Problem::StagePaymentControlled,
            ]),
    ]
}

fn bookings() -> Vec<Operation> {
    let rule = format!(
        "is required here: all calendars together have over {MAX_CANDIDATES} times to look at; ask for one at a time"
    );
    let outcome = |status, name, given| Answer::of::<BookingOutcome>(status).example(name, given);
    let write = |method, path, id| {
        let refusals = [invalid("leadId", InvalidUuid), Problem::NotFound("contact"), merged()];
        Operation::new(method, path, id).refuses(refusals)
    };
    let moved = json!({
        "booking": {
            "startsAt": "2026-11-23T16:00:00.000Z", "endsAt": "2026-11-23T16:30:00.000Z", "time": "11:00",
            "updatedAt": at("10:12:40.000"),
        },
        "previousStartsAt": "2026-11-23T14:30:00.000Z",
    });
    let cancelled = json!({ "booking": { "status": "cancelled", "updatedAt": at("10:15:02.000") } });
    let time = json!({ "leadId": CONTACT_ID, "calendarId": CALENDAR_ID, "date": "2026-11-23", "time": "09:30" });
    vec![
        list("/v1/crm/calendars", "listCalendars", Answer::page_of::<CalendarView>()),
        Operation::new("POST", "/v1/crm/bookings/availability", "findTimes")
            .body(AvailabilityRequest::schema())
            .example("one_calendar", json!({ "leadId": CONTACT_ID, "calendarId": CALENDAR_ID }))
            .example("all_calendars", json!({ "leadId": CONTACT_ID }))
            .example("for_a_move", json!({ "leadId": CONTACT_ID, "bookingId": BOOKING_ID }))
            .answers(Answer::of::<Availability>(200))
            .refuses([
                invalid("calendarId", rule),
                Problem::NotFound("contact"),
                Problem::NotFound("calendar"),
                Problem::NotFound("booking"),
                Problem::BookingNotActive,
                merged(),
            ]),
        write("POST", "/v1/crm/bookings", "createBooking")
            .body(BookingDraft::schema())
            .example("booking", time)
            .answers(outcome(201, "booked", json!({})))
            .refuses([
                Problem::NotFound("calendar"),
                Problem::SlotUnavailable,
                Problem::CheckoutRequired("https://coach.example/book/programme-review".to_owned()),
            ]),
        list_with_updates("/v1/crm/bookings", "listBookings", Answer::page_of::<Booking>())
            .filter("from", date_time())
            .filter("to", date_time())
            .filter("calendarId", uuid())
            .filter("leadId", uuid())
            .refuses([invalid("from", TIME_RULE), invalid("calendarId", InvalidUuid)]),
        Operation::new("GET", "/v1/crm/bookings/{id}", "readBooking").answers(Answer::of::<BookingResult>(200)),
        write("PATCH", "/v1/crm/bookings/{id}", "rescheduleBooking")
            .body(RescheduleDraft::schema())
            .example("booking", json!({ "leadId": CONTACT_ID, "date": "2026-11-23", "time": "11:00" }))
            .answers(outcome(200, "moved", moved))
            .refuses([Problem::CalendarTakesNoBookings, Problem::SlotUnavailable, Problem::BookingNotActive]),
        write("DELETE", "/v1/crm/bookings/{id}", "cancelBooking")
            .optional_body(CancelDraft::schema())
            .example("booking", json!({ "leadId": CONTACT_ID }))
            .in_query("leadId", uuid())
            .answers(outcome(200, "cancelled", cancelled))
            .refuses([invalid("leadId", "must be the same in the body and in the query"), Problem::BookingNotActive]),
    ]
}

fn workflows() -> Vec<Operation> {
    vec![list("/v1/crm/workflows", "listWorkflows", Answer::page_of::<Workflow>())]
}
