//! Items under a contact's key, and the keys: a live, merged or erased contact. A merged contact keeps its id and its
//! address, so a POST with the address finds the surviving contact. Bookings and opportunities keep the id that they
//! were created with.

use domain::contact::{Contact, KnownContact};
use domain::email::{Email, EmailKey};
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ContactId};
use serde::{Deserialize, Serialize};

use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, from_item};
use crate::workspace::{key_of, partition};

/// A live contact as stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredContact {
    pk: String,
    sk: String,
    /// Present in live contacts only: lists read this index.
    listed: String,
    email_key: Option<String>,
    /// The number's ending.
    phone_key: Option<String>,
    #[serde(flatten)]
    pub known: KnownContact,
    pub(super) version: u64,
}
domain::discreet! { StoredContact }

impl StoredContact {
    /// A new contact.
    pub(super) fn first(coach: &CoachId, known: KnownContact, phone_key: Option<String>) -> Self {
        let sk = contact_sk(known.contact.id);
        let email_key = known.contact.email.as_ref().map(|email| email.key().as_str().to_owned());
        Self { pk: partition(coach), listed: sk.clone(), sk, email_key, phone_key, known, version: 1 }
    }

    /// The next state of the contact.
    pub(super) fn next(&self, known: KnownContact, phone_key: Option<String>) -> Self {
        let email_key = known.contact.email.as_ref().map(Email::key).map(|key| key.as_str().to_owned());
        Self { email_key, phone_key, known, version: self.version + 1, ..self.clone() }
    }

    /// The next state after a change by the API: its phone stays.
    pub(super) fn changed(&self, known: KnownContact) -> Self {
        self.next(known, self.phone_key.clone())
    }

    /// The contact as the API shows it.
    pub fn contact(&self) -> &Contact {
        &self.known.contact
    }

    /// Returns true if the contact has that address.
    pub(super) fn has_email(&self, email: &EmailKey) -> bool {
        self.email_key.as_deref() == Some(email.as_str())
    }

    /// Sort keys of the items of its e-mail and its phone.
    pub(super) fn addresses(&self) -> [Option<String>; 2] {
        [self.email_key.as_deref().map(email_sk), self.phone_key.as_deref().map(phone_sk)]
    }
}

/// A contact that was merged away: ids, dates, and the address that leads to the surviving contact.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct MergedContact {
    pk: String,
    sk: String,
    pub(super) merged_into: ContactId,
    /// The time of the merge.
    pub(super) merged_at: FactTime,
    /// Reference to the contact that it was merged into, whose erasure finds this contact by it.
    contact_ref: String,
    /// The client that it was. The surviving contact has the link, or takes it once it is stored.
    pub(super) client_id: Option<ClientId>,
    /// The address of the contact when it was merged away, as [`merged_email_key`] writes it.
    email_key: Option<String>,
    /// The time at which the application or the API set the address, or removed it.
    email_set_at: Option<FactTime>,
    pub(super) version: u64,
}
domain::discreet! { MergedContact }

impl MergedContact {
    pub(super) fn new(own: &ContactRef, merged_into: ContactId, merged_at: FactTime, version: u64) -> Self {
        let contact_ref = ContactRef::new(&own.coach_id, merged_into).to_string();
        let (pk, sk) = (partition(&own.coach_id), contact_sk(own.contact_id));
        Self {
            pk,
            sk,
            merged_into,
            merged_at,
            contact_ref,
            client_id: None,
            email_key: None,
            email_set_at: None,
            version,
        }
    }

    /// Copies the address of the stored contact.
    pub(super) fn with_email_of(mut self, found: Option<&ContactItem>) -> Self {
        (self.email_key, self.email_set_at) = match found {
            Some(ContactItem::Live(live)) => {
                let email_key = live.email_key.as_deref().map(merged_email_key);
                (email_key, live.known.registers.email.set_at())
            }
            Some(ContactItem::Merged(before)) => (before.email_key.clone(), before.email_set_at),
            Some(ContactItem::Erased(_)) | None => (None, None),
        };
        self
    }

    /// Applies a late record of the application with that address. The last address set before the merge counts, or
    /// else the first one after it. Returns `None` if this address does not count or changes nothing.
    pub(super) fn with_late_email(&self, email: Option<&Email>, occurred_at: FactTime) -> Option<Self> {
        let email_key = email.map(|email| merged_email_key(email.key().as_str()));
        let counts = match self.email_set_at {
            None => true,
            Some(known) if known <= self.merged_at => (known..=self.merged_at).contains(&occurred_at),
            Some(known) => occurred_at < known,
        };
        let is_change = (&self.email_key, self.email_set_at) != (&email_key, Some(occurred_at));
        let updated = Self { email_key, email_set_at: Some(occurred_at), version: self.version + 1, ..self.clone() };
        (counts && is_change).then_some(updated)
    }

    /// Returns true if the contact had that address.
    pub(super) fn had_email(&self, email: &EmailKey) -> bool {
        self.email_key.as_deref() == Some(merged_email_key(email.as_str()).as_str())
    }

    /// Removes the link to the client.
    pub(super) fn unlinked(self) -> Self {
        Self { client_id: None, version: self.version + 1, ..self }
    }

    /// Returns true if another item stores the same merge and client.
    pub(super) fn is_same_merge(&self, other: &Self) -> bool {
        (self.merged_into, self.merged_at, &self.client_id) == (other.merged_into, other.merged_at, &other.client_id)
    }
}

/// The tombstone of an erased contact: ids and dates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ContactTombstone {
    pk: String,
    sk: String,
    /// The time of the erasure.
    pub(super) erased_at: FactTime,
    /// The contact that it had been merged into, and the time of that merge.
    merged_into: Option<ContactId>,
    merged_at: Option<FactTime>,
    contact_ref: Option<String>,
    /// The client that it was.
    pub(super) client_id: Option<ClientId>,
}

