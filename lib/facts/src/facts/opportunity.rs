//! Whole records of opportunities.

use domain::event::{Event, Person};
use domain::opportunity::{Opportunity, OpportunitySaved};
use futures::future::try_join;
use store::StoreError;
use store::contact::ContactState;
use store::opportunity::StoredOpportunity;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};

/// Stores an opportunity, unless the stored state is newer or its contact is erased. Contact and pipeline need not be
/// stored yet.
pub(crate) struct Save<'a>(pub(crate) &'a OpportunitySaved);

pub(crate) struct Snapshot {
    found: Option<StoredOpportunity>,
    /// The opportunity after the fact.
    next: Opportunity,
    event: Option<Event>,
}

impl FactCommand for Save<'_> {
    type Snapshot = Snapshot;
    type Rest = ();

    async fn read(&self, app: &FactStore, fact: Context<'_>) -> Result<Snapshot, Stop> {
        let saved = self.0;
        let found = app.opportunities.get(&saved.coach_id, saved.opportunity_id);
        let (found, state) = try_join(found, app.contacts.state(&saved.coach_id, saved.contact_id)).await?;
        if let ContactState::Erased = state {
            return Err(Stop::Nothing);
        }
        let known = found.as_ref().map(|found| &found.opportunity);
        let next = Opportunity::apply_fact(known, saved, fact.occurred_at, fact.now).ok_or(Stop::Nothing)?;
        let event = if fact.emits_crm_events() { self.event(app, state, known, &next).await? } else { None };
        Ok(Snapshot { found, next, event })
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, Snapshot { found, next, event }: Snapshot) -> Decision<()> {
        let (coach, contact) = (&self.0.coach_id, self.0.contact_id);
        let writes = app.opportunities.put_saved(coach, &next, found.as_ref(), contact, fact.now);
        Decision::Commit(Unit::new().write(writes).events(event), ())
    }
}

impl Save<'_> {
    /// The event of an opportunity that is new or changed. Its status depends on the pipelines of its places. `state`
    /// is that of the fact's contact, which is the opportunity's unless the API has set another.
    async fn event(
        &self,
        app: &FactStore,
        state: ContactState,
        before: Option<&Opportunity>,
        next: &Opportunity,
    ) -> Result<Option<Event>, StoreError> {
        let (coach, id) = (&self.0.coach_id, next.contact_id);
        let state = if id == self.0.contact_id { state } else { app.contacts.state(coach, id).await? };
        let Some(contact): Option<Person> = state.person(id) else { return Ok(None) };
        let view = async |opportunity: &Opportunity| {
            let pipeline = app.pipelines.get(coach, &opportunity.place.pipeline_id).await?;
            Ok::<_, StoreError>(opportunity.view(pipeline.as_ref()))
        };
        let Some(before) = before else {
            return Ok(Some(Event::opportunity_created(coach, contact, &view(next).await?)));
        };
        let is_same_person = app.contacts.are_same_person(coach, before.contact_id, id).await?;
        let (mut before, next) = try_join(view(before), view(next)).await?;
        if is_same_person {
            // Receivers see no change: the contact was merged.
            before.contact_id = id;
        }
        Ok(Event::opportunity_changed(coach, contact, &before, &next))
    }
}
