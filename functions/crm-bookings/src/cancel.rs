//! `DELETE /v1/crm/bookings/{id}`: cancels a booking. Nothing is refunded or charged. The contact is in the body, or in
//! the query for clients that send no body with DELETE.

use std::borrow::Cow;

use domain::booking::{self, BookingOutcome, BookingRefusal, CancelDraft};
use domain::change::Change;
use domain::fields::Invalid;
use domain::id::CalendarEntryId;
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use serde_json::{Value, json};
use store::booking::ChangeRead;

use crate::App;
use crate::render::{booking_event, booking_view, problem_of};

const LEAD: &str = "leadId";

/// The body, with the contact of the query if the body names none. The two must not contradict each other.
fn request_body(inbound: &Inbound) -> Result<Value, Problem> {
    let mut body = if inbound.is_bodiless() { json!({}) } else { crm::body(inbound)?.clone() };
    let Some(lead) = inbound.query(LEAD).filter(|lead| !lead.is_empty()) else { return Ok(body) };
    match body.get(LEAD) {
        None => body[LEAD] = json!(lead),
        Some(named) if named.as_str().is_some_and(|named| named.eq_ignore_ascii_case(&lead)) => {}
        Some(_) => return Err(Invalid::field(LEAD, "must be the same in the body and in the query").into()),
    }
    Ok(body)
}

pub(crate) struct Cancel;

impl Command for Cancel {
    type App = App;
    type Caller = CrmCaller;
    type Snapshot = ChangeRead;

    /// The payload is the same in either form. A contradiction has a payload of its own.
    fn payload(inbound: &Inbound) -> Cow<'_, Value> {
        match (request_body(inbound), inbound.query(LEAD)) {
            (Ok(body), _) => Cow::Owned(body),
            (Err(_), None) => inbound.payload(),
            (Err(_), Some(query)) => Cow::Owned(json!([inbound.payload(), query])),
        }
    }

    async fn read(app: &App, caller: &CrmCaller, inbound: &Inbound) -> Result<Self::Snapshot, Problem> {
        let booking = crm::path_id(inbound, CalendarEntryId::parse)?;
        let draft = CancelDraft::parse(&request_body(inbound)?)?;
        Ok(app.bookings.read_change(&caller.coach, booking, draft.lead_id, None).await?)
    }

    fn decide(app: &App, caller: &CrmCaller, read: &Self::Snapshot) -> Result<Decision, Problem> {
        let event = read.event.as_ref().map(|found| &found.event);
        booking::cancel(read.lead.lead(), event, caller.now).map_err(problem_of)?;
        let found = read.event.as_ref().ok_or_else(|| problem_of(BookingRefusal::UnknownBooking))?;
        let lead = crm::live(&read.lead)?.contact().id;
        let cancelled = found.event.cancelled(caller.now);
        let view = booking_view(cancelled.as_ref().unwrap_or(&found.event), &read.calendars, caller)?;
        let change =
            cancelled.as_ref().map(|event| Change::booking_cancelled(&caller.coach, &view, event.last_written_at()));
        let emitted = match &cancelled {
            Some(event) => booking_event(caller, (lead, &read.lead), Some(&found.event), event, &read.calendars)?,
            None => None,
        };
        let writes = cancelled.map(|event| app.bookings.change(&caller.coach, lead, found, read, &event));
        let reply = Reply::ok(&BookingOutcome::of(view))?;
        Ok(Decision::reply(About::Contact(&caller.coach, lead), reply)
            .write(writes.into_iter().flatten())
            .change(change)
            .events(emitted))
    }
}
