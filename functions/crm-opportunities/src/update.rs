//! `PATCH /v1/crm/opportunities/{id}`: sets the name, the value or the stage of an opportunity.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::id::OpportunityId;
use domain::opportunity::{OpportunityPatch, OpportunityRefusal, OpportunityResult, apply};
use domain::pipeline::Pipeline;
use edge::crm::{Write, WriteContext, WriteResult};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use store::StoreError;
use store::opportunity::StoredOpportunity;

use crate::App;
use crate::create::NOT_CONFIGURED;

const OPPORTUNITY: &str = "opportunity";

pub(crate) async fn update(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Update(&app)).await
}

struct Update<'a>(&'a App);

/// The opportunity that a request names, and its patch.
pub(crate) struct OpportunityUpdate {
    opportunity: OpportunityId,
    patch: OpportunityPatch,
}

/// The records that decide the update: the opportunity and the configured pipeline.
pub(crate) struct UpdateRead {
    opportunity: Option<StoredOpportunity>,
    pipeline: Option<Pipeline>,
}

impl Write for Update<'_> {
    type Request = OpportunityUpdate;
    type Found = UpdateRead;

    fn parse(&self, inbound: &Inbound) -> Result<OpportunityUpdate, Problem> {
        let opportunity = crm::path_id(inbound, OpportunityId::parse)?;
        Ok(OpportunityUpdate { opportunity, patch: OpportunityPatch::parse(crm::body(inbound)?)? })
    }

    async fn read(&self, caller: &CrmCaller, update: &OpportunityUpdate) -> Result<UpdateRead, StoreError> {
        let opportunity = self.0.opportunities.get(&caller.coach, update.opportunity);
        let pipeline = self.0.pipelines.get(&caller.coach, &caller.crm.pipeline_id);
        let (opportunity, pipeline) = try_join(opportunity, pipeline).await?;
        Ok(UpdateRead { opportunity, pipeline })
    }

    async fn commit(
        &self,
        context: &WriteContext<'_>,
        update: &OpportunityUpdate,
        found: UpdateRead,
    ) -> Result<WriteResult, Problem> {
        let caller = context.caller;
        let Some(pipeline) = found.pipeline else { return Ok(NOT_CONFIGURED) };
        let found = found.opportunity.ok_or(Problem::NotFound(OPPORTUNITY))?;
        let changed = apply(&found.opportunity, &pipeline, &update.patch, caller.now)
            .map_err(|refusal| problem_of(refusal, &pipeline))?;
        let view = changed.view(Some(&pipeline));
        // Repeating the API's own update emits no change.
        let is_change = changed.updated_at != found.opportunity.updated_at;
        let change = is_change.then(|| Change::opportunity_updated(&caller.coach, &view));
        let reply = Reply::ok(&OpportunityResult { opportunity: view })?;
        let write = context.crm_write(changed.contact_id, &reply, change);
        let committed = self.0.opportunities.change(&found, &changed, &write).await?;
        Ok(WriteResult::Committed { committed, reply })
    }
}

/// The problem of a refusal.
fn problem_of(refusal: OpportunityRefusal, pipeline: &Pipeline) -> Problem {
    match refusal {
        OpportunityRefusal::NotFound => Problem::NotFound(OPPORTUNITY),
        OpportunityRefusal::StagePaymentControlled => Problem::StagePaymentControlled,
        OpportunityRefusal::StageUnknown => Problem::StageUnknown(pipeline.selectable_stages()),
        OpportunityRefusal::LostReasonRequired => Problem::LostReasonRequired,
        OpportunityRefusal::LostReasonNotAllowed => Problem::LostReasonNotAllowed,
    }
}
