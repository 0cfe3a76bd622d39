//! `/v1/crm/calendars`, `/v1/crm/bookings` and what is below it.

use domain::availability::MAX_CANDIDATES;
use domain::booking::{AvailabilityRequest, BookingDraft, BookingOutcome, CancelDraft, RescheduleDraft};
use domain::id::InvalidUuid;
use edge::Problem;
use serde_json::json;

use super::{Operation, Schemas, crm_list, crm_page, invalid, of_record, uuid};
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
        .about("Those that can be booked. A calendar that the coach has switched off is not among them.");
    crm_list(list, answer)
}

fn find_times(schemas: &mut Schemas) -> Operation {
    let about = "Every day that each calendar can be booked on, with the times that are free.";
    let slot = json!({
        "leadId": "$request.body#/leadId", "calendarId": "$response.body#/calendars/0/id",
        "date": "$response.body#/calendars/0/days/0/date", "time": "$response.body#/calendars/0/days/0/slots/0",
    });
    let rule = format!(
        "is required here: all calendars together have over {MAX_CANDIDATES} times to look at; ask for one at a time"
    );
    Operation::new("POST", "/v1/crm/bookings/availability", "findTimes", "Find free times")
        .about(
            "By the wall clock of each calendar, ready to be booked. What is listed can be booked, and what is not listed cannot. Nothing \
             is reserved, so that another booking may come first. It writes nothing and takes no `Idempotency-Key`.",
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
    write(Operation::new("POST", "/v1/crm/bookings", "createBooking", "Book a time"))
        .about(
            "One of the times that `/v1/crm/bookings/availability` lists. Of any number of requests for times of one coach that \
             overlap, buffers included, one is booked, whatever their calendars. A paid calendar is 409 `checkout_required`: the person \
             books and pays at `bookingUrl`.",
        )
        .body(schemas, "CreateBooking", BookingDraft::schema())
        .example(
            "booking",
            json!({ "leadId": CONTACT_ID, "calendarId": CALENDAR_ID, "date": "2026-11-23", "time": "09:30" }),
        )
        .answers(outcome(schemas, 201, "It is booked.", "booked", &booked()))
        .refuses([
            Problem::NotFound("calendar"),
            Problem::SlotUnavailable,
            Problem::CheckoutRequired(BOOKING_URL.to_owned()),
        ])
}

fn list(schemas: &mut Schemas) -> Operation {
    let answer = what_next(crm_page(schemas, "Bookings, by id.", "BookingPage", booking()), "/data/0");
    let list = Operation::new("GET", "/v1/crm/bookings", "listBookings", "List bookings").about(
        "Those that are not cancelled, past ones too. What a coach has entered privately takes time and is never listed.",
    );
    crm_list(list, answer)
}

fn reschedule(schemas: &mut Schemas) -> Operation {
    of_booking(Operation::new("PATCH", "/v1/crm/bookings/{id}", "rescheduleBooking", "Move a booking"))
        .about(
            "To another time of its calendar. It keeps the length and the pauses that it was made with, and has to fit with them. The time \
             that it has now changes nothing. Nothing is charged or refunded.",
        )
        .body(schemas, "RescheduleBooking", RescheduleDraft::schema())
        .example("booking", json!({ "leadId": CONTACT_ID, "date": "2026-11-23", "time": "11:00" }))
        .answers(outcome(schemas, 200, "It is moved.", "moved", &moved()))
        .refuses([Problem::NotFound("calendar"), Problem::SlotUnavailable])
}

fn cancel(schemas: &mut Schemas) -> Operation {
    of_booking(Operation::new("DELETE", "/v1/crm/bookings/{id}", "cancelBooking", "Cancel a booking"))
        .about(
            "Nothing is charged or refunded. Cancelling again changes nothing. The contact is named in the body, or in the query by clients \
             that send no body with DELETE. Either form is the same request to an idempotency key.",
        )
        .optional_body(schemas, "CancelBooking", CancelDraft::schema())
        .example("booking", json!({ "leadId": CONTACT_ID }))
        .in_query("leadId", uuid(), "The contact that the booking is with, where there is no body. With one, it has to be the same.")
        .answers(outcome(schemas, 200, "It is cancelled.", "cancelled", &cancelled()))
        .refuses([invalid("leadId", "must be the same in the body and in the query")])
}

/// A write about a contact.
fn write(operation: Operation) -> Operation {
    operation.once().refuses([
        invalid("leadId", InvalidUuid),
        Problem::NotFound("contact"),
        Problem::ContactMerged(merged_into()),
    ])
}

fn of_booking(operation: Operation) -> Operation {
    of_record(write(operation), "The booking's id.", BOOKING_ID)
        .refuses([Problem::NotFound("booking"), Problem::BookingNotActive])
}

/// The answer to a write.
fn outcome(schemas: &mut Schemas, status: u16, about: &'static str, name: &str, example: &BookingOutcome) -> Answer {
    what_next(Answer::of(schemas, status, about, name, example), "/booking")
}

/// Links to the operations on the booking at this place of an answer.
fn what_next(answer: Answer, place: &str) -> Answer {
    answer.link_with_body(
        &["rescheduleBooking", "cancelBooking"],
        json!({ "id": format!("$response.body#{place}/id") }),
        json!({ "leadId": format!("$response.body#{place}/leadId") }),
    )
}
