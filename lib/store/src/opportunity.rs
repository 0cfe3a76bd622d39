//! Table `crm`, opportunities. pk `COACH#<coach_id>`, sk `OPPORTUNITY#<uuid>`: the record, and a version that each
//! write raises. LSI `by_update`: `updated` (module `updated`). GSI `by_contact`: `contact_ref`, for the contact's
//! erasure.
//!
//! 1. `page` Query of the table or of `by_update` after a cursor, consistent.
//! 2. `get` BatchGetItem, consistent.
//! 3. `create` Parts of a transaction: record, check of the live contact.
//! 4. `change` Part of a transaction on the version read: record.
//! 5. `save` Reads of record, contact and pipelines, then a transaction on the version read: the record, unless the
//!    contact is erased.

use domain::crm_list::{PageRequest, Walk};
use domain::event::Event;
use domain::fact::OpportunitySaved;
use domain::id::{CoachId, ContactId, OpportunityId};
use domain::opportunity::Opportunity;
use domain::time::Timestamp;
use futures::future::try_join;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::contact::{ContactState, Contacts};
use crate::contact_ref::ContactRef;
use crate::db::{Db, Item, Part, StoreError, Table, Write, from_item, to_item};
use crate::fact::{FactContext, Halt};
use crate::page::{Listing, Page};
use crate::pipeline::Pipelines;
use crate::unit::Unit;
use crate::updated::Updated;
use crate::workspace::{key_of, partition};

pub(crate) const PREFIX: &str = "OPPORTUNITY#";

/// An opportunity as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredOpportunity {
    pk: String,
    sk: String,
    contact_ref: String,
    updated: Updated,
    pub opportunity: Opportunity,
    version: u64,
}

/// The opportunities in the CRM table.
#[derive(Clone)]
pub struct Opportunities {
    table: Table,
    contacts: Contacts,
    pipelines: Pipelines,
}

impl Opportunities {
    /// The table that `CRM_TABLE` names.
    pub fn new(env: &Environment, db: &Db, contacts: &Contacts, pipelines: &Pipelines) -> Result<Self, BoxError> {
        let (contacts, pipelines) = (contacts.clone(), pipelines.clone());
        Ok(Self { table: Table::new(env, db, "CRM_TABLE")?, contacts, pipelines })
    }

    /// Reads a page of a coach's opportunities.
    pub async fn page(&self, coach: &CoachId, request: &PageRequest<Walk>) -> Result<Page<Opportunity>, StoreError> {
        let listing = Listing { table: &self.table, index: None, prefix: PREFIX };
        let listed = listing.page(coach, request).await?;
        listed.try_map(|item| stored(item).map(|found| Some(found.opportunity)))
    }

    /// Reads an opportunity of a coach.
    pub async fn get(&self, coach: &CoachId, id: OpportunityId) -> Result<Option<StoredOpportunity>, StoreError> {
        self.table.read(vec![key(coach, id)]).await?.pop().map(stored).transpose()
    }

    /// Parts of a transaction: store a new opportunity, if its contact is live.
    pub fn create(&self, coach: &CoachId, opportunity: &Opportunity) -> [Write; 2] {
        [
            self.put(coach, opportunity, None, opportunity.created_at),
            self.contacts.check_live(coach, opportunity.contact_id),
        ]
    }

    /// Part of a transaction: stores a changed opportunity, if the opportunity is as it was read.
    pub fn change(&self, coach: &CoachId, found: &StoredOpportunity, changed: &Opportunity, now: Timestamp) -> Write {
        self.put(coach, changed, Some(found), now)
    }

    /// Stores an opportunity from a fact, unless the stored state is newer or its contact is erased. Contact and
    /// pipeline need not be stored yet.
    pub async fn save(&self, saved: &OpportunitySaved, fact: FactContext<'_>) -> Result<Unit, Halt> {
        let (coach, contact) = (&saved.coach_id, saved.contact_id);
        let found = self.get(coach, saved.opportunity_id);
        let (found, standing) = try_join(found, self.contacts.state(coach, contact)).await?;
        if let ContactState::Erased = standing {
            return Err(Halt::Done);
        }
        let known = found.as_ref().map(|found| &found.opportunity);
        let updated = Opportunity::apply_fact(known, saved, fact.occurred_at, fact.now).ok_or(Halt::Done)?;
        let put = self.put(coach, &updated, found.as_ref(), fact.now);
        let event = match fact.emits_crm_events() {
            true => self.event(coach, (contact, standing), known, &updated).await?,
            false => None,
        };
        Ok(Unit::new().write([put, self.contacts.check_not_erased(coach, contact)]).events(event))
    }

    /// The event of an opportunity that is new or changed. Its status depends on the pipelines of its places. The state
    /// of a contact has been read, which is the opportunity's unless the API has set another.
    async fn event(
        &self,
        coach: &CoachId,
        (read, state): (ContactId, ContactState),
        before: Option<&Opportunity>,
        opportunity: &Opportunity,
    ) -> Result<Option<Event>, StoreError> {
        let id = opportunity.contact_id;
        let state = if id == read { state } else { self.contacts.state(coach, id).await? };
        let Some(contact) = state.person(id) else { return Ok(None) };
        let view = async |opportunity: &Opportunity| {
            let pipeline = self.pipelines.get(coach, &opportunity.place.pipeline_id).await?;
            Ok::<_, StoreError>(opportunity.view(pipeline.as_ref()))
        };
        let Some(before) = before else {
            return Ok(Some(Event::opportunity_created(coach, contact, &view(opportunity).await?)));
        };
        let is_same_person = self.contacts.are_same_person(coach, before.contact_id, id).await?;
        let (mut before, opportunity) = try_join(view(before), view(opportunity)).await?;
        if is_same_person {
            // Receivers see no change: the contact was merged.
            before.contact_id = id;
        }
        Ok(Event::opportunity_changed(coach, contact, &before, &opportunity))
    }

    /// Stores an opportunity, on condition that the item is as it was found.
    fn put(
        &self,
        coach: &CoachId,
        opportunity: &Opportunity,
        found: Option<&StoredOpportunity>,
        now: Timestamp,
    ) -> Write {
        let updated = match found {
            None => Updated::first(PREFIX, opportunity.id.0, now),
            Some(found) => found.updated.next_if(opportunity.updated_at != found.opportunity.updated_at, now),
        };
        let version = found.map(|found| found.version);
        let record = StoredOpportunity {
            pk: partition(coach),
            sk: sort_key(opportunity.id),
            contact_ref: ContactRef::new(coach, opportunity.contact_id).to_string(),
            updated,
            opportunity: opportunity.clone(),
            version: version.unwrap_or(0) + 1,
        };
        self.table.write(to_item(&record)).when_version(version).put(Part::Opportunity)
    }
}

fn stored(item: Item) -> Result<StoredOpportunity, StoreError> {
    from_item("opportunity", item)
}

fn sort_key(id: OpportunityId) -> String {
    format!("{PREFIX}{id}")
}

fn key(coach: &CoachId, id: OpportunityId) -> Item {
    key_of(coach, &sort_key(id))
}
