//! Erasure of contacts. A contact leaves a tombstone of its id and dates, so that no late fact restores it. Its
//! opportunities are deleted, its events lose their contact, and the caller removes recorded answers.
//!
//! A merged or erased contact keeps the id of its client. A merge from before the erasure that arrives after it
//! therefore erases the other contact too.
//!
//! The index may lag, and a write may be under way: the caller erases again later.

use std::collections::BTreeSet;

use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ContactId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Contacts;
use super::item::{ContactItem, ContactTombstone, contact_key, contact_of};
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, Write, query_all, retry, s, sk_of, to_attribute};
use crate::workspace::key_of;
use crate::{booking, opportunity};

/// A chain of merges, from its first contact to its end.
type Chain = [(ContactId, Option<ContactItem>)];

/// Contacts to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactsToErase {
    pub contacts: Vec<ContactId>,
    /// The client that the contacts were. A late merge from before the erasure adds further contacts.
    pub client: Option<ClientId>,
    /// The time of the fact that erased.
    pub erased_at: FactTime,
}

/// The erasure of a contact: the client that the contact was, if known, and the time of the fact.
#[derive(Clone, Copy)]
struct Erasure<'a> {
    client: Option<&'a ClientId>,
    occurred_at: FactTime,
}

/// Contacts that were erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedContacts {
    pub contacts: Vec<ContactRef>,
    /// False if more items about them are left.
    pub is_done: bool,
}

/// Opportunities and events that one call deletes, or removes their contact from.
const MAX_ERASED: usize = 200;
/// Concurrent writes of opportunities and events.
const CONCURRENT_WRITES: usize = 16;

impl ContactsToErase {
    pub(super) fn without_client(contacts: impl Into<Vec<ContactId>>, erased_at: FactTime) -> Self {
        Self { contacts: contacts.into(), client: None, erased_at }
    }
}

