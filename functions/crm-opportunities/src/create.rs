//! `POST /v1/crm/opportunities`: creates an opportunity in the initial stage of the configured pipeline.

use axum::extract::State;
use axum::response::Response;
use domain::change::Change;
use domain::event::{Event, Person};
use domain::id::{OpportunityId, new_uuid};
use domain::opportunity::{Opportunity, OpportunityDraft, OpportunityResult};
use domain::pipeline::Pipeline;
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use runtime::random_bytes;
use store::contact::ContactState;

use crate::App;

pub(crate) async fn create(State(app): State<App>, inbound: Inbound) -> Response {
    app.runner.answer(&app.gate, &inbound, &Create { app: &app, inbound: &inbound, random: random_bytes() }).await
}

struct Create<'a> {
    app: &'a App,
    inbound: &'a Inbound,
    random: [u8; 10],
}

/// The draft, and the records that decide the creation: the contact and the configured pipeline.
pub(crate) struct CreateRead {
    draft: OpportunityDraft,
    contact: ContactState,
    pipeline: Option<Pipeline>,
}

impl Command for Create<'_> {
    type Caller = CrmCaller;
    type Snapshot = CreateRead;

    async fn read(&self, caller: &CrmCaller) -> Result<CreateRead, Problem> {
        let draft = OpportunityDraft::parse(crm::body(self.inbound)?)?;
        let contact = self.app.contacts.state(&caller.coach, draft.contact_id);
        let pipeline = self.app.pipelines.get(&caller.coach, &caller.crm.pipeline_id);
        let (contact, pipeline) = try_join(contact, pipeline).await?;
        Ok(CreateRead { draft, contact, pipeline })
    }

    fn decide(&self, caller: &CrmCaller, found: &CreateRead) -> Result<Decision, Problem> {
        let pipeline = found.pipeline.as_ref().ok_or(Problem::CrmNotConfigured)?;
        let stage = pipeline.initial_stage(&caller.crm.initial_stage).ok_or(Problem::CrmNotConfigured)?;
        let contact = crm::live(&found.contact)?.contact();
        let id = OpportunityId(new_uuid(caller.now.ms(), self.random));
        let created = Opportunity::create(id, &found.draft, &contact.name, pipeline, stage, caller.now);
        let view = created.view(Some(pipeline));
        let change = Change::opportunity_created(&caller.coach, &view);
        let event = Event::opportunity_created(&caller.coach, Person::contact(contact), &view);
        let about = About::Contact(&caller.coach, created.contact_id);
        Ok(Decision::reply(about, Reply::created(&OpportunityResult { opportunity: view })?)
            .write(self.app.opportunities.create(&caller.coach, &created))
            .change([change])
            .events([event]))
    }
}
