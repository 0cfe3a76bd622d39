//! Facts of the application about contacts: whole records, and merges.

use domain::contact::{ContactSaved, KnownContact};
use domain::fact::Merge;
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ContactId};
use domain::phone::Phone;
use domain::time::Timestamp;

use super::Contacts;
use super::erase::{ContactsToErase, split_at_later_merge};
use super::item::{ContactItem, ContactTombstone, MergedContact, StoredContact, contact_key};
use crate::contact_ref::ContactRef;
use crate::db::{Part, StoreError, Write, retry, to_attribute};

/// The time of a merge, and how it is applied.
#[derive(Debug, Clone, Copy)]
pub struct MergeContext {
    pub occurred_at: FactTime,
    /// The merge is applied again, after other facts had time to arrive: irreversible steps are allowed now.
    pub is_settled: bool,
    pub now: Timestamp,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The merge is stored, or the stored one is newer.
    Done,
    /// The merge is stored, but its target is not. The client's link waits for the target.
    AwaitsTarget,
    /// One of the two contacts is erased, so the other is erased too, unless a later merge leads elsewhere: the caller
    /// applies the merge again. These contacts are to be erased now.
    Erased(ContactsToErase),
    /// The merge names one contact twice.
    IntoItself,
    /// The target was merged into this contact before.
    Circle,
    /// The chain of merges to the surviving contact has more contacts than a transaction can state.
    TooFar,
}

/// Writes and checks per transaction.
const MAX_WRITES: usize = 100;

/// The end of the chain of merges.
enum End {
    Erased,
    Unseen(ContactId),
    Live(Box<StoredContact>),
}

