//! Table `crm`, opportunities. pk `COACH#<coach_id>`, sk `OPPORTUNITY#<uuid>`: the record, and a version that goes up with each write. GSI
//! `by_contact`: `contact_ref`, for the contact's erasure.
//!
//! 1. `page`   Query after a cursor, consistent.
//! 2. `get`    BatchGetItem, consistent. `get_again`: the same, after another change was in the way.
//! 3. `create` Transaction: record, contact still live, fact, answer.
//! 4. `change` Transaction on the version read: record, fact, answer.
//! 5. `save`   Reads of record and contact, then a transaction on the version read: the record, unless the contact is erased.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use domain::fact::OpportunitySaved;
use domain::id::{CoachId, OpportunityId};
use domain::opportunity::{Opportunity, OpportunityView};
use domain::outgoing::OutgoingFact;
use domain::time::Timestamp;
use futures::future::try_join;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::contact::{Contacts, Standing, Telling};
use crate::contact_ref::ContactRef;
use crate::db::{Db, Item, StoreError, Transacted, from_item, n, putting, refused_at, s, stand_back, to_item};
use crate::outbox::Content;
use crate::page::{Listed, Listing, PageRequest};
use crate::workspace::partition;

/// How often a change that lost a race is decided anew.
const MAX_ROUNDS: u32 = 20;
/// What the sort keys of opportunities begin with.
const PREFIX: &str = "OPPORTUNITY#";

#[derive(Serialize, Deserialize)]
struct Record {
    pk: String,
    sk: String,
    contact_ref: String,
    opportunity: Opportunity,
    version: u64,
}

/// An opportunity as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOpportunity {
    pub opportunity: Opportunity,
    version: u64,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Done,
    /// What it rests on is no longer as it was read.
    Moved,
    /// Somebody else has taken over the claim.
    ClaimLost,
}

/// The opportunities in the CRM table.
#[derive(Clone)]
pub struct Opportunities {
    db: Db,
    table: String,
    contacts: Contacts,
}