impl Contacts {
    /// Parts of a client's erasure: erase the contact that the client is, with its addresses.
    pub(crate) async fn erasure_writes(
        &self,
        lead: &ContactRef,
        client: &ClientId,
        occurred_at: FactTime,
    ) -> Result<Vec<Write>, StoreError> {
        let chain = self.chain(&lead.coach_id, lead.contact_id).await?;
        let (chain, _) = split_at_later_merge(&chain, occurred_at);
        match chain.last() {
            Some((end, Some(stored @ ContactItem::Live(_)))) if belongs_to(chain, client) => {
                let end = ContactRef::new(&lead.coach_id, *end);
                self.tombstone_writes(&end, Some(stored), Erasure { client: Some(client), occurred_at }).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Erases the contacts that a client was, and the items about them. Contacts that they were merged into later stay,
    /// and lose their link to the client.
    pub async fn erase(
        &self,
        lead: &ContactRef,
        client: &ClientId,
        occurred_at: FactTime,
        now: Timestamp,
    ) -> Result<ErasedContacts, StoreError> {
        let whole = self.chain(&lead.coach_id, lead.contact_id).await?;
        let (chain, _) = split_at_later_merge(&whole, occurred_at);
        let contacts: Vec<ContactId> = if belongs_to(chain, client) {
            chain.iter().map(|(id, _)| *id).collect()
        } else if chain.len() > 1 {
            // The surviving contact is another client.
            vec![lead.contact_id]
        } else {
            Vec::new()
        };
        for (id, _) in whole.iter().filter(|(id, _)| !contacts.contains(id)) {
            self.unlink(&lead.coach_id, *id, client, now).await?;
        }
        let targets = ContactsToErase { contacts, client: Some(client.clone()), erased_at: occurred_at };
        self.erase_all(&lead.coach_id, targets).await
    }

    /// Removes the link to a client from a contact, if the contact has it.
    pub(super) async fn unlink(
        &self,
        coach: &CoachId,
        contact: ContactId,
        client: &ClientId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retry("the contact", || async {
            let found = self.find(coach, contact).await?.filter(|found| found.client_id() == Some(client));
            let Some(write) = found.and_then(|found| self.unlink_write(found, now)) else { return Ok(Some(())) };
            Ok(self.table.db.transact(&[write]).await?.is_done().then_some(()))
        })
        .await
    }

    /// The write that removes the link to its client from a contact, unless the contact is erased.
    pub(super) fn unlink_write(&self, found: ContactItem, now: Timestamp) -> Option<Write> {
        match found {
            ContactItem::Live(live) => Some(self.link_write(&live, None, now)),
            ContactItem::Merged(merged) => {
                let version = merged.version;
                Some(self.put(&merged.unlinked(), Some(version)))
            }
            ContactItem::Erased(_) => None,
        }
    }

    /// Erases contacts, the contacts that were merged into them, and up to `MAX_ERASED` opportunities and events about
    /// them.
    pub async fn erase_all(
        &self,
        coach: &CoachId,
        ContactsToErase { contacts, client, erased_at }: ContactsToErase,
    ) -> Result<ErasedContacts, StoreError> {
        let mut targets: Vec<_> = contacts.into_iter().map(|id| (id, client.as_ref())).collect();
        let mut erased_ids = BTreeSet::new();
        let (mut most, mut is_done) = (MAX_ERASED, true);
        while !targets.is_empty() {
            targets.retain(|(id, _)| erased_ids.insert(*id));
            let mut erasing = Vec::new();
            for (id, client) in &targets {
                let erasure = Erasure { client: *client, occurred_at: erased_at };
                erasing.push(self.erase_merged(coach, *id, erasure));
            }
            let erased: Vec<_> = stream::iter(erasing).buffer_unordered(CONCURRENT_WRITES).try_collect().await?;
            targets = Vec::new();
            for (contact, merged, about) in erased {
                targets.extend(merged.into_iter().map(|id| (id, None)));
                let some = &about[..about.len().min(most)];
                self.erase_about(&contact, some).await?;
                most -= some.len();
                is_done &= some.len() == about.len();
            }
        }
        Ok(ErasedContacts { contacts: erased_ids.into_iter().map(|id| ContactRef::new(coach, id)).collect(), is_done })
    }

    /// Erases a contact. Returns the contact, the contacts that were merged into it, and the keys of other items about
    /// it.
    async fn erase_merged(
        &self,
        coach: &CoachId,
        id: ContactId,
        erasure: Erasure<'_>,
    ) -> Result<(ContactRef, Vec<ContactId>, Vec<Item>), StoreError> {
        let contact = ContactRef::new(coach, id);
        self.erase_one(&contact, erasure).await?;
        let (merged, about) = self.about(&contact).await?;
        // The index may lag: a contact may have been merged elsewhere since.
        let merged = self.find_all(coach, &merged).await?.into_iter();
        let merged = merged.filter(|(_, stored)| stored.merged_into() == Some(id)).map(|(id, _)| id).collect();
        Ok((contact, merged, about))
    }

    /// Replaces a contact with a tombstone. On a tombstone, stores the client if it was not known.
    async fn erase_one(&self, contact: &ContactRef, erasure: Erasure<'_>) -> Result<(), StoreError> {
        retry("the contact", || async {
            let found = self.find(&contact.coach_id, contact.contact_id).await?;
            if let Some(ContactItem::Erased(erased)) = &found {
                if let Some(client) = erasure.client.filter(|_| erased.client_id.is_none()) {
                    let tombstone = self.table.write(contact_key(&contact.coach_id, contact.contact_id));
                    let noted = tombstone.set("client_id", s(client.as_str()));
                    let is_unknown = "attribute_exists(erased_at) AND attribute_not_exists(client_id)";
                    noted.when(is_unknown, []).update_now().await?;
                }
                return Ok(Some(()));
            }
            let writes = self.tombstone_writes(contact, found.as_ref(), erasure).await?;
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(()))
        })
        .await
    }

    /// Parts of a transaction: replace the item that was found with a tombstone.
    async fn tombstone_writes(
        &self,
        contact: &ContactRef,
        found: Option<&ContactItem>,
        Erasure { client, occurred_at }: Erasure<'_>,
    ) -> Result<Vec<Write>, StoreError> {
        let addresses = found.map(ContactItem::addresses).unwrap_or_default();
        let tombstone = ContactTombstone::new(contact, found, occurred_at).with_client(client);
        let mut writes = vec![self.put(&tombstone, found.and_then(ContactItem::version))];
        writes.extend(self.move_addresses(&contact.coach_id, contact.contact_id, addresses, Default::default()).await?);
        Ok(writes)
    }

    /// Reads the keys of the contacts that were merged into a contact, and of other items about it. The index may lag.
    async fn about(&self, contact: &ContactRef) -> Result<(Vec<ContactId>, Vec<Item>), StoreError> {
        let query = self.table.query("contact_ref = :contact", [(":contact", s(contact.to_string()))]);
        let mut rest = query_all(query.index_name("by_contact")).await?;
        let merged = rest.iter().filter_map(|item| contact_of(sk_of(item))).collect();
        rest.retain(|item| contact_of(sk_of(item)).is_none());
        Ok((merged, rest))
    }

    /// Reads the contacts that were merged into a contact, with their items. The index may lag.
    pub(super) async fn merged_into(&self, contact: &ContactRef) -> Result<Vec<(ContactId, ContactItem)>, StoreError> {
        let merged = self.about(contact).await?.0;
        self.find_all(&contact.coach_id, &merged).await
    }

    /// Deletes the items about a contact, or removes the contact from them.
    async fn erase_about(&self, contact: &ContactRef, about: &[Item]) -> Result<(), StoreError> {
        let erased: Vec<_> = about.iter().map(|item| self.erase_item(contact, sk_of(item))).collect();
        stream::iter(erased).buffer_unordered(CONCURRENT_WRITES).try_collect().await
    }

    async fn erase_item(&self, contact: &ContactRef, sk: &str) -> Result<(), StoreError> {
        let about = self.table.write(key_of(&contact.coach_id, sk));
        let about = about.when("contact_ref = :about", [(":about", s(contact.to_string()))]);
        if sk.starts_with(opportunity::PREFIX) {
            about.delete_now().await?;
        } else if sk.starts_with(booking::EVENT_PREFIX) {
            // The event stays as busy time without a contact.
            about.remove(["lead_id", "contact_ref"]).count("version").update_now().await?;
        }
        Ok(())
    }

    /// Stores on a tombstone where the contact had been merged, unless a later merge is stored.
    pub(super) async fn note_merge(
        &self,
        contact: &ContactRef,
        into: ContactId,
        occurred_at: FactTime,
    ) -> Result<(), StoreError> {
        let tombstone = self
            .table
            .write(contact_key(&contact.coach_id, contact.contact_id))
            .set("merged_into", to_attribute(&into))
            .set("merged_at", to_attribute(&occurred_at))
            .set("contact_ref", s(ContactRef::new(&contact.coach_id, into).to_string()))
            .when("attribute_exists(erased_at)", [])
            .when("attribute_not_exists(merged_at) OR merged_at <= :merged_at", []);
        tombstone.update_now().await?;
        Ok(())
    }
}

/// Splits a chain of merges after the first contact that was merged later than `occurred_at`.
pub(super) fn split_at_later_merge(chain: &Chain, occurred_at: FactTime) -> (&Chain, &Chain) {
    let later = |(_, stored): &(ContactId, Option<ContactItem>)| {
        stored.as_ref().and_then(ContactItem::merged_at) > Some(occurred_at)
    };
    chain.split_at(chain.iter().position(later).map_or(chain.len(), |place| place + 1))
}

/// Returns true if the chain belongs to the client. Its end is the client, is erased, or gets the link to the client
/// from a contact in the chain.
fn belongs_to(chain: &Chain, client: &ClientId) -> bool {
    match chain.last() {
        Some((_, Some(ContactItem::Live(live)))) if live.contact().client_id.is_some() => {
            live.contact().client_id.as_ref() == Some(client)
        }
        Some((_, Some(ContactItem::Erased(_)))) => true,
        _ => chain.iter().any(|(_, stored)| stored.as_ref().and_then(ContactItem::client_id) == Some(client)),
    }
}