impl Contacts {
    /// Stores a contact from a fact, unless the stored state is newer or the contact is erased. A merged contact takes
    /// only the address that it had when it was merged.
    pub async fn save(&self, saved: &ContactSaved, occurred_at: FactTime, now: Timestamp) -> Result<(), StoreError> {
        retry("the contact", || async {
            let phone_key = saved.phone.as_ref().and_then(Phone::ending).map(|ending| ending.as_str().to_owned());
            let found = match self.find(&saved.coach_id, saved.contact_id).await? {
                Some(ContactItem::Erased(_)) => return Ok(Some(())),
                Some(ContactItem::Merged(merged)) => {
                    let Some(updated) = merged.with_late_email(saved.email.as_ref(), occurred_at) else {
                        return Ok(Some(()));
                    };
                    let write = self.put(&updated, Some(merged.version));
                    return Ok(self.table.db.transact(&[write]).await?.is_done().then_some(()));
                }
                Some(ContactItem::Live(found)) => Some(found),
                None => None,
            };
            let known = found.as_ref().map(|found| &found.known);
            let Some(updated) = KnownContact::apply_fact(known, saved, occurred_at, now) else { return Ok(Some(())) };
            let record = match &found {
                None => {
                    let mut updated = updated;
                    updated.contact.client_id = self.waiting_link(&saved.coach_id, saved.contact_id).await?;
                    StoredContact::first(&saved.coach_id, updated, phone_key)
                }
                Some(found) => found.next(updated, phone_key),
            };
            let old = found.as_ref().map(|found| found.addresses()).unwrap_or_default();
            let mut writes = vec![self.put(&record, found.as_ref().map(|found| found.version))];
            let new = record.addresses();
            writes.extend(self.move_addresses(&saved.coach_id, saved.contact_id, old, new).await?);
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(()))
        })
        .await
    }

    /// Finds the client that was merged into a contact before the contact was stored. The index may lag: a recent merge
    /// is applied again.
    async fn waiting_link(&self, coach: &CoachId, contact: ContactId) -> Result<Option<ClientId>, StoreError> {
        let mut targets = vec![contact];
        while let Some(into) = targets.pop() {
            for (id, stored) in self.merged_into(&ContactRef::new(coach, into)).await? {
                // The contact may have been merged elsewhere by now, or be erased.
                match stored {
                    ContactItem::Merged(merged) if merged.merged_into == into => match merged.client_id {
                        Some(client) => return Ok(Some(client)),
                        None => targets.push(id),
                    },
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// Stores that a contact was merged into another. Of the first, only ids are kept. The link to its client moves to
    /// the surviving contact, unless that is a client itself. If a later merge leads elsewhere, the link moves along.
    ///
    /// If the erased contact was a client, the contact that it had been merged into is erased too, unless that is
    /// another client. Irreversible steps wait until the merge is applied again (`is_settled`): merges that are still
    /// on their way may lead elsewhere.
    ///
    /// The transaction checks the chain of merges that was read, so two merges never close a circle.
    pub async fn merge(
        &self,
        coach: &CoachId,
        merge: &Merge,
        context: MergeContext,
    ) -> Result<MergeOutcome, StoreError> {
        if merge.contact_id == merge.merged_into {
            return Ok(MergeOutcome::IntoItself);
        }
        let MergeContext { occurred_at, now, .. } = context;
        retry("the contact", || async {
            let found = self.find(coach, merge.contact_id).await?;
            if matches!(&found, Some(ContactItem::Merged(merged)) if merged.merged_at > occurred_at) {
                return Ok(Some(MergeOutcome::Done));
            }
            if let Some(ContactItem::Erased(erased)) = &found {
                return Ok(Some(MergeOutcome::Erased(self.merge_of_erased(coach, merge, erased, context).await?)));
            }
            let mut chain = self.chain(coach, merge.merged_into).await?;
            if chain.iter().any(|(id, _)| *id == merge.contact_id) {
                return Ok(Some(MergeOutcome::Circle));
            }
            let survivors: Vec<ContactId> = chain.iter().map(|(id, _)| *id).collect();
            let end = match chain.pop() {
                _ if chain.iter().any(|(_, stored)| matches!(stored, Some(ContactItem::Erased(_)))) => End::Erased,
                Some((_, Some(ContactItem::Live(live)))) => End::Live(live),
                Some((_, Some(ContactItem::Erased(_) | ContactItem::Merged(_)))) => End::Erased,
                Some((end, None)) => End::Unseen(end),
                None => End::Unseen(merge.merged_into),
            };
            let unlink_writes = self.unlink_former_survivors(coach, found.as_ref(), &survivors, now).await?;
            let (mut writes, outcome) = self.merge_writes(coach, merge, found, end, context).await?;
            if writes.is_empty() {
                return Ok(Some(outcome));
            }
            writes.extend(unlink_writes);
            writes.extend(chain.iter().map(|(id, stored)| self.check_link(coach, *id, stored.as_ref())));
            if writes.len() > MAX_WRITES {
                return Ok(Some(MergeOutcome::TooFar));
            }
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(outcome))
        })
        .await
    }

    async fn merge_writes(
        &self,
        coach: &CoachId,
        merge: &Merge,
        found: Option<ContactItem>,
        end: End,
        MergeContext { occurred_at, is_settled, now }: MergeContext,
    ) -> Result<(Vec<Write>, MergeOutcome), StoreError> {
        let own = ContactRef::new(coach, merge.contact_id);
        let version = found.as_ref().and_then(ContactItem::version);
        let addresses = found.as_ref().map(ContactItem::addresses).unwrap_or_default();
        let client = found.as_ref().and_then(ContactItem::client_id).cloned();
        let mut writes = self.move_addresses(coach, merge.contact_id, addresses, Default::default()).await?;
        let merged = MergedContact::new(&own, merge.merged_into, occurred_at, version.unwrap_or(0) + 1);
        let mut merged = merged.with_email_of(found.as_ref());
        merged.client_id = client;
        let is_known = matches!(&found, Some(ContactItem::Merged(before)) if before.is_same_merge(&merged));
        let (standing, outcome) = match (end, &merged.client_id) {
            (End::Erased, _) if is_settled => {
                let erased = ContactTombstone::new(&own, found.as_ref(), occurred_at);
                writes.push(self.put(&erased.with_merge(coach, merge.merged_into, occurred_at), version));
                return Ok((
                    writes,
                    MergeOutcome::Erased(ContactsToErase::without_client([merge.contact_id], occurred_at)),
                ));
            }
            (End::Erased, _) => {
                if !is_known {
                    writes.push(self.put(&merged, version));
                }
                return Ok((writes, MergeOutcome::Erased(ContactsToErase::without_client([], occurred_at))));
            }
            (End::Live(target), Some(client)) if target.contact().client_id.is_none() => {
                writes.push(self.link_write(&target, Some(client.clone()), now));
                writes.push(self.put(&merged, version));
                return Ok((writes, MergeOutcome::Done));
            }
            (End::Live(target), _) => (self.check_live(coach, target.contact().id), MergeOutcome::Done),
            (End::Unseen(target), None) => (self.check_unseen(coach, target), MergeOutcome::Done),
            (End::Unseen(target), Some(_)) => (self.check_unseen(coach, target), MergeOutcome::AwaitsTarget),
        };
        if is_known {
            return Ok((Vec::new(), outcome));
        }
        writes.push(self.put(&merged, version));
        writes.push(standing);
        Ok((writes, outcome))
    }

    /// The contacts to erase after a merge of an erased contact: that contact alone, unless it was a client's at the
    /// time of the merge.
    async fn merge_of_erased(
        &self,
        coach: &CoachId,
        merge: &Merge,
        erased: &ContactTombstone,
        MergeContext { occurred_at, is_settled, now }: MergeContext,
    ) -> Result<ContactsToErase, StoreError> {
        let own = ContactsToErase::without_client([merge.contact_id], occurred_at);
        if !erased.is_redirected_by(occurred_at) {
            return Ok(own);
        }
        // Stored even if no client is known: a later fact may name one.
        self.note_merge(&ContactRef::new(coach, merge.contact_id), merge.merged_into, occurred_at).await?;
        let Some(client) = erased.client_id.as_ref().filter(|_| is_settled) else { return Ok(own) };
        let chain = self.chain(coach, merge.contact_id).await?;
        let (chain, beyond) = split_at_later_merge(&chain, erased.erased_at);
        if chain.last().is_some_and(|(_, end)| is_another_client(end.as_ref(), client)) {
            return Ok(own);
        }
        for (id, _) in beyond {
            self.unlink(coach, *id, client, now).await?;
        }
        let contacts = chain.iter().map(|(id, _)| *id).collect();
        Ok(ContactsToErase { contacts, client: Some(client.clone()), erased_at: erased.erased_at })
    }

    /// Parts of a transaction: remove the link to a contact's client from its former surviving contacts. The present
    /// ones have the link, or get it in the same transaction.
    async fn unlink_former_survivors(
        &self,
        coach: &CoachId,
        found: Option<&ContactItem>,
        survivors: &[ContactId],
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let (Some(ContactItem::Merged(before)), Some(client)) = (found, found.and_then(ContactItem::client_id)) else {
            return Ok(Vec::new());
        };
        let mut writes = Vec::new();
        let mut next = Some(before.merged_into);
        while let Some(id) = next.filter(|id| !survivors.contains(id)) {
            let stored = self.find(coach, id).await?;
            next = stored.as_ref().and_then(ContactItem::merged_into);
            let linked = stored.filter(|stored| stored.client_id() == Some(client));
            writes.extend(linked.and_then(|stored| self.unlink_write(stored, now)));
        }
        Ok(writes)
    }

    /// The write that sets or removes a contact's link to a client.
    pub(super) fn link_write(&self, target: &StoredContact, client: Option<ClientId>, now: Timestamp) -> Write {
        let mut known = target.known.clone();
        known.contact.client_id = client;
        known.contact.updated_at = known.later(now);
        self.put(&target.changed(known), Some(target.version))
    }

    /// Part of a transaction: checks that a contact in a chain is merged into the same contact as when it was read.
    fn check_link(&self, coach: &CoachId, contact: ContactId, found: Option<&ContactItem>) -> Write {
        let contact = self.table.write(contact_key(coach, contact));
        match found.and_then(ContactItem::merged_into) {
            Some(into) => contact.when("merged_into = :into", [(":into", to_attribute(&into))]),
            None => contact.when_present(),
        }
        .check(Part::Contact)
    }

    fn check_unseen(&self, coach: &CoachId, contact: ContactId) -> Write {
        self.table.write(contact_key(coach, contact)).when_absent().check(Part::Contact)
    }
}

/// Returns true if a contact is a client other than `client`.
fn is_another_client(contact: Option<&ContactItem>, client: &ClientId) -> bool {
    matches!(contact, Some(ContactItem::Live(live)) if live.contact().client_id.as_ref().is_some_and(|own| own != client))
}
