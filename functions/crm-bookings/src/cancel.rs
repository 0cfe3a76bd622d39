//! `DELETE /v1/crm/bookings/{id}`: cancels a booking. Nothing is refunded or charged. The contact is named in the body,
//! or in the query by clients that send no body with DELETE.

use std::borrow::Cow;

use axum::extract::State;
use axum::response::Response;
use domain::booking::{self, BookingOutcome, BookingRefusal, CancelDraft};
use domain::change::Change;
use domain::fields::Invalid;
use domain::id::CalendarEventId;
use edge::crm::{Attempt, Attempted, Write};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use serde_json::{Value, json};
use store::StoreError;
use store::booking::ChangeRead;

use crate::App;
use crate::told::{refused, shown};

pub(crate) async fn cancel(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Cancel(&app)).await
}

const LEAD: &str = "leadId";

/// The body, with the contact of the query if the body names none. The two must not contradict each other.
fn asked(inbound: &Inbound) -> Result<Value, Problem> {
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

/// The booking that a request names, and the contact that it names.
pub(crate) struct Cancellation {
    booking: CalendarEventId,
    draft: CancelDraft,
}

impl Write for Cancel<'_> {
    type Request = Cancellation;
    type Found = ChangeRead;

    /// The payload is the same in either form. A contradiction has a payload of its own.
    fn payload<'a>(&self, inbound: &'a Inbound) -> Cow<'a, Value> {
        match (asked(inbound), inbound.query(LEAD)) {
            (Ok(body), _) => Cow::Owned(body),
            (Err(_), None) => inbound.payload(),
            (Err(_), Some(query)) => Cow::Owned(json!([inbound.payload(), query])),
        }
    }

    fn parse(&self, inbound: &Inbound) -> Result<Cancellation, Problem> {
        let booking = crm::path_id(inbound, CalendarEventId::parse)?;
        Ok(Cancellation { booking, draft: CancelDraft::parse(&asked(inbound)?)? })
    }

    async fn read(&self, caller: &CrmCaller, asked: &Cancellation) -> Result<ChangeRead, StoreError> {
        self.0.bookings.read_change(&caller.coach, asked.booking, asked.draft.lead_id, None).await
    }

    async fn attempt(
        &self,
        attempt: &Attempt<'_>,
        asked: &Cancellation,
        found: ChangeRead,
    ) -> Result<Attempted, Problem> {
        let caller = attempt.caller;
        let event = found.event.as_ref().map(|found| &found.event);
        booking::cancel(found.lead, event, caller.now).map_err(refused)?;
        let event = event.ok_or_else(|| refused(BookingRefusal::UnknownBooking))?;
        let cancelled = event.cancelled(caller.now);
        let shows = cancelled.as_ref().unwrap_or(event);
        let view = shown(shows, &found.calendars, caller)?;
        let change = Change::booking_cancelled(&caller.coach, &view, shows.last_written_at());
        let reply = Reply::ok(&BookingOutcome::of(view))?;
        let committed = match cancelled {
            Some(cancelled) => {
                let write = attempt.leaving(asked.draft.lead_id, &reply, Some(change));
                self.0.bookings.change(&found, &cancelled, &write).await?
            }
            None => attempt.leaving(asked.draft.lead_id, &reply, None).answer_alone().await?,
        };
        Ok(Attempted::Committed { committed, reply })
    }
}