impl ContactTombstone {
    /// A tombstone in the place of the item that was found.
    pub(super) fn new(own: &ContactRef, found: Option<&ContactItem>, erased_at: FactTime) -> Self {
        let (pk, sk) = (partition(&own.coach_id), contact_sk(own.contact_id));
        let client_id = found.and_then(ContactItem::client_id).cloned();
        let erased = Self { pk, sk, erased_at, merged_into: None, merged_at: None, contact_ref: None, client_id };
        match found {
            Some(ContactItem::Merged(merged)) => erased.with_merge(&own.coach_id, merged.merged_into, merged.merged_at),
            Some(ContactItem::Live(_) | ContactItem::Erased(_)) | None => erased,
        }
    }

    /// Stores the client that the contact was, unless one is known.
    pub(super) fn with_client(mut self, client: Option<&ClientId>) -> Self {
        self.client_id = self.client_id.or_else(|| client.cloned());
        self
    }

    /// Stores the contact that it had been merged into.
    pub(super) fn with_merge(mut self, coach: &CoachId, into: ContactId, at: FactTime) -> Self {
        self.contact_ref = Some(ContactRef::new(coach, into).to_string());
        (self.merged_into, self.merged_at) = (Some(into), Some(at));
        self
    }

    /// Returns true if a late merge decides the contact's target: the merge is no older than the stored one, and no
    /// younger than the erasure.
    pub(super) fn is_redirected_by(&self, occurred_at: FactTime) -> bool {
        occurred_at <= self.erased_at && self.merged_at.is_none_or(|merged_at| merged_at <= occurred_at)
    }
}

/// The item under a contact's key.
#[derive(Debug, Clone)]
pub(super) enum ContactItem {
    Live(Box<StoredContact>),
    Merged(MergedContact),
    Erased(ContactTombstone),
}

impl ContactItem {
    pub(super) fn from_item(item: Item) -> Result<Self, StoreError> {
        if item.contains_key("erased_at") {
            return from_item("contact", item).map(Self::Erased);
        }
        if item.contains_key("merged_into") {
            return from_item("contact", item).map(Self::Merged);
        }
        from_item("contact", item).map(Box::new).map(Self::Live)
    }

    /// The version that a write in its place expects; a tombstone has none.
    pub(super) fn version(&self) -> Option<u64> {
        match self {
            Self::Live(live) => Some(live.version),
            Self::Merged(merged) => Some(merged.version),
            Self::Erased(_) => None,
        }
    }

    /// Sort keys of the items of its e-mail and its phone.
    pub(super) fn addresses(&self) -> [Option<String>; 2] {
        match self {
            Self::Live(live) => live.addresses(),
            Self::Merged(_) | Self::Erased(_) => [None, None],
        }
    }

    /// The client that the contact is, or was.
    pub(super) fn client_id(&self) -> Option<&ClientId> {
        match self {
            Self::Live(live) => live.contact().client_id.as_ref(),
            Self::Merged(merged) => merged.client_id.as_ref(),
            Self::Erased(erased) => erased.client_id.as_ref(),
        }
    }

    /// The contact that this contact was merged into.
    pub(super) fn merged_into(&self) -> Option<ContactId> {
        match self {
            Self::Live(_) => None,
            Self::Merged(merged) => Some(merged.merged_into),
            Self::Erased(erased) => erased.merged_into,
        }
    }

    /// The time of the merge.
    pub(super) fn merged_at(&self) -> Option<FactTime> {
        match self {
            Self::Live(_) => None,
            Self::Merged(merged) => Some(merged.merged_at),
            Self::Erased(erased) => erased.merged_at,
        }
    }
}

pub(super) const PREFIX: &str = "CONTACT#";

/// The key of a contact's item.
pub(crate) fn contact_key(coach: &CoachId, contact: ContactId) -> Item {
    key_of(coach, &contact_sk(contact))
}

pub(super) fn contact_sk(contact: ContactId) -> String {
    format!("{PREFIX}{contact}")
}

/// The `email_key` of a contact that had the address when it was merged away. It sorts right after the address, so one
/// query finds the contacts that have the address, then those that had it.
pub(super) fn merged_email_key(email: &str) -> String {
    format!("{email}\u{1}")
}

/// The contact id in a sort key, if the key is a contact's.
pub(super) fn contact_of(sk: &str) -> Option<ContactId> {
    ContactId::parse(sk.strip_prefix(PREFIX)?).ok()
}

pub(super) fn email_sk(email: &str) -> String {
    format!("EMAIL#{email}")
}

pub(super) fn phone_sk(digits: &str) -> String {
    format!("PHONE#{digits}")
}

#[cfg(test)]
mod tests {
    use domain::contact::ContactDraft;
    use domain::time::Timestamp;

    use super::*;
    use crate::db::to_item;

    #[test]
    fn a_live_contact_reads_back_from_its_item_and_absent_members_have_no_attribute() {
        let id = ContactId::parse("0197a6a0-5c3b-7000-8000-2f1d3c4b5a69").unwrap();
        let draft = ContactDraft { name: "Grace".to_owned(), email: Email::parse("grace@example.com").unwrap() };
        let known = KnownContact::create(id, &draft, Timestamp::from_ms(5));
        let item = to_item(&StoredContact::first(&CoachId::parse("coach_1").unwrap(), known.clone(), None));
        assert!(item.values().all(|value| !value.is_null()) && !item.contains_key("clientId"));
        let ContactItem::Live(read) = ContactItem::from_item(item).unwrap() else { panic!("live") };
        assert_eq!((&read.known, read.version), (&known, 1));
        assert!(read.has_email(&draft.email.key()));
    }
}
