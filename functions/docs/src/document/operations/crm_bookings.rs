//! `/v1/crm/calendars`, `/v1/crm/bookings` and what is below it.

use domain::api_key::Permission;
use domain::availability::{Availability, MAX_CANDIDATES, MAX_SLOTS};
use domain::booking::{AvailabilityRequest, Booking, BookingDraft, BookingOutcome, CancelDraft, RescheduleDraft};
use domain::calendar::CalendarView;
use domain::fields::Invalid;
use domain::id::InvalidUuid;
use edge::Problem;
use serde_json::{Value, json};

use super::{CRM_BOOKINGS, Operation, Schemas, crm_list, of_record, uuid};
use crate::document::crm_examples::{
    BOOKING_ID, BOOKING_URL, CALENDAR_ID, CONTACT_ID, availability, booked, booking, calendar, cancelled, merged_into,
    moved, page,
};
use crate::document::examples::to_json;
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![
        list_calendars(schemas),
        find_times(schemas),
        create(schemas),
        list(schemas),
        reschedule(schemas),
        cancel(schemas),
    ]
}

fn list_calendars(schemas: &mut Schemas) -> Operation {
    let answer = Answer::json(
        200,
        "Calendars, by id.",
        schemas.page_of::<CalendarView>("CalendarPage"),
        &[("page", page(calendar()))],
    );
    let answer = answer.link_with_body("findTimes", json!({}), json!({ "calendarId": "$response.body#/data/0/id" }));
    crm_list(Operation::new("GET", "/v1/crm/calendars", "listCalendars"), Permission::BookingsRead, answer)
        .tag(CRM_BOOKINGS)
        .summary("List calendars")
        .about("Those that can be booked. A calendar that the coach has switched off is not among them.")
}

fn find_times(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("FindTimes", AvailabilityRequest::schema().into_json());
    let answer = Answer::json(
        200,
        "Every day that each calendar can be booked on, with the times that are free.",
        schemas.of::<Availability>(),
        &[("times", to_json(&availability()))],
    );
    let slot = json!({
        "leadId": "$request.body#/leadId", "calendarId": "$response.body#/calendars/0/id",
        "date": "$response.body#/calendars/0/days/0/date", "time": "$response.body#/calendars/0/days/0/slots/0",
    });
    let needed = |have: String| {
        let rule = format!("is required here: all calendars together have {have}; ask for one at a time");
        Problem::Invalid(Invalid::field("calendarId", rule))
    };
    Operation::new("POST", "/v1/crm/bookings/availability", "findTimes")
        .tag(CRM_BOOKINGS)
        .crm(Permission::BookingsRead)
        .summary("Find free times")
        .about(
            "By the wall clock of each calendar, ready to be booked. What is listed can be booked, and what is not listed cannot. Nothing \
             is reserved, so that another booking may come first. It writes nothing and takes no `Idempotency-Key`.",
        )
        .body(
            body,
            &[
                ("one_calendar", json!({ "leadId": CONTACT_ID, "calendarId": CALENDAR_ID })),
                ("all_calendars", json!({ "leadId": CONTACT_ID })),
            ],
        )
        .answers(answer.link_with_body("createBooking", json!({}), slot))
        .refuses(needed(format!("over {MAX_SLOTS} slots")))
        .refuses(needed(format!("over {MAX_CANDIDATES} times to look at")))
        .refuses(Problem::NotFound("contact"))
        .refuses(Problem::NotFound("calendar"))
        .refuses(Problem::ContactMerged(merged_into()))
}

fn create(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("CreateBooking", BookingDraft::schema().into_json());
    let answer = outcome(schemas, 201, "It is booked.", &[("booked", to_json(&booked()))]);
    write(Operation::new("POST", "/v1/crm/bookings", "createBooking"))
        .summary("Book a time")
        .about(
            "One of the times that `/v1/crm/bookings/availability` lists. Of any number of requests for times of one coach that \
             overlap, buffers included, one is booked, whatever their calendars. A paid calendar is 409 `checkout_required`: the person \
             books and pays at `bookingUrl`.",
        )
        .body(
            body,
            &[(
                "booking",
                json!({ "leadId": CONTACT_ID, "calendarId": CALENDAR_ID, "date": "2026-11-23", "time": "09:30" }),
            )],
        )
        .answers(answer)
        .refuses(Problem::NotFound("calendar"))
        .refuses(Problem::SlotUnavailable)
        .refuses(Problem::CheckoutRequired(BOOKING_URL.to_owned()))
}

