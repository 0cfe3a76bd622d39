//! `PATCH /v1/crm/opportunities/{id}`: a name, a value or a place in the pipeline that the coach configured.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::id::OpportunityId;
use domain::opportunity::{OpportunityPatch, OpportunityRefusal, OpportunityResult, apply};
use domain::pipeline::Pipeline;
use edge::crm::{Attempt, Attempted, Write};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use store::StoreError;
use store::opportunity::StoredOpportunity;

use crate::{App, NOT_CONFIGURED};

const OPPORTUNITY: &str = "opportunity";

pub(crate) async fn update(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Update(&app)).await
}

struct Update<'a>(&'a App);

/// The opportunity that a request names, and the change that it asks for.
pub(crate) struct Asked {
    opportunity: OpportunityId,
    patch: OpportunityPatch,
}

/// The opportunity as it is, and the pipeline that the coach configured.
pub(crate) struct Found {
    opportunity: Option<StoredOpportunity>,
    pipeline: Option<Pipeline>,
}

impl Write for Update<'_> {
    type Request = Asked;
    type Found = Found;

    fn parse(&self, inbound: &Inbound) -> Result<Asked, Problem> {
        let opportunity = crm::path_id(inbound, OpportunityId::parse)?;
        Ok(Asked { opportunity, patch: OpportunityPatch::parse(crm::body(inbound)?)? })
    }

    async fn read(&self, caller: &CrmCaller, asked: &Asked) -> Result<Found, StoreError> {
        let opportunity = self.0.opportunities.get(&caller.coach, asked.opportunity);
        let pipeline = self.0.pipelines.get(&caller.coach, &caller.crm.pipeline_id);
        let (opportunity, pipeline) = try_join(opportunity, pipeline).await?;
        Ok(Found { opportunity, pipeline })
    }

    async fn attempt(&self, attempt: &Attempt<'_>, asked: &Asked, found: Found) -> Result<Attempted, Problem> {
        let caller = attempt.caller;
        let Some(pipeline) = found.pipeline else { return Ok(NOT_CONFIGURED) };
        let found = found.opportunity.ok_or(Problem::NotFound(OPPORTUNITY))?;
        let changed = apply(&found.opportunity, &pipeline, &asked.patch, caller.now)
            .map_err(|refusal| refused(refusal, &pipeline))?;
        let view = changed.view(Some(&pipeline));
        // No change is emitted if the API has set the same before.
        let is_news = changed.updated_at != found.opportunity.updated_at;
        let change = is_news.then(|| Change::opportunity_updated(&caller.coach, &view));
        let reply = Reply::ok(&OpportunityResult { opportunity: view })?;
        let write = attempt.leaving(changed.contact_id, &reply, change);
        let committed = self.0.opportunities.change(&found, &changed, &write).await?;
        Ok(Attempted::Committed { committed, reply })
    }
}

/// The problem of a refusal.
fn refused(refusal: OpportunityRefusal, pipeline: &Pipeline) -> Problem {
    match refusal {
        OpportunityRefusal::NotFound => Problem::NotFound(OPPORTUNITY),
        OpportunityRefusal::StagePaymentControlled => Problem::StagePaymentControlled,
        OpportunityRefusal::StageUnknown => Problem::StageUnknown(pipeline.selectable_stages()),
        OpportunityRefusal::LostReasonRequired => Problem::LostReasonRequired,
        OpportunityRefusal::LostReasonNotAllowed => Problem::LostReasonNotAllowed,
    }
}
