//! State of a contact, resolved along its merges, and checks of it for transactions.

use std::collections::HashSet;

use domain::booking::Lead;
use domain::event::Person;
use domain::id::{ClientId, CoachId, ContactId};
use futures::future::{try_join, try_join_all};

use super::Contacts;
use super::item::{ContactItem, PREFIX, StoredContact, contact_key, contact_of, contact_sk};
use crate::contact_ref::ContactRef;
use crate::db::{Item, Part, StoreError, Write, query_all, query_up_to, s, sk_of};

/// Most merges that a request follows from a contact to its surviving contact.
pub const MAX_FOLLOWED: usize = 100;

/// Most contacts of one person that a filter finds: a condition of DynamoDB compares with as many values.
const MAX_SAME_PERSON: usize = 100;

/// A contact, and the contacts that its merges lead to, in order.
pub type Chain = Vec<(ContactId, ContactItem)>;

/// Items that refer to a contact.
pub(super) struct About {
    /// The contacts that were merged into it, in the order of their ids.
    pub(super) aliases: Vec<(ContactId, ContactItem)>,
    /// Sort keys of its opportunities and events.
    pub(super) others: Vec<String>,
}

/// The state of a contact.
#[derive(Debug, Clone)]
pub enum ContactState {
    /// The contact is not stored yet.
    Unknown,
    Live(Box<StoredContact>),
    /// The contact was merged into another. `survivor` is that contact, if it is stored.
    Merged {
        into: ContactId,
        survivor: Option<Box<StoredContact>>,
    },
    /// No later fact restores the contact.
    Erased,
}

impl ContactState {
    /// The contact if it is live, or else the id of its surviving contact, if there is one.
    pub fn live(&self) -> Result<&StoredContact, Option<ContactId>> {
        match self {
            Self::Live(contact) => Ok(contact),
            Self::Merged { into, .. } => Err(Some(*into)),
            Self::Unknown | Self::Erased => Err(None),
        }
    }

    /// The state of the surviving contact, if that is live.
    #[must_use]
    pub fn survived(self) -> Self {
        match self {
            Self::Merged { survivor: Some(survivor), .. } => Self::Live(survivor),
            state => state,
        }
    }

    /// The state as decisions about bookings see it.
    pub fn lead(&self) -> Lead {
        match self {
            Self::Live(_) => Lead::Live,
            Self::Merged { into, .. } => Lead::Merged(*into),
            Self::Unknown | Self::Erased => Lead::Unknown,
        }
    }

    /// The person that events of the records of `contact` name, if `contact` has this state: the surviving contact.
    /// `None`: the contact is erased.
    pub fn person(&self, contact: ContactId) -> Option<Person> {
        let person = match self {
            Self::Live(live) | Self::Merged { survivor: Some(live), .. } => Person::contact(live.contact()),
            Self::Merged { into, survivor: None } => Person::unknown_contact(*into),
            Self::Unknown => Person::unknown_contact(contact),
            Self::Erased => return None,
        };
        Some(person.for_records_of(contact))
    }

    /// Parses the state of a contact from its item. `into` is then the next contact, which may be merged too:
    /// [`Contacts::survivor`] follows the merges to their end.
    pub(crate) fn from_item(item: Option<Item>) -> Result<Self, StoreError> {
        Ok(Self::of(item.map_or(Ok(ContactItem::Unseen), ContactItem::from_item)?))
    }