fn list(schemas: &mut Schemas) -> Operation {
    let answer =
        Answer::json(200, "Bookings, by id.", schemas.page_of::<Booking>("BookingPage"), &[("page", page(booking()))]);
    let (record, lead) =
        (json!({ "id": "$response.body#/data/0/id" }), json!({ "leadId": "$response.body#/data/0/leadId" }));
    let answer = answer.link_with_body("rescheduleBooking", record.clone(), lead.clone()).link_with_body(
        "cancelBooking",
        record,
        lead,
    );
    crm_list(Operation::new("GET", "/v1/crm/bookings", "listBookings"), Permission::BookingsRead, answer)
        .tag(CRM_BOOKINGS)
        .summary("List bookings")
        .about("Those that are not cancelled, past ones too. What a coach has entered privately takes time and is never listed.")
}

fn reschedule(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("RescheduleBooking", RescheduleDraft::schema().into_json());
    let answer = outcome(schemas, 200, "It is moved.", &[("moved", to_json(&moved()))]);
    of_booking(Operation::new("PATCH", "/v1/crm/bookings/{id}", "rescheduleBooking"))
        .summary("Move a booking")
        .about(
            "To another time of its calendar. It keeps the length and the pauses that it was made with, and has to fit with them. The time \
             that it has now changes nothing. Nothing is charged or refunded.",
        )
        .body(body, &[("booking", json!({ "leadId": CONTACT_ID, "date": "2026-11-23", "time": "11:00" }))])
        .answers(answer)
        .refuses(Problem::NotFound("calendar"))
        .refuses(Problem::SlotUnavailable)
}

fn cancel(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("CancelBooking", CancelDraft::schema().into_json());
    let answer = outcome(schemas, 200, "It is cancelled.", &[("cancelled", to_json(&cancelled()))]);
    of_booking(Operation::new("DELETE", "/v1/crm/bookings/{id}", "cancelBooking"))
        .summary("Cancel a booking")
        .about(
            "Nothing is charged or refunded. Cancelling again changes nothing. The contact is named in the body, or in the query by clients \
             that send no body with DELETE. Either form is the same request to an idempotency key.",
        )
        .optional_body(body, &[("booking", json!({ "leadId": CONTACT_ID }))])
        .in_query("leadId", uuid(), "The contact that the booking is with, where there is no body. With one, it has to be the same.")
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("leadId", "must be the same in the body and in the query")))
}

/// A write about a contact.
fn write(operation: Operation) -> Operation {
    operation
        .tag(CRM_BOOKINGS)
        .crm(Permission::BookingsWrite)
        .once()
        .refuses(Problem::Invalid(Invalid::field("leadId", InvalidUuid)))
        .refuses(Problem::NotFound("contact"))
        .refuses(Problem::ContactMerged(merged_into()))
}

fn of_booking(operation: Operation) -> Operation {
    of_record(write(operation), "The booking's id.", BOOKING_ID)
        .refuses(Problem::NotFound("booking"))
        .refuses(Problem::BookingNotActive)
}

/// What a write answers with, and what can be done with it.
fn outcome(schemas: &mut Schemas, status: u16, about: &'static str, examples: &[(&str, Value)]) -> Answer {
    let record = json!({ "id": "$response.body#/booking/id" });
    let lead = json!({ "leadId": "$response.body#/booking/leadId" });
    Answer::json(status, about, schemas.of::<BookingOutcome>(), examples)
        .link_with_body("rescheduleBooking", record.clone(), lead.clone())
        .link_with_body("cancelBooking", record, lead)
}
