//! Erasure: a contact leaves its id and dates, so that nothing that comes late brings it back, and what is about it goes: opportunities,
//! whom events are with, and (by the caller, whose table they are in) recorded answers.
//!
//! An index may lag, and what is on its way may still be written: whoever erases a contact does it again when that has ended.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, TransactWriteItem};
use domain::id::{ClientId, CoachId, ContactId};
use domain::outgoing::OutgoingFact;
use domain::time::Timestamp;

use super::record::{ErasedContact, Stored};
use super::{Contacts, PREFIX};
use crate::contact_ref::ContactRef;
use crate::db::{Index, Item, MAX_ROUNDS, StoreError, Transacted, n, s, sk_of, stand_back, write};
use crate::outbox::Outbox;
use crate::workspace::key_of;
use crate::{booking, opportunity};

/// A chain of merges, from its first contact to its end.
type Chain = Vec<(ContactId, Option<Stored>)>;

impl Contacts {
    /// Parts of a client's erasure: the contact that the client is goes, with its addresses and what has not been told of it. One that is
    /// another's stays.
    pub(crate) async fn erasure(
        &self,
        lead: &ContactRef,
        client: &ClientId,
        outbox: &Outbox,
        said_at: Timestamp,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let chain = self.chain(&lead.coach_id, lead.contact_id).await?;
        match chain.last() {
            Some((end, Some(stored @ Stored::Live(live)))) if is_of(&chain, client) => {
                let mut writes = self.erasing(&ContactRef::new(&lead.coach_id, *end), Some(stored), said_at).await?;
                writes.extend(OutgoingFact::contact_ids(live.contact()).map(|id| outbox.remove(id.as_str())));
                Ok(writes)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Erases the contacts that a client was, and what is about them; which they are.
    pub async fn erase(
        &self,
        lead: &ContactRef,
        client: &ClientId,
        said_at: Timestamp,
    ) -> Result<Vec<ContactRef>, StoreError> {
        let chain = self.chain(&lead.coach_id, lead.contact_id).await?;
        let going = if is_of(&chain, client) {
            chain.iter().map(|(id, _)| *id).collect()
        } else if chain.len() > 1 {
            // It lives on as somebody who is another client.
            vec![lead.contact_id]
        } else {
            Vec::new()
        };
        self.erase_all(&lead.coach_id, going, said_at).await
    }

    /// Erases contacts and those that were merged into them, and what is about them; which they are.
    pub async fn erase_all(
        &self,
        coach: &CoachId,
        contacts: Vec<ContactId>,
        said_at: Timestamp,
    ) -> Result<Vec<ContactRef>, StoreError> {
        let mut going = contacts;
        let mut gone = BTreeSet::new();
        while let Some(id) = going.pop() {
            if gone.insert(id) {
                let contact = ContactRef::new(coach, id);
                self.erase_one(&contact, said_at).await?;
                going.extend(self.erase_about(&contact).await?);
            }
        }
        Ok(gone.into_iter().map(|id| ContactRef::new(coach, id)).collect())
    }

    /// Leaves a tombstone. To do it again finds it done.
    async fn erase_one(&self, contact: &ContactRef, said_at: Timestamp) -> Result<(), StoreError> {
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let found = self.find(&contact.coach_id, contact.contact_id).await?;
            if let Some(Stored::Erased(_)) = found {
                return Ok(());
            }
            let writes = self.erasing(contact, found.as_ref(), said_at).await?;
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(());
            }
        }
        Err(StoreError::kept_changing("the contact"))
    }

    /// Writes that leave a tombstone in the place of what was found.
    async fn erasing(
        &self,
        contact: &ContactRef,
        found: Option<&Stored>,
        said_at: Timestamp,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let (version, addresses) = match found {
            Some(Stored::Live(live)) => (Some(live.version), live.addresses()),
            Some(Stored::Merged(merged)) => (Some(merged.version), Default::default()),
            Some(Stored::Erased(_)) | None => (None, Default::default()),
        };
        let tombstone = ErasedContact::new(contact, found, said_at);
        let mut writes = vec![self.put(&tombstone, version)];
        writes
            .extend(self.move_addresses(&contact.coach_id, contact.contact_id, (addresses, Default::default())).await?);
        Ok(writes)
    }

    /// What is about a contact, as far as the index knows it.
    async fn about(&self, contact: &ContactRef) -> Result<Vec<Item>, StoreError> {
        let index = Index { table: &self.table, name: "by_contact", hash: "contact_ref" };
        self.db.keys_in(&index, &contact.to_string()).await
    }

    /// The contacts that were merged into a contact, as far as the index knows them.
    pub(super) async fn merged_into(&self, contact: &ContactRef) -> Result<Vec<ContactId>, StoreError> {
        Ok(self.about(contact).await?.iter().filter_map(|item| contact_of(sk_of(item))).collect())
    }

    /// Removes what is about a contact, as far as the index knows it; the contacts that were merged into it.
    async fn erase_about(&self, contact: &ContactRef) -> Result<Vec<ContactId>, StoreError> {
        let mut merged = Vec::new();
        for item in self.about(contact).await? {
            let sk = sk_of(&item);
            if sk.starts_with(opportunity::PREFIX) {
                self.delete_about(contact, sk).await?;
            } else if sk.starts_with(booking::EVENT_PREFIX) {
                self.forget_lead(contact, sk).await?;
            } else if let Some(id) = contact_of(sk) {
                // The index may lag: it may have been merged elsewhere since.
                let found = self.find(&contact.coach_id, id).await?;
                merged.extend(found.filter(|found| found.merged_into() == Some(contact.contact_id)).map(|_| id));
            }
        }
        Ok(merged)
    }

    async fn delete_about(&self, contact: &ContactRef, sk: &str) -> Result<(), StoreError> {
        write("DeleteItem", || {
            let delete =
                self.db.client().delete_item().table_name(&self.table).set_key(Some(key_of(&contact.coach_id, sk)));
            delete
                .condition_expression("contact_ref = :about")
                .expression_attribute_values(":about", s(contact.to_string()))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        })
        .await?;
        Ok(())
    }

    /// The event stays, as time that is taken, and is with nobody.
    async fn forget_lead(&self, contact: &ContactRef, sk: &str) -> Result<(), StoreError> {
        write("UpdateItem", || {
            let update =
                self.db.client().update_item().table_name(&self.table).set_key(Some(key_of(&contact.coach_id, sk)));
            update
                .update_expression("REMOVE lead_id, contact_ref ADD version :one")
                .condition_expression("contact_ref = :about")
                .expression_attribute_values(":about", s(contact.to_string()))
                .expression_attribute_values(":one", n(1))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        })
        .await?;
        Ok(())
    }
}

/// Whether the contact at the end of the chain is the client, or will be once the link that was merged into it has come to it, or is erased
/// already.
fn is_of(chain: &Chain, client: &ClientId) -> bool {
    match chain.last() {
        Some((_, Some(Stored::Live(live)))) if live.contact().client_id.is_some() => {
            live.contact().client_id.as_ref() == Some(client)
        }
        Some((_, Some(Stored::Erased(_)))) => true,
        _ => chain.iter().any(|(_, stored)| stored.as_ref().and_then(Stored::client_id) == Some(client)),
    }
}

/// The contact whose key this is, if it is a contact's.
fn contact_of(sk: &str) -> Option<ContactId> {
    ContactId::parse(sk.strip_prefix(PREFIX)?).ok()
}