    fn of(item: ContactItem) -> Self {
        match item {
            ContactItem::Live(contact) => Self::Live(contact),
            former if former.is_erased() => Self::Erased,
            former => former.merged_into().map_or(Self::Unknown, |into| Self::Merged { into, survivor: None }),
        }
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

    /// Reads the state of a contact. `into` is the end of its merges: a live contact, or one that is not stored yet. A
    /// contact that was merged into an erased one counts as erased.
    pub async fn state(&self, coach: &CoachId, contact: ContactId) -> Result<ContactState, StoreError> {
        Ok(match end_of(&self.chain(coach, contact, MAX_FOLLOWED).await?) {
            (into, ContactState::Live(survivor)) if into != contact => {
                ContactState::Merged { into, survivor: Some(survivor) }
            }
            (into, ContactState::Unknown) if into != contact => ContactState::Merged { into, survivor: None },
            (_, state) => state,
        })
    }

    /// Reads the id of the surviving contact: the contact itself, or the end of its merges, which may not be stored
    /// yet. Returns `None` if the contact is erased.
    pub async fn survivor(&self, coach: &CoachId, contact: ContactId) -> Result<Option<ContactId>, StoreError> {
        Ok(match end_of(&self.chain(coach, contact, MAX_FOLLOWED).await?) {
            (_, ContactState::Erased) => None,
            (end, _) => Some(end),
        })
    }

    /// Returns true if two contacts live as the same person: as one surviving contact.
    pub async fn are_same_person(&self, coach: &CoachId, one: ContactId, other: ContactId) -> Result<bool, StoreError> {
        if one == other {
            return Ok(true);
        }
        let (one, other) = try_join(self.survivor(coach, one), self.survivor(coach, other)).await?;
        Ok(one.is_some() && one == other)
    }

    /// Reads the contacts that live as the same person as a contact: the contact itself, its surviving contact, and
    /// the contacts that were merged into that. At most `MAX_SAME_PERSON` are read. The index may lag, but not for the
    /// contact and its surviving contact.
    pub async fn same_person(&self, coach: &CoachId, contact: ContactId) -> Result<Vec<ContactId>, StoreError> {
        let chain = self.chain(coach, contact, MAX_SAME_PERSON - 1).await?;
        let mut same: Vec<ContactId> = chain.iter().map(|(id, _)| *id).collect();
        let mut last_found = same.clone();
        while !last_found.is_empty() && same.len() < MAX_SAME_PERSON {
            let found = try_join_all(last_found.iter().map(|into| self.merged_into(coach, *into))).await?;
            last_found = found.into_iter().flatten().filter(|id| !same.contains(id)).collect();
            same.extend(&last_found);
        }
        same.truncate(MAX_SAME_PERSON);
        Ok(same)
    }

    /// Reads up to `MAX_SAME_PERSON` contacts that were merged into a contact. The index may lag.
    async fn merged_into(&self, coach: &CoachId, contact: ContactId) -> Result<Vec<ContactId>, StoreError> {
        let into = ContactRef::new(coach, contact);
        let values = [(":contact", s(into.to_string())), (":prefix", s(PREFIX))];
        let query = self.table.query("contact_ref = :contact AND begins_with(sk, :prefix)", values);
        let query = query.index_name("by_contact").limit(MAX_SAME_PERSON as i32);
        let found = query_up_to(query, MAX_SAME_PERSON).await?;
        let aliases = self.aliases(&into, found.iter().map(|item| sk_of(item).to_owned()).collect()).await?;
        Ok(aliases.into_iter().map(|(id, _)| id).collect())
    }

    /// Reads the surviving contact. Returns `None` if the contact is erased, or the surviving one is not stored.
    pub(super) async fn live_survivor(
        &self,
        coach: &CoachId,
        contact: ContactId,
    ) -> Result<Option<StoredContact>, StoreError> {
        Ok(match end_of(&self.chain(coach, contact, MAX_FOLLOWED).await?) {
            (_, ContactState::Live(survivor)) => Some(*survivor),
            _ => None,
        })
    }

    /// Reads the client that a contact is or was. A contact that is not live has the client that was created from it,
    /// or from a contact that was merged into it. The index may lag.
    ///
    /// An erased contact gets no client from contacts that are not erased, nor the other way round.
    pub async fn client_of(
        &self,
        coach: &CoachId,
        contact: ContactId,
        found: &ContactItem,
    ) -> Result<Option<ClientId>, StoreError> {
        if found.client_id().is_some() || found.live().is_some() {
            return Ok(found.client_id().cloned());
        }
        let mut reached = vec![contact];
        let mut next = 0;
        while let Some(into) = reached.get(next) {
            next += 1;
            for (id, alias) in self.about(&ContactRef::new(coach, *into)).await?.aliases {
                if alias.is_erased() != found.is_erased() || reached.contains(&id) {
                    continue;
                }
                if alias.client_id().is_some() {
                    return Ok(alias.client_id().cloned());
                }
                reached.push(id);
            }
        }
        Ok(None)
    }

    /// Reads the items that refer to a contact. The index may lag.
    pub(super) async fn about(&self, contact: &ContactRef) -> Result<About, StoreError> {
        let query = self.table.query("contact_ref = :contact", [(":contact", s(contact.to_string()))]);
        let found = query_all(query.index_name("by_contact")).await?.into_iter();
        let (merged, others): (Vec<_>, _) =
            found.map(|item| sk_of(&item).to_owned()).partition(|sk| sk.starts_with(PREFIX));
        let mut aliases = self.aliases(contact, merged).await?;
        aliases.sort_unstable_by_key(|(id, _)| *id);
        Ok(About { aliases, others })
    }

    /// Reads those of the contacts at these sort keys that are merged into a contact: the index may be out of date.
    async fn aliases(&self, into: &ContactRef, sks: Vec<String>) -> Result<Vec<(ContactId, ContactItem)>, StoreError> {
        let mut aliases = Vec::new();
        for item in self.read(&into.coach_id, sks).await? {
            let id = contact_of(sk_of(&item));
            let item = ContactItem::from_item(item)?;
            aliases.extend(id.filter(|_| item.merged_into() == Some(into.contact_id)).map(|id| (id, item)));
        }
        Ok(aliases)
    }

    /// Reads a contact, and the contacts that up to `most` merges lead to, in order. Each contact is read once: merges
    /// of erased contacts, which are stored as they arrive, can close a circle.
    pub async fn chain(&self, coach: &CoachId, first: ContactId, most: usize) -> Result<Chain, StoreError> {
        let mut chain = Chain::new();
        let mut next = Some(first);
        while let Some(id) = next.filter(|next| chain.len() <= most && chain.iter().all(|(id, _)| id != next)) {
            let found = self.find(coach, id).await?;
            next = found.merged_into();
            chain.push((id, found));
        }
        Ok(chain)
    }

    /// Reads the item under a contact's key.
    pub async fn find(&self, coach: &CoachId, contact: ContactId) -> Result<ContactItem, StoreError> {
        let found = self.read(coach, vec![contact_sk(contact)]).await?.pop();
        found.map_or(Ok(ContactItem::Unseen), ContactItem::from_item)
    }
}

/// Returns the last contact of a chain of merges, and its state. If a contact of the chain is erased, the last one
/// counts as erased.
pub fn end_of(chain: &Chain) -> (ContactId, ContactState) {
    let (id, last) = chain.last().expect("a chain has its first contact");
    let is_erased = chain.iter().any(|(_, item)| item.is_erased());
    (*id, if is_erased { ContactState::Erased } else { ContactState::of(last.clone()) })
}
