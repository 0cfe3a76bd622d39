//! Table `crm`, opportunities. pk `COACH#<coach_id>`, sk `OPPORTUNITY#<uuid>`: the record, and a version that each
//! write raises. LSI `by_update`: `updated` (module `updated`). GSI `by_contact`: `contact_ref`, for the contact's
//! erasure.
//!
//! 1. `page` Query of the table or of `by_update` after a cursor, consistent.
//! 2. `get` BatchGetItem, consistent.
//! 3. `create` Parts of a transaction: record, check of the live contact.
//! 4. `change` Part of a transaction on the version read: record.
//! 5. `put_saved` Parts of a fact's transaction on the version read: the record, unless the contact is erased.

use domain::crm_list::{PageRequest, Walk};
use domain::id::{CoachId, ContactId, OpportunityId};
use domain::opportunity::Opportunity;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::about_contact::OPPORTUNITY_PREFIX as PREFIX;
use crate::contact::Contacts;
use crate::contact_ref::ContactRef;
use crate::db::{Db, Item, Part, StoreError, Table, Write, from_item, to_item};
use crate::page::{Listing, Page};
use crate::updated::Updated;
use crate::workspace::{key_of, partition};

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
}

impl Opportunities {
    /// The table that `CRM_TABLE` names.
    pub fn new(env: &Environment, db: &Db, contacts: &Contacts) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "CRM_TABLE")?, contacts: contacts.clone() })
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

    /// Parts of a transaction: store an opportunity in the place of the one that was read, unless its contact is
    /// erased. Contact and pipeline need not be stored yet.
    pub fn put_saved(
        &self,
        coach: &CoachId,
        next: &Opportunity,
        found: Option<&StoredOpportunity>,
        contact: ContactId,
        now: Timestamp,
    ) -> [Write; 2] {
        [self.put(coach, next, found, now), self.contacts.check_not_erased(coach, contact)]
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
