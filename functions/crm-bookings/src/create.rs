//! `POST /v1/crm/bookings`: books a slot, if the calendar offers it.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::booking::{self, BookingDraft, BookingOutcome, CalendarEvent, Refusal};
use domain::id::{CalendarEventId, new_uuid};
use domain::outgoing::OutgoingFact;
use edge::idempotency::Outcome;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use store::StoreError;
use store::booking::{BookingRead, Committed, MAX_ROUNDS, Write};
use store::claim::Claim;

use crate::App;
use crate::write::{kept_changing, refused};

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::BookingsWrite).await;
    let work = async |caller: CrmCaller, ()| {
        let first = async {
            let draft = BookingDraft::parse(&crm::body(&inbound)?)?;
            let found = read(&app, &caller, &draft, 0).await?;
            Ok::<_, Problem>((draft, found))
        };
        let work = async |claim: Claim, first: Result<(BookingDraft, BookingRead), Problem>| {
            let (draft, found) = first?;
            book(&app, &caller, &draft, &claim, found).await
        };
        crm::write(&app.claims, &inbound, &caller, first, work).await
    };
    app.gate.answer(&inbound, admission, work).await
}

async fn read(app: &App, caller: &CrmCaller, draft: &BookingDraft, round: u32) -> Result<BookingRead, StoreError> {
    app.bookings.read_booking(&caller.coach, (draft.lead_id, draft.calendar_id), draft.date, round).await
}

async fn book(
    app: &App,
    caller: &CrmCaller,
    draft: &BookingDraft,
    claim: &Claim,
    mut found: BookingRead,
) -> Result<Outcome, Problem> {
    let id = CalendarEventId(new_uuid(caller.now.ms(), random_bytes()));
    for round in 1..=MAX_ROUNDS {
        let calendar = found.calendar.as_ref().map(|found| &found.calendar);
        let busy = booking::create(draft, found.lead, calendar, &found.busy.all(), caller.now).map_err(refused)?;
        let zone = calendar.map_or(caller.time_zone, |calendar| calendar.time_zone);
        let event = CalendarEvent::booked(id, draft, &busy, caller.now);
        let view = event.view(zone).ok_or_else(|| refused(Refusal::UnknownBooking))?;
        let fact = OutgoingFact::booking_created(&caller.coach, &view);
        let reply = Reply::created(&BookingOutcome::of(view))?;
        let answer = reply.to_answer();
        let claim = (&app.claims, claim, &answer);
        let write = Write { coach: &caller.coach, lead: draft.lead_id, fact, claim, now: caller.now };
        match app.bookings.book(&found, &event, &write).await? {
            Committed::Done => return Ok(Outcome::Recorded(reply)),
            Committed::ClaimLost => return Err(Problem::IdempotencyInProgress),
            Committed::Changed => found = read(app, caller, draft, round).await?,
        }
    }
    Err(kept_changing())
}
