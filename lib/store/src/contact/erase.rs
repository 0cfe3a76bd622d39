//! Erasure of contacts. A contact leaves a tombstone of its id and dates, so that no late fact restores it. Its
//! opportunities are deleted, its events lose their contact, and the caller removes recorded answers.
//!
//! A tombstone keeps the merge of the contact and the client that it was. A merge from before the erasure that arrives
//! after it therefore erases the other contact too.
//!
//! The index may lag, and a write may be under way: the caller erases again later.

use std::collections::BTreeSet;

use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ContactId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Contacts;
use super::item::{ContactItem, FormerContact};
use super::state::About;
use crate::about_contact;
use crate::contact_ref::ContactRef;
use crate::db::{StoreError, retry, s};
use crate::workspace::key_of;

/// Contacts that were erased.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasedContacts {
    pub contacts: Vec<ContactRef>,
    /// True if more items about them are left.
    pub has_more: bool,
}

/// Opportunities and events that one call deletes, or removes their contact from.
const MAX_ERASED: usize = 200;
/// Concurrent writes of contacts, opportunities and events.
const CONCURRENT_WRITES: usize = 16;

impl Contacts {
    /// Erases a contact that a client was, and the items about it. The contacts that it had been merged into are erased
    /// too, unless they are another client. Contacts that they were merged into later stay, without the client.
    pub async fn erase(
        &self,
        first: &ContactRef,
        erased_at: FactTime,
        now: Timestamp,
    ) -> Result<ErasedContacts, StoreError> {
        let coach = &first.coach_id;
        let contacts = retry("the contact", || async {
            let mut chain = self.chain(coach, first.contact_id, usize::MAX).await?;
            let client = self.client_of(coach, first.contact_id, &chain[0].1).await?;
            let later = chain.iter().position(|(_, found)| found.merged_at() > Some(erased_at));
            let beyond = chain.split_off(later.map_or(chain.len(), |last| last + 1));
            if client.is_none() || chain.last().is_some_and(|(_, found)| is_another_client(found, client.as_ref())) {
                chain.truncate(1);
            }
            let end = beyond.last().and_then(|(_, found)| found.live());
            let linked = end.filter(|end| client.is_some() && end.contact().client_id == client);
            let unlinks: Vec<_> = linked.into_iter().map(|end| self.link_merged(end, None, now)).collect();
            let is_done = unlinks.is_empty() || self.table.db.transact(&unlinks).await?.is_done();
            Ok(is_done.then(|| chain.into_iter().map(|(id, _)| id).collect()))
        });
        self.erase_all(coach, contacts.await?, erased_at, now).await
    }

    /// Erases contacts, the contacts that were merged into them, and up to `MAX_ERASED` opportunities and events about
    /// them.
    pub async fn erase_all(
        &self,
        coach: &CoachId,
        mut contacts: Vec<ContactId>,
        erased_at: FactTime,
        now: Timestamp,
    ) -> Result<ErasedContacts, StoreError> {
        let (mut erased, mut others) = (BTreeSet::new(), Vec::new());
        while !contacts.is_empty() {
            contacts.retain(|id| erased.insert(*id));
            let erasing: Vec<_> =
                contacts.drain(..).map(|id| self.erase_one(ContactRef::new(coach, id), erased_at)).collect();
            let found: Vec<_> = stream::iter(erasing).buffer_unordered(CONCURRENT_WRITES).try_collect().await?;
            for (contact, about) in found {
                contacts.extend(about.aliases.into_iter().map(|(id, _)| id));
                others.extend(about.others.into_iter().map(|sk| (contact.clone(), sk)));
            }
        }
        let has_more = others.len() > MAX_ERASED;
        let erasing: Vec<_> =
            others.iter().take(MAX_ERASED).map(|(contact, sk)| self.erase_item(contact, sk, now)).collect();
        stream::iter(erasing).buffer_unordered(CONCURRENT_WRITES).try_collect::<()>().await?;
        let contacts = erased.into_iter().map(|id| ContactRef::new(coach, id)).collect();
        Ok(ErasedContacts { contacts, has_more })
    }

    /// Replaces a contact with a tombstone. Returns the items about it.
    async fn erase_one(&self, contact: ContactRef, erased_at: FactTime) -> Result<(ContactRef, About), StoreError> {
        retry("the contact", || async {
            let found = self.find(&contact.coach_id, contact.contact_id).await?;
            if found.is_erased() {
                return Ok(Some(()));
            }
            let old = found.addresses();
            let holders = self.holders(&contact.coach_id, &old, &[None, None]).await?;
            let mut writes = self.move_addresses(&contact, &old, &[None, None], &holders);
            writes.push(self.put(&FormerContact::tombstone(&contact, &found, erased_at), found.version()));
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(()))
        })
        .await?;
        let about = self.about(&contact).await?;
        Ok((contact, about))
    }

    /// Deletes an opportunity of a contact, or removes the contact from an event.
    async fn erase_item(&self, contact: &ContactRef, sk: &str, now: Timestamp) -> Result<(), StoreError> {
        let about = self.table.write(key_of(&contact.coach_id, sk));
        let about = about.when("contact_ref = :about", [(":about", s(contact.to_string()))]);
        about_contact::forget(about, sk, now).await
    }
}

/// Returns true if a contact that is not erased is a client other than `client`.
pub(super) fn is_another_client(found: &ContactItem, client: Option<&ClientId>) -> bool {
    !found.is_erased() && found.client_id().is_some() && found.client_id() != client
}
