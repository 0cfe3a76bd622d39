//! What the application tells of contacts: whole records, and which of them turned out to be one.

use aws_sdk_dynamodb::types::{ConditionCheck, TransactWriteItem};
use domain::contact::KnownContact;
use domain::fact::{ContactSaved, Merge};
use domain::id::{ClientId, CoachId, ContactId};
use domain::phone::Country;
use domain::time::Timestamp;

use super::record::{ErasedContact, MergedContact, Stored, StoredContact};
use super::{Contacts, contact_key};
use crate::contact_ref::ContactRef;
use crate::db::{MAX_ROUNDS, StoreError, Transacted, checking, stand_back, to_attribute};

/// What came of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merged {
    /// It is stored, or what is stored is newer.
    Done,
    /// It is stored, but the contact that it was merged into has not been seen, and a client's link waits to go there.
    AwaitsTarget,
    /// What it was merged into is erased, and so is it now. What there is about it is still to go.
    Erased,
    /// It says that a contact lives on as itself.
    IntoItself,
    /// The contact that it names lives on as this very one.
    Circle,
}

/// Where a merge leads.
enum End {
    Erased,
    Unseen(ContactId),
    Live(Box<StoredContact>),
}

impl Contacts {
    /// Stores a contact as the application has it, unless a newer state is stored, or the contact is no more.
    pub async fn save(
        &self,
        saved: &ContactSaved,
        country: Country,
        said_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let phone_key = saved.phone.as_ref().and_then(|phone| phone.key(country));
            let phone_key = phone_key.map(|key| key.as_str().to_owned());
            let found = match self.find(&saved.coach_id, saved.contact_id).await? {
                Some(Stored::Merged(_) | Stored::Erased(_)) => return Ok(()),
                Some(Stored::Live(found)) => Some(found),
                None => None,
            };
            let known = found.as_ref().map(|found| &found.known);
            let Some(heard) = KnownContact::heard(known, saved, said_at, now) else { return Ok(()) };
            let record = match &found {
                None => StoredContact::first(&saved.coach_id, heard, phone_key),
                Some(found) => found.next(heard, phone_key),
            };
            let old = found.as_ref().map(|found| found.addresses()).unwrap_or_default();
            let mut writes = vec![self.put(&record, found.as_ref().map(|found| found.version))];
            let moves = (old, record.addresses());
            writes.extend(self.move_addresses(&saved.coach_id, saved.contact_id, moves).await?);
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(());
            }
        }
        Err(StoreError::kept_changing("the contact"))
    }

    /// Stores that a contact lives on as another: of the first, ids alone are kept. The link to its client goes to the other, unless that
    /// one has become a client itself.
    ///
    /// The transaction states what was found along the chain of merges and at its end, so that no two of them close a circle.
    pub async fn merge(
        &self,
        coach: &CoachId,
        merge: &Merge,
        said_at: Timestamp,
        now: Timestamp,
    ) -> Result<Merged, StoreError> {
        if merge.contact_id == merge.merged_into {
            return Ok(Merged::IntoItself);
        }
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let found = self.find(coach, merge.contact_id).await?;
            match &found {
                Some(Stored::Erased(_)) => return Ok(Merged::Erased),
                Some(Stored::Merged(merged)) if merged.merged_at > said_at => return Ok(Merged::Done),
                Some(Stored::Merged(_) | Stored::Live(_)) | None => {}
            }
            let mut chain = self.chain(coach, merge.merged_into).await?;
            if chain.iter().any(|(id, _)| *id == merge.contact_id) {
                return Ok(Merged::Circle);
            }
            let end = match chain.pop() {
                _ if chain.iter().any(|(_, stored)| matches!(stored, Some(Stored::Erased(_)))) => End::Erased,
                Some((_, Some(Stored::Live(live)))) => End::Live(live),
                Some((_, Some(Stored::Erased(_) | Stored::Merged(_)))) => End::Erased,
                Some((end, None)) => End::Unseen(end),
                None => End::Unseen(merge.merged_into),
            };
            let (mut writes, outcome) = self.merging(coach, merge, (found, end), said_at, now).await?;
            if writes.is_empty() {
                return Ok(outcome);
            }
            writes.extend(chain.iter().map(|(id, stored)| self.check_link(coach, *id, stored.as_ref())));
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(outcome);
            }
        }
        Err(StoreError::kept_changing("the contact"))
    }

    async fn merging(
        &self,
        coach: &CoachId,
        merge: &Merge,
        (found, end): (Option<Stored>, End),
        said_at: Timestamp,
        now: Timestamp,
    ) -> Result<(Vec<TransactWriteItem>, Merged), StoreError> {
        let own = ContactRef::new(coach, merge.contact_id);
        let (version, addresses, client) = match &found {
            Some(Stored::Live(live)) => (Some(live.version), live.addresses(), live.known.contact.client_id.clone()),
            Some(Stored::Merged(merged)) => (Some(merged.version), Default::default(), merged.client_id.clone()),
            Some(Stored::Erased(_)) | None => (None, Default::default(), None),
        };
        let mut writes = self.move_addresses(coach, merge.contact_id, (addresses, Default::default())).await?;
        if let End::Erased = end {
            writes.push(self.put(&ErasedContact::new(&own, Some(merge.merged_into), now), version));
            return Ok((writes, Merged::Erased));
        }
        let mut merged = MergedContact::new(&own, merge.merged_into, said_at, version.unwrap_or(0) + 1);
        let (moved, outcome) = match (end, client) {
            (End::Live(target), Some(client)) if target.contact().client_id.is_none() => {
                (Some(self.hand_over(&target, &client, now)), Merged::Done)
            }
            (End::Live(target), _) => (Some(self.check_live(coach, target.contact().id)), Merged::Done),
            (End::Unseen(target), client) => {
                let outcome = if client.is_some() { Merged::AwaitsTarget } else { Merged::Done };
                merged.client_id = client;
                (Some(self.check_unseen(coach, target)), outcome)
            }
            (End::Erased, _) => (None, Merged::Erased),
        };
        if matches!(&found, Some(Stored::Merged(before)) if before.says_the_same(&merged)) {
            return Ok((Vec::new(), outcome));
        }
        writes.push(self.put(&merged, version));
        writes.extend(moved);
        Ok((writes, outcome))
    }

    /// The contact becomes the client that one merged into it was.
    fn hand_over(&self, target: &StoredContact, client: &ClientId, now: Timestamp) -> TransactWriteItem {
        let mut known = target.known.clone();
        known.contact.client_id = Some(client.clone());
        known.contact.updated_at = known.later(now);
        self.put(&target.changed(known), Some(target.version))
    }

    /// Part of a transaction: a contact along a chain lives on as the one that was found.
    fn check_link(&self, coach: &CoachId, contact: ContactId, found: Option<&Stored>) -> TransactWriteItem {
        let into = found.and_then(Stored::merged_into).map(|into| to_attribute(&into));
        let check = ConditionCheck::builder().table_name(&self.table).set_key(Some(contact_key(coach, contact)));
        checking(match into {
            Some(into) => check.condition_expression("merged_into = :into").expression_attribute_values(":into", into),
            None => check.condition_expression("attribute_exists(pk)"),
        })
    }

    fn check_unseen(&self, coach: &CoachId, contact: ContactId) -> TransactWriteItem {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(contact_key(coach, contact)))
            .condition_expression("attribute_not_exists(pk)");
        checking(check)
    }
}
