//! `POST /v1/crm/opportunities`: creates an opportunity in the initial stage of the configured pipeline.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::id::{OpportunityId, new_uuid};
use domain::opportunity::{Opportunity, OpportunityDraft, OpportunityResult};
use domain::pipeline::Pipeline;
use edge::crm::{Write, WriteContext, WriteResult};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use runtime::random_bytes;
use store::StoreError;
use store::contact::ContactState;

use crate::App;

/// The refusal if the configured pipeline or its initial stage is gone. In the order of checks the configuration comes
/// before the claim, so the refusal is not recorded.
pub(crate) const NOT_CONFIGURED: WriteResult = WriteResult::Withdrawn(Problem::CrmNotConfigured);

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Create(&app)).await
}

struct Create<'a>(&'a App);

/// The records that decide the creation: the contact and the configured pipeline.
pub(crate) struct CreateRead {
    contact: ContactState,
    pipeline: Option<Pipeline>,
}

impl Write for Create<'_> {
    type Request = OpportunityDraft;
    type Found = CreateRead;

    fn parse(&self, inbound: &Inbound) -> Result<OpportunityDraft, Problem> {
        Ok(OpportunityDraft::parse(crm::body(inbound)?)?)
    }

    async fn read(&self, caller: &CrmCaller, draft: &OpportunityDraft) -> Result<CreateRead, StoreError> {
        let Self(app) = self;
        let contact = app.contacts.state(&caller.coach, draft.contact_id);
        let (contact, pipeline) = try_join(contact, app.pipelines.get(&caller.coach, &caller.crm.pipeline_id)).await?;
        Ok(CreateRead { contact, pipeline })
    }

    async fn commit(
        &self,
        context: &WriteContext<'_>,
        draft: &OpportunityDraft,
        found: CreateRead,
    ) -> Result<WriteResult, Problem> {
        let caller = context.caller;
        let Some(pipeline) = found.pipeline else { return Ok(NOT_CONFIGURED) };
        let Some(stage) = pipeline.initial_stage(&caller.crm.initial_stage) else { return Ok(NOT_CONFIGURED) };
        let contact =
            found.contact.live().map_err(|into| into.map_or(Problem::NotFound("contact"), Problem::ContactMerged))?;
        let id = OpportunityId(new_uuid(caller.now.ms(), random_bytes()));
        let created = Opportunity::create(id, draft, &contact.contact().name, &pipeline, stage, caller.now);
        let view = created.view(Some(&pipeline));
        let change = Change::opportunity_created(&caller.coach, &view);
        let reply = Reply::created(&OpportunityResult { opportunity: view })?;
        let write = context.crm_write(created.contact_id, &reply, Some(change));
        Ok(WriteResult::Committed { committed: self.0.opportunities.create(&created, &write).await?, reply })
    }
}
