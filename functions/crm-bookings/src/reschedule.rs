//! `PATCH /v1/crm/bookings/{id}`: moves a booking to another slot of its calendar.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::booking::{self, BookingOutcome, Move, RescheduleDraft};
use domain::id::CalendarEventId;
use domain::outgoing::OutgoingFact;
use edge::idempotency::Outcome;
use edge::inbound::PathParameter;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use store::StoreError;
use store::booking::{ChangeRead, Committed, MAX_ROUNDS, Write};
use store::calendar::{find, zone_of};
use store::claim::Claim;

use crate::App;
use crate::write::{kept_changing, refused, shown, unchanged};

pub(crate) async fn reschedule(State(app): State<App>, PathParameter(id): PathParameter, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::BookingsWrite).await;
    let work = async |caller: CrmCaller, ()| {
        let first = async {
            let id = crm::path_id(&id, CalendarEventId::parse)?;
            let request = (id, RescheduleDraft::parse(&crm::body(&inbound)?)?);
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

/// Which booking is to go where.
type Request = (CalendarEventId, RescheduleDraft);

async fn read(app: &App, caller: &CrmCaller, (id, draft): &Request, round: u32) -> Result<ChangeRead, StoreError> {
    app.bookings.read_change(&caller.coach, (*id, draft.lead_id), Some(draft.date), round).await
}

async fn settle(
    app: &App,
    caller: &CrmCaller,
    request: &Request,
    claim: &Claim,
    mut found: ChangeRead,
) -> Result<Outcome, Problem> {
    let draft = &request.1;
    for round in 1..=MAX_ROUNDS {
        let to = decide(&found, request, caller)?;
        let Some(event) = found.event.as_ref().map(|found| &found.event) else {
            return Err(Problem::NotFound("booking"));
        };
        let previous = event.span.starts_at;
        let Move::To(busy) = to else {
            let reply = Reply::ok(&BookingOutcome::moved_from(shown(event, &found, caller)?, previous))?;
            return unchanged(app, caller, draft.lead_id, claim, reply).await;
        };
        let event = event.moved(&busy, caller.now);
        let view = shown(&event, &found, caller)?;
        let fact = OutgoingFact::booking_rescheduled(&caller.coach, &view, previous);
        let reply = Reply::ok(&BookingOutcome::moved_from(view, previous))?;
        let answer = reply.to_answer();
        let claim = (&app.claims, claim, &answer);
        let write = Write { coach: &caller.coach, lead: draft.lead_id, fact, claim, now: caller.now };
        match app.bookings.change(&found, &event, &write).await? {
            Committed::Done => return Ok(Outcome::Recorded(reply)),
            Committed::ClaimLost => return Err(Problem::IdempotencyInProgress),
            Committed::Changed => found = read(app, caller, request, round).await?,
        }
    }
    Err(kept_changing())
}

fn decide(found: &ChangeRead, (id, draft): &Request, caller: &CrmCaller) -> Result<Move, Problem> {
    let event = found.event.as_ref().map(|found| &found.event);
    let on = event.and_then(|event| event.calendar_id);
    let calendar = find(&found.calendars, on).map(|found| &found.calendar);
    let zone = zone_of(&found.calendars, on, caller.time_zone);
    let others = found.busy.without(*id);
    booking::reschedule(draft, found.lead, event, (calendar, zone), &others, caller.now).map_err(refused)
}
