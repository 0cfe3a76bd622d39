//! Facts of the application about contacts: whole records, and merges.

use domain::contact::KnownContact;
use domain::fact::{ContactSaved, Merge};
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ContactId};
use domain::phone::Phone;
use domain::time::Timestamp;

use super::erase::{ContactsToErase, split_at_later_merge};
use super::item::{ContactItem, ContactTombstone, MergedContact, StoredContact};
use super::{Contacts, contact_key};
use crate::contact_ref::ContactRef;
use crate::db::{Part, StoreError, Write, retry, to_attribute};

/// The circumstances of a merge.
#[derive(Debug, Clone, Copy)]
pub struct MergeContext {
    pub occurred_at: FactTime,
    /// The merge is gone over again: what cannot be undone is done now.
    pub is_settled: bool,
    pub now: Timestamp,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// It is stored, or what is stored is newer.
    Done,
    /// It is stored, but the contact that it was merged into has not been seen, and a client's link waits to go there.
    AwaitsTarget,
    /// One of the two is erased, and so is the other, unless a later merge leads elsewhere: the caller applies the
    /// merge again. These contacts are to be erased now.
    Erased(ContactsToErase),
    /// It says that a contact lives on as itself.
    IntoItself,
    /// The contact that it names lives on as this very one.
    Circle,
    /// More contacts lie between it and the one that it would live on as than a transaction can state.
    TooFar,
}

/// Writes and checks that a transaction takes.
const MAX_WRITES: usize = 100;

/// Where a merge leads.
enum End {
    Erased,
    Unseen(ContactId),
    Live(Box<StoredContact>),
}

impl Contacts {
    /// Stores a contact as the application has it, unless a newer state is stored, or the contact is no more. Of one
    /// that was merged away, the address is kept that it had then.
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
            let Some(updated) = KnownContact::heard(known, saved, occurred_at, now) else { return Ok(Some(())) };
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

    /// The client that was merged into a contact before that contact was seen. The index may lag: a young merge is
    /// applied again.
    async fn waiting_link(&self, coach: &CoachId, contact: ContactId) -> Result<Option<ClientId>, StoreError> {
        let mut targets = vec![contact];
        while let Some(into) = targets.pop() {
            for (id, stored) in self.merged_into(&ContactRef::new(coach, into)).await? {
                // By now it may have been merged elsewhere, or be erased.
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

    /// Stores that a contact lives on as another: of the first, ids alone are kept. The link to its client goes to the
    /// other, unless that one has become a client itself. Where a later merge leads elsewhere, the link goes with it.
    ///
    /// A contact that was erased as a client takes whomever it had been merged into with it, unless that one is another
    /// client. What cannot be undone waits until the merge is gone over again (`is_settled`): others that are on their
    /// way may lead elsewhere.
    ///
    /// The transaction states the chain of merges as it was read, so that no two merges close a circle.
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
            let taken_back = self.take_back(coach, found.as_ref(), &survivors, now).await?;
            let (mut writes, outcome) = self.merge_writes(coach, merge, found, end, context).await?;
            if writes.is_empty() {
                return Ok(Some(outcome));
            }
            writes.extend(taken_back);
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
                writes.push(self.put(&erased.merged(coach, merge.merged_into, occurred_at), version));
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
                writes.push(self.link_to(&target, Some(client.clone()), now));
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

    /// The contacts that a merge of an erased contact takes along: that contact alone, unless it was a client's when
    /// the merge was said.
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
        // Also of one that is not known to have been a client's: it may turn out to be.
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

    /// Parts of a transaction: the link to a contact's client goes from whomever it was said to live on as before. The
    /// contacts that it is said to live on as now have it already, or are given it.
    async fn take_back(
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

    /// The contact becomes the client that one merged into it was, or is that client no more.
    pub(super) fn link_to(&self, target: &StoredContact, client: Option<ClientId>, now: Timestamp) -> Write {
        let mut known = target.known.clone();
        known.contact.client_id = client;
        known.contact.updated_at = known.later(now);
        self.put(&target.changed(known), Some(target.version))
    }

    /// Part of a transaction: a contact along a chain lives on as the one that was found.
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

/// Returns true if a contact is a client other than this one.
fn is_another_client(contact: Option<&ContactItem>, client: &ClientId) -> bool {
    matches!(contact, Some(ContactItem::Live(live)) if live.contact().client_id.as_ref().is_some_and(|own| own != client))
}
