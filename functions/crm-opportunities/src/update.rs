//! `PATCH /v1/crm/opportunities/{id}`: sets the name, the value or the stage of an opportunity.

use domain::change::Change;
use domain::event::Event;
use domain::id::OpportunityId;
use domain::id_kind::IdKind;
use domain::opportunity::{OpportunityPatch, OpportunityRefusal, OpportunityResult, apply};
use domain::pipeline::Pipeline;
use edge::{About, Command, CrmCaller, Decision, Inbound, Problem, Reply, crm};
use futures::future::try_join;
use store::contact::ContactState;
use store::opportunity::StoredOpportunity;

use crate::App;

pub(crate) struct Update;

/// The patch, and the records that decide the update: the opportunity, its contact and the configured pipeline.
pub(crate) struct UpdateRead {
    patch: OpportunityPatch,
    opportunity: Option<(StoredOpportunity, ContactState)>,
    pipeline: Option<Pipeline>,
}

impl Command for Update {
    type App = App;
    type Caller = CrmCaller;
    type Snapshot = UpdateRead;

    async fn read(app: &App, caller: &CrmCaller, inbound: &Inbound) -> Result<UpdateRead, Problem> {
        let id = crm::path_id(inbound, OpportunityId::parse)?;
        let patch = OpportunityPatch::parse(crm::body(inbound)?)?;
        let opportunity = async {
            let Some(found) = app.opportunities.get(&caller.coach, id).await? else { return Ok(None) };
            let contact = app.contacts.state(&caller.coach, found.opportunity.contact_id).await?;
            Ok(Some((found, contact)))
        };
        let pipeline = app.pipelines.get(&caller.coach, &caller.crm.pipeline_id);
        let (opportunity, pipeline) = try_join(opportunity, pipeline).await?;
        Ok(UpdateRead { patch, opportunity, pipeline })
    }

    fn decide(app: &App, caller: &CrmCaller, read: &UpdateRead) -> Result<Decision, Problem> {
        let pipeline = read.pipeline.as_ref().ok_or(Problem::CrmNotConfigured)?;
        let (found, contact) = read.opportunity.as_ref().ok_or(Problem::not_found(IdKind::Opportunity))?;
        let changed = apply(&found.opportunity, pipeline, &read.patch, caller.now)
            .map_err(|refusal| problem_of(refusal, pipeline))?;
        let view = changed.view(Some(pipeline));
        // Repeating the API's own update emits no change.
        let is_change = changed.updated_at != found.opportunity.updated_at;
        let change = is_change.then(|| Change::opportunity_updated(&caller.coach, &view, changed.last_written_at()));
        // The contact may be erased by now, and the opportunity is about to be deleted: then nobody is told.
        let event = contact.person(found.opportunity.contact_id).and_then(|contact| {
            Event::opportunity_changed(&caller.coach, contact, &found.opportunity.view(Some(pipeline)), &view)
        });
        let about = About::Contact(&caller.coach, changed.contact_id);
        Ok(Decision::reply(about, Reply::ok(&OpportunityResult { opportunity: view })?)
            .write([app.opportunities.change(&caller.coach, found, &changed, caller.now)])
            .change(change)
            .events(event))
    }
}

/// The problem of a refusal.
fn problem_of(refusal: OpportunityRefusal, pipeline: &Pipeline) -> Problem {
    match refusal {
        OpportunityRefusal::NotFound => Problem::not_found(IdKind::Opportunity),
        OpportunityRefusal::StagePaymentControlled => Problem::StagePaymentControlled,
        OpportunityRefusal::StageUnknown => Problem::StageUnknown(pipeline.selectable_stages()),
        OpportunityRefusal::LostReasonRequired => Problem::LostReasonRequired,
        OpportunityRefusal::LostReasonNotAllowed => Problem::LostReasonNotAllowed,
    }
}
