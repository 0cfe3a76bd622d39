//! `POST /v1/crm/opportunities`: an opportunity at the beginning of the pipeline that the coach configured.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::id::{OpportunityId, new_uuid};
use domain::opportunity::{Opportunity, OpportunityDraft, OpportunityResult};
use domain::pipeline::Pipeline;
use edge::crm::{Attempt, Attempted, Write};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use runtime::random_bytes;
use store::StoreError;
use store::contact::ContactState;

use crate::{App, NOT_CONFIGURED};

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    app.writer.answer(&app.gate, &inbound, &Create(&app)).await
}

struct Create<'a>(&'a App);

/// The contact that the opportunity is for, and the pipeline that the coach configured.
pub(crate) struct Found {
    contact: ContactState,
    pipeline: Option<Pipeline>,
}

impl Write for Create<'_> {
    type Request = OpportunityDraft;
    type Found = Found;

    fn parse(&self, inbound: &Inbound) -> Result<OpportunityDraft, Problem> {
        Ok(OpportunityDraft::parse(crm::body(inbound)?)?)
    }

    async fn read(&self, caller: &CrmCaller, draft: &OpportunityDraft) -> Result<Found, StoreError> {
        let Self(app) = self;
        let contact = app.contacts.state(&caller.coach, draft.contact_id);
        let (contact, pipeline) = try_join(contact, app.pipelines.get(&caller.coach, &caller.crm.pipeline_id)).await?;
        Ok(Found { contact, pipeline })
    }

    async fn attempt(
        &self,
        attempt: &Attempt<'_>,
        draft: &OpportunityDraft,
        found: Found,
    ) -> Result<Attempted, Problem> {
        let caller = attempt.caller;
        let Some(pipeline) = found.pipeline else { return Ok(NOT_CONFIGURED) };
        let Some(stage) = pipeline.initial_stage(&caller.crm.initial_stage) else { return Ok(NOT_CONFIGURED) };
        let contact =
            found.contact.live().map_err(|into| into.map_or(Problem::NotFound("contact"), Problem::ContactMerged))?;
        let id = OpportunityId(new_uuid(caller.now.ms(), random_bytes()));
        let made = Opportunity::create(id, draft, &contact.contact().name, &pipeline, stage, caller.now);
        let view = made.view(Some(&pipeline));
        let change = Change::opportunity_created(&caller.coach, &view);
        let reply = Reply::created(&OpportunityResult { opportunity: view })?;
        let write = attempt.leaving(made.contact_id, &reply, Some(change));
        Ok(Attempted::Committed { committed: self.0.opportunities.create(&made, &write).await?, reply })
    }
}
