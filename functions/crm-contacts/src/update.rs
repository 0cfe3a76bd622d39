//! `PATCH /v1/crm/contacts/{id}`: a new name, or the suppression, which is not lifted here.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::contact::ContactPatch;
use domain::id::ContactId;
use edge::gate::CrmCaller;
use edge::idempotency::Outcome;
use edge::inbound::PathParameter;
use edge::{Inbound, Problem, Reply, crm};
use store::StoreError;
use store::claim::Claim;
use store::contact::{Changed, Standing};

use crate::{App, MAX_ROUNDS, kept_changing, shown};

pub(crate) async fn update(State(app): State<App>, PathParameter(id): PathParameter, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::ContactsWrite).await;
    let work = async |caller: CrmCaller, ()| {
        let named = ContactId::parse(&id).ok();
        let read = async {
            match named {
                Some(id) => app.contacts.standing(&caller.coach, id).await,
                None => Ok(Standing::Unknown),
            }
        };
        let work = async |claim: Claim, found: Result<Standing, StoreError>| {
            let id = crm::path_id(&id, ContactId::parse)?;
            let patch = ContactPatch::parse(&crm::body(&inbound)?)?;
            change(&app, &caller, (id, &patch), &claim, found?).await
        };
        crm::write(&app.claims, &inbound, &caller, read, work).await
    };
    app.gate.answer(&inbound, admission, work).await
}

async fn change(
    app: &App,
    caller: &CrmCaller,
    (id, patch): (ContactId, &ContactPatch),
    claim: &Claim,
    found: Standing,
) -> Result<Outcome, Problem> {
    let (coach, now) = (&caller.coach, caller.now);
    let mut found = found;
    for _ in 0..MAX_ROUNDS {
        let stored = match found {
            Standing::Live(stored) => stored,
            Standing::Merged { into } => return Err(Problem::ContactMerged(into)),
            Standing::Unknown | Standing::Erased => return Err(Problem::NotFound("contact")),
        };
        let changed = stored.known.change(patch, now);
        let reply = shown(&changed.contact, Reply::ok)?;
        let answer = reply.to_answer();
        match app.contacts.change(coach, &stored, &changed, &app.telling(claim, &answer), now).await? {
            Changed::Done => return Ok(Outcome::Recorded(reply)),
            Changed::ClaimLost => return Err(Problem::IdempotencyInProgress),
            Changed::Moved => found = app.contacts.standing(coach, id).await?,
        }
    }
    Err(kept_changing())
}