impl Opportunities {
    /// The table that `CRM_TABLE` names.
    pub fn new(env: &Environment, db: &Db, contacts: &Contacts) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("CRM_TABLE")?.to_owned(), contacts: contacts.clone() })
    }

    /// A page of a coach's opportunities.
    pub async fn page(&self, coach: &CoachId, request: PageRequest) -> Result<Listed<Opportunity>, StoreError> {
        let listing = Listing { table: &self.table, index: None, prefix: PREFIX };
        let listed = listing.page(&self.db, coach, request).await?;
        listed.try_map(|item| stored(item).map(|found| found.opportunity))
    }

    /// An opportunity of a coach.
    pub async fn get(&self, coach: &CoachId, id: OpportunityId) -> Result<Option<StoredOpportunity>, StoreError> {
        self.db.read(&self.table, vec![key(coach, id)]).await?.pop().map(stored).transpose()
    }

    /// The opportunity as it is after `round` changes were in the way of one. Nobody tries for ever.
    pub async fn get_again(
        &self,
        coach: &CoachId,
        id: OpportunityId,
        round: u32,
    ) -> Result<Option<StoredOpportunity>, StoreError> {
        if round > MAX_ROUNDS {
            let source = "the opportunity kept changing".into();
            return Err(StoreError::Unavailable { operation: "TransactWriteItems", source });
        }
        stand_back(round).await;
        self.get(coach, id).await
    }

    /// Stores an opportunity that the API makes, as long as its contact lives.
    pub async fn create(
        &self,
        coach: &CoachId,
        (opportunity, view): (&Opportunity, &OpportunityView),
        telling: &Telling<'_>,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        const RECORD: usize = 1;
        const CONTACT: usize = 2;
        let fact = OutgoingFact::opportunity_created(coach, view);
        let writes = [
            answer(coach, opportunity, telling, now),
            self.put(coach, opportunity, None),
            self.contacts.check_live(coach, opportunity.contact_id),
            telling.outbox.put(&Content::Fact(Box::new(fact)), now),
        ];
        Ok(match self.db.transact(&writes).await? {
            Transacted::Done => Written::Done,
            Transacted::Refused(reasons) if refused_at(&reasons, CLAIM) => Written::ClaimLost,
            // Nobody else has this id: it is the same write, whose answer was lost.
            Transacted::Refused(reasons) if refused_at(&reasons, RECORD) && !refused_at(&reasons, CONTACT) => {
                Written::Done
            }
            Transacted::Refused(_) => Written::Moved,
        })
    }

    /// Stores what the API makes of an opportunity that was read. A change that shows is told; one that only says anew what holds is not.
    pub async fn change(
        &self,
        coach: &CoachId,
        found: &StoredOpportunity,
        (changed, view): (&Opportunity, &OpportunityView),
        telling: &Telling<'_>,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let mut writes = vec![answer(coach, changed, telling, now), self.put(coach, changed, Some(found.version))];
        if changed.updated_at != found.opportunity.updated_at {
            let fact = OutgoingFact::opportunity_updated(coach, view);
            writes.push(telling.outbox.put(&Content::Fact(Box::new(fact)), now));
        }
        Ok(match self.db.transact(&writes).await? {
            Transacted::Done => Written::Done,
            Transacted::Refused(reasons) if refused_at(&reasons, CLAIM) => Written::ClaimLost,
            Transacted::Refused(_) => Written::Moved,
        })
    }

    /// Stores an opportunity as the application has it, unless a newer state is stored. Its contact and its pipeline need not have been
    /// seen; of an erased contact nothing is kept.
    pub async fn save(&self, saved: &OpportunitySaved, said_at: Timestamp) -> Result<(), StoreError> {
        let (coach, contact) = (&saved.coach_id, saved.contact_id);
        let mut round = 0;
        loop {
            let found = self.get_again(coach, saved.opportunity_id, round);
            let (found, standing) = try_join(found, self.contacts.standing(coach, contact)).await?;
            if let Standing::Erased = standing {
                return Ok(());
            }
            let known = found.as_ref().map(|found| &found.opportunity);
            let Some(heard) = Opportunity::heard(known, saved, said_at) else { return Ok(()) };
            if known == Some(&heard) {
                return Ok(());
            }
            let put = self.put(coach, &heard, found.as_ref().map(|found| found.version));
            let writes = [put, self.contacts.check_not_erased(coach, contact)];
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(());
            }
            round += 1;
        }
    }

    fn put(&self, coach: &CoachId, opportunity: &Opportunity, version: Option<u64>) -> TransactWriteItem {
        let record = Record {
            pk: partition(coach),
            sk: sort_key(opportunity.id),
            contact_ref: ContactRef::new(coach, opportunity.contact_id).to_string(),
            opportunity: opportunity.clone(),
            version: version.unwrap_or(0) + 1,
        };
        let put = Put::builder().table_name(&self.table).set_item(Some(to_item(&record)));
        putting(match version {
            None => put.condition_expression("attribute_not_exists(pk)"),
            Some(version) => {
                put.condition_expression("version = :version").expression_attribute_values(":version", n(version))
            }
        })
    }
}

/// Where the answer stands among the writes.
const CLAIM: usize = 0;

/// The answer to the request. It shows what names the contact.
fn answer(coach: &CoachId, opportunity: &Opportunity, telling: &Telling<'_>, now: Timestamp) -> TransactWriteItem {
    let about = ContactRef::new(coach, opportunity.contact_id);
    telling.claims.answer_about(telling.claim, telling.answer, &about, now)
}

fn stored(item: Item) -> Result<StoredOpportunity, StoreError> {
    let record: Record = from_item("opportunity", item)?;
    Ok(StoredOpportunity { opportunity: record.opportunity, version: record.version })
}

fn sort_key(id: OpportunityId) -> String {
    format!("{PREFIX}{id}")
}

fn key(coach: &CoachId, id: OpportunityId) -> Item {
    Item::from([("pk".to_owned(), s(partition(coach))), ("sk".to_owned(), s(sort_key(id)))])
}
