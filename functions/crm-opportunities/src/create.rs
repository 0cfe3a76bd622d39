//! `POST /v1/crm/opportunities`: an opportunity at the beginning of the pipeline that the coach configured, once per idempotency key.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::id::{OpportunityId, new_uuid};
use domain::opportunity::{Opportunity, OpportunityDraft, OpportunityResult};
use domain::pipeline::Pipeline;
use edge::idempotency::Outcome;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use runtime::random_bytes;
use store::StoreError;
use store::claim::Claim;
use store::contact::{Standing, Telling};
use store::opportunity::Written;

use crate::App;

/// What a creation rests on: who it is for, and where it goes.
type Read = (Standing, Option<Pipeline>);

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::OpportunitiesWrite).await;
    let work = async |caller: CrmCaller, ()| {
        let draft = crm::body(&inbound).and_then(|body| Ok(OpportunityDraft::parse(&body)?));
        let contact = draft.as_ref().ok().map(|draft| draft.contact_id);
        let read = async {
            let standing = async {
                match contact {
                    Some(contact) => app.contacts.standing(&caller.coach, contact).await,
                    None => Ok(Standing::Unknown),
                }
            };
            try_join(standing, app.pipelines.get(&caller.coach, &caller.crm.pipeline_id)).await
        };
        let work =
            async |claim: Claim, read: Result<Read, StoreError>| settle(&app, &caller, &draft?, &claim, read?).await;
        crm::write(&app.claims, &inbound, &caller, read, work).await
    };
    app.gate.answer(&inbound, admission, work).await
}

async fn settle(
    app: &App,
    caller: &CrmCaller,
    draft: &OpportunityDraft,
    claim: &Claim,
    (mut standing, pipeline): Read,
) -> Result<Outcome, Problem> {
    let pipeline = pipeline.ok_or(Problem::CrmNotConfigured)?;
    let stage = pipeline.initial_stage(&caller.crm.initial_stage).ok_or(Problem::CrmNotConfigured)?;
    let id = OpportunityId(new_uuid(caller.now.ms(), random_bytes()));
    loop {
        let contact = match &standing {
            Standing::Live(contact) => contact.contact(),
            Standing::Merged { into } => return Err(Problem::ContactMerged(*into)),
            Standing::Unknown | Standing::Erased => return Err(Problem::NotFound("contact")),
        };
        let made = Opportunity::create(id, draft, &contact.name, (&pipeline, stage), caller.now);
        let view = made.view(Some(&pipeline));
        let reply = Reply::created(&OpportunityResult { opportunity: view.clone() })?;
        let answer = reply.to_answer();
        let telling = Telling { outbox: &app.outbox, claims: &app.claims, claim, answer: &answer };
        match app.opportunities.create(&caller.coach, (&made, &view), &telling, caller.now).await? {
            Written::Done => return Ok(Outcome::Recorded(reply)),
            Written::ClaimLost => return Err(Problem::IdempotencyInProgress),
            // What is no longer live never is again: the next round is the last.
            Written::Moved => standing = app.contacts.standing(&caller.coach, draft.contact_id).await?,
        }
    }
}
