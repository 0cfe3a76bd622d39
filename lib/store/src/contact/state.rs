//! State of a contact, along the chain of its merges, and checks of it for transactions.

use std::collections::HashSet;

use domain::id::{CoachId, ContactId};

use super::Contacts;
use super::item::{ContactItem, StoredContact, contact_key, contact_of, contact_sk};
use crate::contact_ref::ContactRef;
use crate::db::{Item, Part, StoreError, Write, sk_of};

/// Most merges that a request follows from a contact to its surviving contact.
const MAX_FOLLOWED: usize = 100;

/// The state of a contact.
#[derive(Debug, Clone)]
pub enum ContactState {
    /// The contact is not stored yet.
    Unknown,
    Live(Box<StoredContact>),
    /// The contact was merged into another.
    Merged {
        into: ContactId,
    },
    /// No later fact restores the contact.
    Erased,
}

impl ContactState {
    /// The contact if it is live, or else the id of its surviving contact, if there is one.
    pub fn live(&self) -> Result<&StoredContact, Option<ContactId>> {
        match self {
            Self::Live(contact) => Ok(contact),
            Self::Merged { into } => Err(Some(*into)),
            Self::Unknown | Self::Erased => Err(None),
        }
    }

    /// Parses the state of a contact from its item. `into` is then the next contact of the chain, which may be merged
    /// too: [`Contacts::survivor`] follows the chain to its end.
    pub(crate) fn from_item(item: Option<Item>) -> Result<Self, StoreError> {
        Ok(match item.map(ContactItem::from_item).transpose()? {
            None => Self::Unknown,
            Some(ContactItem::Live(contact)) => Self::Live(contact),
            Some(ContactItem::Merged(merged)) => Self::Merged { into: merged.merged_into },
            Some(ContactItem::Erased(_)) => Self::Erased,
        })
    }
}

impl Contacts {
    /// Part of a transaction: checks that the contact is stored, and neither merged away nor erased.
    pub(crate) fn check_live(&self, coach: &CoachId, contact: ContactId) -> Write {
        self.table.write(contact_key(coach, contact)).when("attribute_exists(listed)", []).check(Part::Contact)
    }

    /// Part of a transaction: checks that the contact is not erased. It need not be stored.
    pub(crate) fn check_not_erased(&self, coach: &CoachId, contact: ContactId) -> Write {
        self.table.write(contact_key(coach, contact)).when("attribute_not_exists(erased_at)", []).check(Part::Contact)
    }

    /// Reads which of these contacts were erased.
    pub async fn erased_among(&self, contacts: &HashSet<ContactRef>) -> Result<HashSet<ContactRef>, StoreError> {
        let keys = contacts.iter().map(|contact| contact_key(&contact.coach_id, contact.contact_id));
        let mut found = self.table.read(keys.collect()).await?;
        found.retain(|item| item.contains_key("erased_at"));
        let is_erased = |contact: &&ContactRef| {
            let key = contact_key(&contact.coach_id, contact.contact_id);
            found.iter().any(|item| key.iter().all(|(name, value)| item.get(name) == Some(value)))
        };
        Ok(contacts.iter().filter(is_erased).cloned().collect())
    }

    /// Reads the state of a contact. `into` is the end of the chain of merges: a live contact, or one that is not
    /// stored yet. A contact that was merged into an erased one counts as erased.
    pub async fn state(&self, coach: &CoachId, contact: ContactId) -> Result<ContactState, StoreError> {
        let mut chain = self.chain(coach, contact).await?;
        if chain.iter().any(|(_, stored)| matches!(stored, Some(ContactItem::Erased(_)))) {
            return Ok(ContactState::Erased);
        }
        Ok(match chain.pop() {
            Some((end, Some(ContactItem::Live(live)))) if end == contact => ContactState::Live(live),
            Some((end, _)) if end != contact => ContactState::Merged { into: end },
            _ => ContactState::Unknown,
        })
    }

    /// Reads the id of the surviving contact: the contact itself, or the end of its chain of merges. Returns `None` if
    /// the contact is erased, or not stored.
    pub async fn survivor(&self, coach: &CoachId, contact: ContactId) -> Result<Option<ContactId>, StoreError> {
        Ok(match self.state(coach, contact).await? {
            ContactState::Live(_) => Some(contact),
            ContactState::Merged { into } => Some(into),
            ContactState::Unknown | ContactState::Erased => None,
        })
    }

    /// Reads the surviving contact. Returns `None` if it is erased, not stored, or lies beyond [`MAX_FOLLOWED`] merges.
    pub(super) async fn live_survivor(
        &self,
        coach: &CoachId,
        contact: ContactId,
    ) -> Result<Option<StoredContact>, StoreError> {
        let mut chain = self.chain_of(coach, contact, MAX_FOLLOWED).await?;
        let is_erased = chain.iter().any(|(_, stored)| matches!(stored, Some(ContactItem::Erased(_))));
        Ok(match chain.pop() {
            Some((_, Some(ContactItem::Live(live)))) if !is_erased => Some(*live),
            _ => None,
        })
    }

    /// Reads a contact and the chain of its merges, in order. The chain holds each contact once. Only merges of erased
    /// contacts, which are stored as they arrive, can close a circle.
    pub(super) async fn chain(
        &self,
        coach: &CoachId,
        first: ContactId,
    ) -> Result<Vec<(ContactId, Option<ContactItem>)>, StoreError> {
        self.chain_of(coach, first, usize::MAX).await
    }

    /// Reads the first `most` contacts of a chain.
    async fn chain_of(
        &self,
        coach: &CoachId,
        first: ContactId,
        most: usize,
    ) -> Result<Vec<(ContactId, Option<ContactItem>)>, StoreError> {
        let mut chain = Vec::new();
        let mut next = Some(first);
        while let Some(id) = next.filter(|_| chain.len() < most) {
            if chain.iter().any(|(other, _)| *other == id) {
                if chain.iter().any(|(_, stored)| matches!(stored, Some(ContactItem::Erased(_)))) {
                    break;
                }
                return Err(StoreError::corrupt("contact", "merges form a circle"));
            }
            let stored = self.find(coach, id).await?;
            next = stored.as_ref().and_then(ContactItem::merged_into);
            chain.push((id, stored));
        }
        Ok(chain)
    }

    /// Reads the stored items of contacts, in the order of their ids.
    pub(super) async fn find_all(
        &self,
        coach: &CoachId,
        contacts: &[ContactId],
    ) -> Result<Vec<(ContactId, ContactItem)>, StoreError> {
        let items = self.read(coach, contacts.iter().map(|id| contact_sk(*id)).collect()).await?;
        let found = items.into_iter().filter_map(|item| Some((contact_of(sk_of(&item))?, item)));
        let mut found: Vec<_> =
            found.map(|(id, item)| Ok((id, ContactItem::from_item(item)?))).collect::<Result<_, StoreError>>()?;
        found.sort_unstable_by_key(|(id, _)| *id);
        Ok(found)
    }

    /// Reads the item under a contact's key.
    pub(super) async fn find(&self, coach: &CoachId, contact: ContactId) -> Result<Option<ContactItem>, StoreError> {
        let found = self.read(coach, vec![contact_sk(contact)]).await?.pop();
        found.map(ContactItem::from_item).transpose()
    }
}
