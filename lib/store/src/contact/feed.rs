//! Facts of the application about contacts: whole records, and merges.
//!
//! A merge leaves an alias. The order of merges, erasures and clients' links is settled by reading along the aliases:
//! no merge rewrites another contact's alias.

use domain::contact::{ContactSaved, KnownContact};
use domain::event::{ContactSource, Event};
use domain::fact::Merge;
use domain::id::{ClientId, CoachId};
use domain::phone::Phone;
use domain::time::Timestamp;

use super::Contacts;
use super::erase::ErasedContacts;
use super::item::{ContactItem, FormerContact, Merged, StoredContact, contact_key};
use super::state::{Chain, ContactState, MAX_FOLLOWED, end_of};
use crate::contact_ref::ContactRef;
use crate::db::{Part, StoreError, Write};
use crate::fact::{FactContext, Halt};
use crate::unit::Unit;

/// The decision about a merge.
pub enum MergeDecision {
    /// Nothing is to be written.
    Ends(MergeOutcome),
    /// The unit is to be committed, then [`Contacts::end_merge`] called.
    Commits(Unit, MergeEnd),
}

/// The end of a merge whose unit is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeEnd {
    Done,
    /// The caller applies the merge again later.
    Repeats,
    /// The contact was merged into an erased one, and is erased too.
    Erases,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The merge is stored, or the stored one is newer.
    Done,
    /// The merge is stored, and these contacts are erased. The caller applies the merge again later: a contact of it is
    /// erased, or its client's link waits for a contact that is not stored.
    Repeats(ErasedContacts),
    /// Another merge comes first, for this reason.
    Waits(&'static str),
    /// The merge is refused, for this reason.
    Refused(&'static str),
}

/// Writes and checks per transaction, besides the outbox entry of the merge's event.
const MAX_WRITES: usize = 99;

impl Contacts {
    /// Stores a contact from a fact, unless the stored state is newer or the contact is erased. A merged contact takes
    /// only the address that it had when it was merged.
    pub async fn save(&self, saved: &ContactSaved, fact: FactContext<'_>) -> Result<Unit, Halt> {
        let (coach, id, at) = (&saved.coach_id, saved.contact_id, fact.occurred_at);
        let found = self.find(coach, id).await?;
        if let ContactItem::Former(former) = &found {
            let updated = former.with_late_email(saved.email.as_ref(), at).ok_or(Halt::Done)?;
            return Ok(Unit::new().write([self.put(&updated, found.version())]));
        }
        let known = found.live().map(|live| &live.known);
        let mut updated = KnownContact::apply_fact(known, saved, at, fact.now).ok_or(Halt::Done)?;
        let phone_key = saved.phone.as_ref().and_then(Phone::ending).map(|ending| ending.as_str().to_owned());
        let record = match found.live() {
            None => {
                updated.contact.client_id = self.client_of(coach, id, &found).await?;
                StoredContact::first(coach, updated, phone_key)
            }
            Some(live) => live.next(updated, phone_key, fact.now),
        };
        let old = found.live().map(StoredContact::addresses).unwrap_or_default();
        let put = self.put(&record, found.version());
        let event = fact.crm_event(|| match found.live() {
            None => Some(Event::contact_created(coach, record.contact(), ContactSource::Application)),
            Some(live) => Event::contact_updated(coach, live.contact(), record.contact()),
        });
        let moves = self.move_addresses(coach, id, old, record.addresses()).await?;
        Ok(Unit::new().write([put]).write(moves).events(event))
    }

    /// Stores that a contact was merged into another, as an alias. The surviving contact shows the contact's client,
    /// unless it is a client itself.
    ///
    /// A contact that is merged into an erased one is erased too. So is the contact that an erased client's contact had
    /// been merged into, unless that is another client. Both wait until the merge is applied again (`is_settled`):
    /// merges that are still on their way may lead elsewhere.
    ///
    /// The transaction checks the chain of merges that was read, so two merges never close a circle.
    ///
    /// A merge with another contact than before is an event.
    pub async fn merge(
        &self,
        coach: &CoachId,
        merge: &Merge,
        fact: FactContext<'_>,
        is_settled: bool,
    ) -> Result<MergeDecision, StoreError> {
        let FactContext { occurred_at, now, .. } = fact;
        let ends = |outcome| Ok(MergeDecision::Ends(outcome));
        let own = ContactRef::new(coach, merge.contact_id);
        let merged = Merged::new(coach, merge.merged_into, occurred_at);
        let found = self.find(coach, merge.contact_id).await?;
        if found.merged_at() > Some(occurred_at) || found.erased_at().is_some_and(|erased_at| erased_at < occurred_at) {
            return ends(MergeOutcome::Done);
        }
        if let Some(erased_at) = found.erased_at() {
            self.note_merge(&own, &merged).await?;
            let erased = if is_settled { self.erase(&own, erased_at, now).await? } else { ErasedContacts::default() };
            return ends(MergeOutcome::Repeats(erased));
        }
        let chain = self.chain(coach, merge.merged_into, MAX_FOLLOWED).await?;
        if chain.iter().any(|(id, _)| *id == merge.contact_id) {
            // The merge that moves the target on may still arrive.
            return ends(MergeOutcome::Waits("the contact that merged_into names was merged into this one"));
        }
        let client = self.client_of(coach, merge.contact_id, &found).await?;
        let mut writes = self.leave_addresses(&own, &found).await?;
        let alias = FormerContact::alias(&own, &found, merged, now);
        writes.push(self.put(&alias, found.version()));
        writes.extend(self.chain_writes(coach, &chain, client.as_ref(), now));
        if let Some(client) = &client {
            writes.extend(self.unlink_former_end(coach, &found, &chain, client, now).await?);
        }
        if writes.len() > MAX_WRITES {
            let reason = "merged_into was itself merged through some hundred contacts: name the last of them";
            return ends(MergeOutcome::Refused(reason));
        }
        let (end, state) = end_of(&chain);
        let is_new = found.merged_into() != Some(merge.merged_into);
        let event = fact.crm_event(|| {
            let stays = state.person(end).filter(|_| is_new)?;
            Some(Event::contact_merged(coach, stays, merge.contact_id, alias.merge_stored_at()?))
        });
        let end = match state {
            ContactState::Erased if is_settled => MergeEnd::Erases,
            ContactState::Erased => MergeEnd::Repeats,
            ContactState::Unknown if client.is_some() => MergeEnd::Repeats,
            ContactState::Unknown | ContactState::Live(_) | ContactState::Merged { .. } => MergeEnd::Done,
        };
        Ok(MergeDecision::Commits(Unit::new().write(writes).events(event), end))
    }

    /// Does what is left to do for a merge that is committed.
    pub async fn end_merge(
        &self,
        coach: &CoachId,
        merge: &Merge,
        end: MergeEnd,
        fact: FactContext<'_>,
    ) -> Result<MergeOutcome, StoreError> {
        Ok(match end {
            MergeEnd::Done => MergeOutcome::Done,
            MergeEnd::Repeats => MergeOutcome::Repeats(ErasedContacts::default()),
            MergeEnd::Erases => {
                MergeOutcome::Repeats(self.erase_all(coach, vec![merge.contact_id], fact.occurred_at, fact.now).await?)
            }
        })
    }

    /// Parts of a transaction: check that the contacts of a chain are as they were read. The end gets the client, if it
    /// is live and no client.
    fn chain_writes(&self, coach: &CoachId, chain: &Chain, client: Option<&ClientId>, now: Timestamp) -> Vec<Write> {
        let is_free = matches!(end_of(chain).1, ContactState::Live(end) if end.contact().client_id.is_none());
        // A tombstone stays as it is for ever.
        let changing = chain.iter().filter(|(_, item)| !item.is_erased());
        let writes = changing.map(|(id, item)| match item.live() {
            Some(end) if is_free && client.is_some() => self.link_write(end, client, now),
            _ => self.table.write(contact_key(coach, *id)).when_version(item.version()).check(Part::Contact),
        });
        writes.collect()
    }

    /// Part of a transaction: takes the client from the contact that an alias led to before, if the alias brought it.
    async fn unlink_former_end(
        &self,
        coach: &CoachId,
        found: &ContactItem,
        chain: &Chain,
        client: &ClientId,
        now: Timestamp,
    ) -> Result<Option<Write>, StoreError> {
        let Some(before) = found.merged_into() else { return Ok(None) };
        let (id, ContactState::Live(end)) = end_of(&self.chain(coach, before, usize::MAX).await?) else {
            return Ok(None);
        };
        let is_left = chain.iter().all(|(other, _)| *other != id);
        let is_linked = end.client_by_merge && end.contact().client_id.as_ref() == Some(client);
        Ok((is_left && is_linked).then(|| self.link_write(&end, None, now)))
    }

    /// The write that gives a live contact the client of a merge, or takes it away.
    pub(super) fn link_write(&self, target: &StoredContact, client: Option<&ClientId>, now: Timestamp) -> Write {
        self.put(&target.with_client_by_merge(client, now), Some(target.version))
    }
}
