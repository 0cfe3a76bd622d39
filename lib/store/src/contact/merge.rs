//! Parts of the transaction that stores a merge as an alias. No merge rewrites another contact's alias: readers follow
//! the aliases, and the transaction checks those that were read, so two merges never close a circle.

use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;

use super::Contacts;
use super::item::{ContactItem, FormerContact, Merged, StoredContact, contact_key};
use super::state::{Chain, ContactState, end_of};
use crate::contact_ref::ContactRef;
use crate::db::{Part, StoreError, Write, to_item};

impl Contacts {
    /// Part of a transaction: stores the alias that a merge leaves in the place of the contact that was found.
    pub fn put_alias(&self, alias: &FormerContact, found: &ContactItem) -> Write {
        self.put(alias, found.version())
    }

    /// Part of a transaction: stores the merge of an erased contact, unless a later merge is stored.
    pub fn keep_merge(&self, contact: &ContactRef, merge: &Merged) -> Write {
        let tombstone = self.table.write(contact_key(&contact.coach_id, contact.contact_id));
        let noted = to_item(merge).into_iter().fold(tombstone, |write, (name, value)| write.set(&name, value));
        noted.when("attribute_not_exists(merged_at) OR merged_at <= :merged_at", []).update(Part::LaterFact)
    }

    /// Parts of a transaction: check that the contacts of a chain are as they were read. The end gets the client, if it
    /// is live and no client.
    pub fn extend_chain(
        &self,
        coach: &CoachId,
        chain: &Chain,
        client: Option<&ClientId>,
        now: Timestamp,
    ) -> impl Iterator<Item = Write> {
        let is_free = matches!(end_of(chain).1, ContactState::Live(end) if end.contact().client_id.is_none());
        // A tombstone stays as it is for ever.
        let changing = chain.iter().filter(|(_, item)| !item.is_erased());
        changing.map(move |(id, item)| match item.live() {
            Some(end) if is_free && client.is_some() => self.link_merged(end, client, now),
            _ => self.table.write(contact_key(coach, *id)).when_version(item.version()).check(Part::Contact),
        })
    }

    /// Reads the contact whose client the contact that was found has brought by an earlier merge, if it is not on the
    /// chain of the new merge. That contact loses the client.
    pub async fn former_end(
        &self,
        coach: &CoachId,
        found: &ContactItem,
        chain: &Chain,
        client: &ClientId,
    ) -> Result<Option<StoredContact>, StoreError> {
        let Some(before) = found.merged_into() else { return Ok(None) };
        let (id, ContactState::Live(end)) = end_of(&self.chain(coach, before, usize::MAX).await?) else {
            return Ok(None);
        };
        let is_left = chain.iter().all(|(other, _)| *other != id);
        let is_linked = end.client_by_merge && end.contact().client_id.as_ref() == Some(client);
        Ok((is_left && is_linked).then_some(*end))
    }

    /// Part of a transaction: gives a live contact the client of a merge, or takes it away.
    pub fn link_merged(&self, target: &StoredContact, client: Option<&ClientId>, now: Timestamp) -> Write {
        self.put(&target.with_client_by_merge(client, now), Some(target.version))
    }
}
