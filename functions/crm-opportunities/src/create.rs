//! `POST /v1/crm/opportunities`: an opportunity at the beginning of the pipeline that the coach configured.

use axum::extract::State;
use axum::response::Response;
use domain::api_key::Permission;
use domain::change::Change;
use domain::id::{OpportunityId, new_uuid};
use domain::opportunity::{Opportunity, OpportunityDraft, OpportunityResult};
use domain::pipeline::Pipeline;
use edge::crm::{Attempt, Write};
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use runtime::random_bytes;
use store::StoreError;
use store::contact::Standing;
use store::crm_write::Committed;

use crate::App;

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    let admission = app.gate.crm(&inbound, Permission::OpportunitiesWrite).await;
    let work = async |caller: CrmCaller, ()| app.writer.write(&inbound, &caller, &Create(&app)).await;
    app.gate.answer(&inbound, admission, work).await
}

struct Create<'a>(&'a App);

impl Write for Create<'_> {
    type Request = OpportunityDraft;
    /// Who it is for, and where it goes.
    type Found = (Standing, Option<Pipeline>);

    fn parse(&self, inbound: &Inbound) -> Result<OpportunityDraft, Problem> {
        Ok(OpportunityDraft::parse(&crm::body(inbound)?)?)
    }

    async fn read(&self, caller: &CrmCaller, draft: &OpportunityDraft) -> Result<Self::Found, StoreError> {
        let Self(app) = self;
        let standing = app.contacts.standing(&caller.coach, draft.contact_id);
        try_join(standing, app.pipelines.get(&caller.coach, &caller.crm.pipeline_id)).await
    }

    async fn attempt(
        &self,
        attempt: &Attempt<'_>,
        draft: &OpportunityDraft,
        (standing, pipeline): Self::Found,
    ) -> Result<(Committed, Reply), Problem> {
        let caller = attempt.caller;
        let pipeline = pipeline.ok_or(Problem::CrmNotConfigured)?;
        let stage = pipeline.initial_stage(&caller.crm.initial_stage).ok_or(Problem::CrmNotConfigured)?;
        let contact = crm::live(standing)?;
        let id = OpportunityId(new_uuid(caller.now.ms(), random_bytes()));
        let made = Opportunity::create(id, draft, &contact.contact().name, (&pipeline, stage), caller.now);
        let view = made.view(Some(&pipeline));
        let change = Change::opportunity_created(&caller.coach, &view);
        let reply = Reply::created(&OpportunityResult { opportunity: view })?;
        let write = attempt.leaving(made.contact_id, &reply, Some(change));
        Ok((self.0.opportunities.create(&made, &write).await?, reply))
    }
}
