//! `DELETE /v1/crm/bookings/{id}`: cancels a booking. Nothing is refunded or charged. The contact is in the body, or in
//! the query for clients that send no body with DELETE.

use std::borrow::Cow;

use axum::extract::State;
use axum::response::Response;
use domain::booking::{self, BookingOutcome, BookingRefusal, CancelDraft};
use domain::change::Change;
use domain::fields::Invalid;
use domain::id::CalendarEventId;
use edge::crm::{Write, WriteContext, WriteResult};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use serde_json::{Value, json};
use store::StoreError;
use store::booking::ChangeRead;

use crate::App;
use crate::render::{booking_view, problem_of};

pub(crate) async fn cancel(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Cancel(&app)).await
}

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

struct Cancel<'a>(&'a App);

/// The booking and the contact that a request names.
pub(crate) struct Cancellation {
    booking: CalendarEventId,
    draft: CancelDraft,
}

impl Write for Cancel<'_> {
    type Request = Cancellation;
    type Found = ChangeRead;

    /// The payload is the same in either form. A contradiction has a payload of its own.
    fn payload<'a>(&self, inbound: &'a Inbound) -> Cow<'a, Value> {
        match (request_body(inbound), inbound.query(LEAD)) {
            (Ok(body), _) => Cow::Owned(body),
            (Err(_), None) => inbound.payload(),
            (Err(_), Some(query)) => Cow::Owned(json!([inbound.payload(), query])),
        }
    }

    fn parse(&self, inbound: &Inbound) -> Result<Cancellation, Problem> {
        let booking = crm::path_id(inbound, CalendarEventId::parse)?;
        Ok(Cancellation { booking, draft: CancelDraft::parse(&request_body(inbound)?)? })
    }

    async fn read(&self, caller: &CrmCaller, cancellation: &Cancellation) -> Result<ChangeRead, StoreError> {
        self.0.bookings.read_change(&caller.coach, cancellation.booking, cancellation.draft.lead_id, None).await
    }

    async fn commit(
        &self,
        context: &WriteContext<'_>,
        cancellation: &Cancellation,
        found: ChangeRead,
    ) -> Result<WriteResult, Problem> {
        let caller = context.caller;
        let event = found.event.as_ref().map(|found| &found.event);
        booking::cancel(found.lead, event, caller.now).map_err(problem_of)?;
        let event = event.ok_or_else(|| problem_of(BookingRefusal::UnknownBooking))?;
        let cancelled = event.cancelled(caller.now);
        let shown_event = cancelled.as_ref().unwrap_or(event);
        let view = booking_view(shown_event, &found.calendars, caller)?;
        let change = Change::booking_cancelled(&caller.coach, &view, shown_event.last_written_at());
        let reply = Reply::ok(&BookingOutcome::of(view))?;
        let committed = match cancelled {
            Some(cancelled) => {
                let write = context.crm_write(cancellation.draft.lead_id, &reply, Some(change));
                self.0.bookings.change(&found, &cancelled, &write).await?
            }
            None => context.crm_write(cancellation.draft.lead_id, &reply, None).answer_alone().await?,
        };
        Ok(WriteResult::Committed { committed, reply })
    }
}
