//! `PATCH /v1/crm/opportunities/{id}`: a name, a value or a place in the pipeline that the coach configured.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::change::Change;
use domain::id::OpportunityId;
use domain::opportunity::{OpportunityPatch, OpportunityResult, Refusal, apply};
use domain::pipeline::Pipeline;
use edge::crm::{Attempt, Write};
use edge::inbound::PathParameter;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use store::StoreError;
use store::crm_write::Committed;
use store::opportunity::StoredOpportunity;

use crate::App;

const OPPORTUNITY: &str = "opportunity";

pub(crate) async fn update(State(app): State<App>, PathParameter(id): PathParameter, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::OpportunitiesWrite).await;
    let work = async |caller: CrmCaller, ()| app.writer.write(&inbound, &caller, &Update { app: &app, id: &id }).await;
    app.gate.answer(&inbound, admission, work).await
}

struct Update<'a> {
    app: &'a App,
    id: &'a str,
}

impl Write for Update<'_> {
    type Request = (OpportunityId, OpportunityPatch);
    /// The opportunity as it is, and where it may go.
    type Found = (Option<StoredOpportunity>, Option<Pipeline>);

    fn parse(&self, inbound: &Inbound) -> Result<Self::Request, Problem> {
        Ok((crm::path_id(self.id, OpportunityId::parse)?, OpportunityPatch::parse(&crm::body(inbound)?)?))
    }

    async fn read(&self, caller: &CrmCaller, (id, _): &Self::Request) -> Result<Self::Found, StoreError> {
        let found = self.app.opportunities.get(&caller.coach, *id);
        try_join(found, self.app.pipelines.get(&caller.coach, &caller.crm.pipeline_id)).await
    }

    async fn attempt(
        &self,
        attempt: &Attempt<'_>,
        (_, patch): &Self::Request,
        (found, pipeline): Self::Found,
    ) -> Result<(Committed, Reply), Problem> {
        let caller = attempt.caller;
        let pipeline = pipeline.ok_or(Problem::CrmNotConfigured)?;
        let found = found.ok_or(Problem::NotFound(OPPORTUNITY))?;
        let changed =
            apply(&found.opportunity, &pipeline, patch, caller.now).map_err(|refusal| refused(refusal, &pipeline))?;
        let view = changed.view(Some(&pipeline));
        // What only says anew what the API has said is not told.
        let is_news = changed.updated_at != found.opportunity.updated_at;
        let change = is_news.then(|| Change::opportunity_updated(&caller.coach, &view));
        let reply = Reply::ok(&OpportunityResult { opportunity: view })?;
        let write = attempt.leaving(changed.contact_id, &reply, change);
        Ok((self.app.opportunities.change(&found, &changed, &write).await?, reply))
    }
}

/// A refusal as it is told.
fn refused(refusal: Refusal, pipeline: &Pipeline) -> Problem {
    match refusal {
        Refusal::NotFound => Problem::NotFound(OPPORTUNITY),
        Refusal::StagePaymentControlled => Problem::StagePaymentControlled,
        Refusal::StageUnknown => Problem::StageUnknown(pipeline.open_to_choice()),
        Refusal::LostReasonRequired => Problem::LostReasonRequired,
        Refusal::LostReasonNotAllowed => Problem::LostReasonNotAllowed,
    }
}
