//! `/v1/crm/calendars` and `/v1/crm/bookings`.

use domain::availability::MAX_CANDIDATES;
use domain::booking::{AvailabilityRequest, BookingDraft, BookingOutcome, CancelDraft, RescheduleDraft};
use domain::id::InvalidUuid;
use edge::Problem;
use serde_json::json;

use super::{Operation, Schemas, crm_list, crm_page, invalid, uuid, with_record_id};
use crate::document::crm_examples::{
    BOOKING_ID, BOOKING_URL, CALENDAR_ID, CONTACT_ID, availability, booked, booking, calendar, cancelled, merged_into,
    moved,
};
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
    let answer = crm_page(schemas, "Calendars, by id.", "CalendarPage", calendar()).link_with_body(
        &["findTimes"],
        json!({}),
        json!({ "calendarId": "$response.body#/data/0/id" }),
    );
    let list = Operation::new("GET", "/v1/crm/calendars", "listCalendars", "List calendars")
        .about("The active calendars of the coach.");
    crm_list(list, answer)
}

fn find_times(schemas: &mut Schemas) -> Operation {
    let about = "Every bookable day of each calendar, with its free times.";
    let slot = json!({
        "leadId": "$request.body#/leadId", "calendarId": "$response.body#/calendars/0/id",
        "date": "$response.body#/calendars/0/days/0/date", "time": "$response.body#/calendars/0/days/0/slots/0",
    });
    let rule = format!(
        "is required here: all calendars together have over {MAX_CANDIDATES} times to look at; ask for one at a time"
    );
    Operation::new("POST", "/v1/crm/bookings/availability", "findTimes", "Find free times")
        .about(
            "Times are local to each calendar, in the form that a booking takes. A listed time can be booked; any \
             other time cannot. The request reserves nothing, so another booking can take the time first. The request \
             writes nothing and takes no `Idempotency-Key`.",
        )
        .body(schemas, "FindTimes", AvailabilityRequest::schema())
        .example("one_calendar", json!({ "leadId": CONTACT_ID, "calendarId": CALENDAR_ID }))
        .example("all_calendars", json!({ "leadId": CONTACT_ID }))
        .answers(Answer::of(schemas, 200, about, "times", &availability()).link_with_body(
            &["createBooking"],
            json!({}),
            slot,
        ))
        .refuses([
            invalid("calendarId", rule),
            Problem::NotFound("contact"),
            Problem::NotFound("calendar"),
            Problem::ContactMerged(merged_into()),
        ])
}

fn create(schemas: &mut Schemas) -> Operation {
    write(Operation::new("POST", "/v1/crm/bookings", "createBooking", "Create a booking"))
        .about(
            "Books a time that `/v1/crm/bookings/availability` lists. Of parallel requests for overlapping times of \
             one coach, exactly one succeeds, across all calendars and buffers included. A paid calendar is 409 \
             `checkout_required`: the person books and pays at `bookingUrl`.",
        )
        .body(schemas, "CreateBooking", BookingDraft::schema())
        .example(
            "booking",
            json!({ "leadId": CONTACT_ID, "calendarId": CALENDAR_ID, "date": "2026-11-23", "time": "09:30" }),
        )
        .answers(outcome(schemas, 201, "The booking was created.", "booked", &booked()))
        .refuses([
            Problem::NotFound("calendar"),
            Problem::SlotUnavailable,
            Problem::CheckoutRequired(BOOKING_URL.to_owned()),
        ])
}

fn list(schemas: &mut Schemas) -> Operation {
    let answer = with_links(crm_page(schemas, "Bookings, by id.", "BookingPage", booking()), "/data/0");
    let list = Operation::new("GET", "/v1/crm/bookings", "listBookings", "List bookings").about(
        "Past bookings are listed, cancelled ones are not. Private entries of the coach are not listed, although they \
         occupy time.",
    );
    crm_list(list, answer)
}

fn reschedule(schemas: &mut Schemas) -> Operation {
    with_booking_id(Operation::new("PATCH", "/v1/crm/bookings/{id}", "rescheduleBooking", "Reschedule a booking"))
        .about(
            "Moves the booking to another time of its calendar. The booking keeps the length and the buffers with \
             which it was created. Its current time changes nothing. Nothing is charged or refunded.",
        )
        .body(schemas, "RescheduleBooking", RescheduleDraft::schema())
        .example("booking", json!({ "leadId": CONTACT_ID, "date": "2026-11-23", "time": "11:00" }))
        .answers(outcome(schemas, 200, "The booking at its new time.", "moved", &moved()))
        .refuses([Problem::NotFound("calendar"), Problem::SlotUnavailable])
}

fn cancel(schemas: &mut Schemas) -> Operation {
    with_booking_id(Operation::new("DELETE", "/v1/crm/bookings/{id}", "cancelBooking", "Cancel a booking"))
        .about(
            "Nothing is charged or refunded. Cancelling again changes nothing. The body names the contact, or the \
             query if your client cannot send a body with DELETE. Both forms are the same request to an idempotency \
             key.",
        )
        .optional_body(schemas, "CancelBooking", CancelDraft::schema())
        .example("booking", json!({ "leadId": CONTACT_ID }))
        .in_query(
            "leadId",
            uuid(),
            "The contact of the booking, if there is no body. If there is a body, both have to name the same contact.",
        )
        .answers(outcome(schemas, 200, "The booking is cancelled.", "cancelled", &cancelled()))
        .refuses([invalid("leadId", "must be the same in the body and in the query")])
}

/// Adds the idempotency key and the refusals that all writes of bookings share.
fn write(operation: Operation) -> Operation {
    operation.idempotent().refuses([
        invalid("leadId", InvalidUuid),
        Problem::NotFound("contact"),
        Problem::ContactMerged(merged_into()),
    ])
}

fn with_booking_id(operation: Operation) -> Operation {
    with_record_id(write(operation), "The booking's id.", BOOKING_ID)
        .refuses([Problem::NotFound("booking"), Problem::BookingNotActive])
}

/// Builds the answer of a write.
fn outcome(schemas: &mut Schemas, status: u16, about: &'static str, name: &str, example: &BookingOutcome) -> Answer {
    with_links(Answer::of(schemas, status, about, name, example), "/booking")
}

/// Links to the operations on a booking. `pointer` is the place of the booking in the answer.
fn with_links(answer: Answer, pointer: &str) -> Answer {
    answer.link_with_body(
        &["rescheduleBooking", "cancelBooking"],
        json!({ "id": format!("$response.body#{pointer}/id") }),
        json!({ "leadId": format!("$response.body#{pointer}/leadId") }),
    )
}
