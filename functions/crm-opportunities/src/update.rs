//! `PATCH /v1/crm/opportunities/{id}`: a name, a value or a place in the pipeline that the coach configured, once per idempotency key.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::id::OpportunityId;
use domain::opportunity::{OpportunityPatch, OpportunityResult, Refusal, apply};
use domain::pipeline::Pipeline;
use edge::idempotency::Outcome;
use edge::inbound::PathParameter;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use store::StoreError;
use store::claim::Claim;
use store::contact::Telling;
use store::opportunity::{StoredOpportunity, Written};

use crate::App;

/// What a change rests on: the opportunity as it is, and where it may go.
type Read = (Option<StoredOpportunity>, Option<Pipeline>);

const OPPORTUNITY: &str = "opportunity";

pub(crate) async fn update(State(app): State<App>, PathParameter(id): PathParameter, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::OpportunitiesWrite).await;
    let work = async |caller: CrmCaller, ()| {
        let id = crm::path_id(&id, OpportunityId::parse);
        let known = id.as_ref().ok().copied();
        let read = async {
            let found = async {
                match known {
                    Some(id) => app.opportunities.get(&caller.coach, id).await,
                    None => Ok(None),
                }
            };
            try_join(found, app.pipelines.get(&caller.coach, &caller.crm.pipeline_id)).await
        };
        let work = async |claim: Claim, read: Result<Read, StoreError>| {
            let id = id?;
            let patch = OpportunityPatch::parse(&crm::body(&inbound)?)?;
            settle(&app, &caller, (id, &patch), &claim, read?).await
        };
        crm::write(&app.claims, &inbound, &caller, read, work).await
    };
    app.gate.answer(&inbound, admission, work).await
}

async fn settle(
    app: &App,
    caller: &CrmCaller,
    (id, patch): (OpportunityId, &OpportunityPatch),
    claim: &Claim,
    (mut found, pipeline): Read,
) -> Result<Outcome, Problem> {
    let pipeline = pipeline.ok_or(Problem::CrmNotConfigured)?;
    let mut round = 0;
    loop {
        let stored = found.ok_or(Problem::NotFound(OPPORTUNITY))?;
        let changed = apply(&stored.opportunity, &pipeline, patch, caller.now).map_err(problem)?;
        let view = changed.view(Some(&pipeline));
        let reply = Reply::ok(&OpportunityResult { opportunity: view.clone() })?;
        let answer = reply.to_answer();
        let telling = Telling { outbox: &app.outbox, claims: &app.claims, claim, answer: &answer };
        match app.opportunities.change(&caller.coach, &stored, (&changed, &view), &telling, caller.now).await? {
            Written::Done => return Ok(Outcome::Recorded(reply)),
            Written::ClaimLost => return Err(Problem::IdempotencyInProgress),
            Written::Moved => {
                round += 1;
                found = app.opportunities.get_again(&caller.coach, id, round).await?;
            }
        }
    }
}

fn problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::NotFound => Problem::NotFound(OPPORTUNITY),
        Refusal::StagePaymentControlled => Problem::StagePaymentControlled,
        Refusal::StageUnknown => Problem::StageUnknown,
        Refusal::LostReasonRequired => Problem::LostReasonRequired,
        Refusal::LostReasonNotAllowed => Problem::LostReasonNotAllowed,
    }
}
