//! `POST /v1/crm/contacts`: makes a contact, or finds the one that has the address and leaves it as it is.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::contact::{ContactDraft, KnownContact};
use domain::id::{ContactId, new_uuid};
use domain::idempotency::RETENTION;
use edge::gate::CrmCaller;
use edge::idempotency::Outcome;
use edge::{Inbound, Problem, Reply, crm};
use runtime::random_bytes;
use store::StoreError;
use store::claim::Claim;
use store::contact::{Created, StoredContact};
use store::contact_ref::ContactRef;

use crate::{App, MAX_ROUNDS, kept_changing, shown};

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::ContactsWrite).await;
    let work = async |caller: CrmCaller, ()| {
        let draft = crm::body(&inbound).and_then(|body| Ok(ContactDraft::parse(&body)?));
        let wanted = draft.as_ref().ok().map(|draft| draft.email.key());
        let read = async {
            match &wanted {
                Some(email) => app.contacts.with_email(&caller.coach, email).await,
                None => Ok(None),
            }
        };
        let work = async |claim: Claim, found: Result<Option<StoredContact>, StoreError>| {
            create_or_match(&app, &caller, &draft?, &claim, found?).await
        };
        crm::write(&app.claims, &inbound, &caller, read, work).await
    };
    app.gate.answer(&inbound, admission, work).await
}

async fn create_or_match(
    app: &App,
    caller: &CrmCaller,
    draft: &ContactDraft,
    claim: &Claim,
    found: Option<StoredContact>,
) -> Result<Outcome, Problem> {
    let (coach, now) = (&caller.coach, caller.now);
    let mut found = found;
    for _ in 0..MAX_ROUNDS {
        if let Some(found) = &found {
            return matched(app, caller, claim, found).await;
        }
        let id = ContactId(new_uuid(now.ms(), random_bytes()));
        let made = KnownContact::create(id, draft, now);
        let reply = shown(&made.contact, Reply::created)?;
        match app.contacts.create(coach, &made, &app.telling(claim, &reply.to_answer()), now).await? {
            Created::Done => return Ok(Outcome::Recorded(reply)),
            Created::ClaimLost => return Err(Problem::IdempotencyInProgress),
            Created::EmailTaken => found = app.contacts.with_email(coach, &draft.email.key()).await?,
        }
    }
    Err(kept_changing())
}

/// Nothing is written but the answer, which shows the contact: who erases that one finds it.
async fn matched(app: &App, caller: &CrmCaller, claim: &Claim, found: &StoredContact) -> Result<Outcome, Problem> {
    let reply = shown(found.contact(), Reply::created)?;
    let about = ContactRef::new(&caller.coach, found.contact().id);
    match app.claims.finish(claim, &reply.to_answer(), Some(&about), RETENTION, caller.now).await? {
        true => Ok(Outcome::Recorded(reply)),
        false => Err(Problem::IdempotencyInProgress),
    }
}
