//! `DELETE /v1/crm/bookings/{id}`: cancels a booking. Nothing is refunded or charged.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::booking::{self, BookingOutcome, CancelDraft, Cancellation};
use domain::id::CalendarEventId;
use domain::outgoing::OutgoingFact;
use edge::idempotency::Outcome;
use edge::inbound::PathParameter;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use store::StoreError;
use store::booking::{ChangeRead, Committed, MAX_ROUNDS, Write};
use store::claim::Claim;

use crate::App;
use crate::write::{kept_changing, refused, shown, unchanged};

pub(crate) async fn cancel(State(app): State<App>, PathParameter(id): PathParameter, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::BookingsWrite).await;
    let work = async |caller: CrmCaller, ()| {
        let first = async {
            let id = crm::path_id(&id, CalendarEventId::parse)?;
            let request = (id, CancelDraft::parse(&crm::body(&inbound)?)?);
            let found = read(&app, &caller, &request, 0).await?;
            Ok::<_, Problem>((request, found))
        };
        let work = async |claim: Claim, first: Result<(Request, ChangeRead), Problem>| {
            let (request, found) = first?;
            settle(&app, &caller, &request, &claim, found).await
        };
        crm::write(&app.claims, &inbound, &caller, first, work).await
    };
    app.gate.answer(&inbound, admission, work).await
}

/// Which booking is to be cancelled.
type Request = (CalendarEventId, CancelDraft);

async fn read(app: &App, caller: &CrmCaller, (id, draft): &Request, round: u32) -> Result<ChangeRead, StoreError> {
    app.bookings.read_change(&caller.coach, (*id, draft.lead_id), None, round).await
}

async fn settle(
    app: &App,
    caller: &CrmCaller,
    request: &Request,
    claim: &Claim,
    mut found: ChangeRead,
) -> Result<Outcome, Problem> {
    let lead = request.1.lead_id;
    for round in 1..=MAX_ROUNDS {
        let event = found.event.as_ref().map(|found| &found.event);
        let due = booking::cancel(found.lead, event, caller.now).map_err(refused)?;
        let Some(event) = event else { return Err(Problem::NotFound("booking")) };
        if due == Cancellation::Done {
            let reply = Reply::ok(&BookingOutcome::of(shown(event, &found, caller)?))?;
            return unchanged(app, caller, lead, claim, reply).await;
        }
        let event = event.cancelled(caller.now);
        let view = shown(&event, &found, caller)?;
        let fact = OutgoingFact::booking_cancelled(&caller.coach, &view);
        let reply = Reply::ok(&BookingOutcome::of(view))?;
        let answer = reply.to_answer();
        let claim = (&app.claims, claim, &answer);
        let write = Write { coach: &caller.coach, lead, fact, claim, now: caller.now };
        match app.bookings.change(&found, &event, &write).await? {
            Committed::Done => return Ok(Outcome::Recorded(reply)),
            Committed::ClaimLost => return Err(Problem::IdempotencyInProgress),
            Committed::Changed => found = read(app, caller, request, round).await?,
        }
    }
    Err(kept_changing())
}
