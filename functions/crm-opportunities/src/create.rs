//! `POST /v1/crm/opportunities`: creates an opportunity in the initial stage of the configured pipeline.

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

pub(crate) struct Create;

/// The draft, the records that decide the creation, which are the contact and the configured pipeline, and the random
/// part of the id.
pub(crate) struct CreateRead {
    draft: OpportunityDraft,
    contact: ContactState,
    pipeline: Option<Pipeline>,
    random: [u8; 10],
}

impl Command for Create {
    type App = App;
    type Caller = CrmCaller;
    type Snapshot = CreateRead;

    async fn read(app: &App, caller: &CrmCaller, inbound: &Inbound) -> Result<CreateRead, Problem> {
        let draft = OpportunityDraft::parse(crm::body(inbound)?)?;
        let contact = app.contacts.state(&caller.coach, draft.contact_id);
        let pipeline = app.pipelines.get(&caller.coach, &caller.crm.pipeline_id);
        let (contact, pipeline) = try_join(contact, pipeline).await?;
        Ok(CreateRead { draft, contact, pipeline, random: random_bytes() })
    }

    fn decide(app: &App, caller: &CrmCaller, found: &CreateRead) -> Result<Decision, Problem> {
        let pipeline = found.pipeline.as_ref().ok_or(Problem::CrmNotConfigured)?;
        let stage = pipeline.initial_stage(&caller.crm.initial_stage).ok_or(Problem::CrmNotConfigured)?;
        let contact = crm::live(&found.contact)?.contact();
        let id = OpportunityId(new_uuid(caller.now.ms(), found.random));
        let created = Opportunity::create(id, &found.draft, &contact.name, pipeline, stage, caller.now);
        let view = created.view(Some(pipeline));
        let change = Change::opportunity_created(&caller.coach, &view);
        let event = Event::opportunity_created(&caller.coach, Person::contact(contact), &view);
        let about = About::Contact(&caller.coach, created.contact_id);
        Ok(Decision::reply(about, Reply::created(&OpportunityResult { opportunity: view })?)
            .write(app.opportunities.create(&caller.coach, &created))
            .change([change])
            .events([event]))
    }
}
