//! Items under a contact's key, and the keys: a live contact, the alias that a merge leaves, or the tombstone that an
//! erasure leaves. An alias keeps its address, so a POST with the address finds the surviving contact. Bookings and
//! opportunities keep the id that they were created with.

use domain::contact::{Contact, KnownContact};
use domain::email::{Email, EmailKey};
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ContactId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, from_item};
use crate::updated::Updated;
use crate::workspace::{key_of, partition};

/// Sort keys of the items of a contact's e-mail and phone.
pub type Addresses = [Option<String>; 2];

/// A live contact as stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredContact {
    pk: String,
    sk: String,
    /// Present in live contacts only: lists read this index.
    listed: String,
    email_key: Option<String>,
    pub(super) updated: Updated,
    /// The number's ending.
    phone_key: Option<String>,
    #[serde(flatten)]
    pub known: KnownContact,
    /// True if the client was created from a contact that was merged into this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) client_by_merge: bool,
    pub(super) version: u64,
}
domain::discreet! { StoredContact }

impl StoredContact {
    /// A new contact. A client of a new contact comes from a merge.
    pub fn first(coach: &CoachId, known: KnownContact, phone_key: Option<String>) -> Self {
        let sk = contact_sk(known.contact.id);
        let email_key = known.contact.email.as_ref().map(|email| email.key().as_str().to_owned());
        let client_by_merge = known.contact.client_id.is_some();
        Self {
            pk: partition(coach),
            listed: sk.clone(),
            sk,
            email_key,
            updated: Updated::first(PREFIX, known.contact.id.0, known.contact.updated_at),
            phone_key,
            known,
            client_by_merge,
            version: 1,
        }
    }

    /// The next state of the contact.
    pub fn next(&self, known: KnownContact, phone_key: Option<String>, now: Timestamp) -> Self {
        let email_key = known.contact.email.as_ref().map(Email::key).map(|key| key.as_str().to_owned());
        let updated = self.updated.next_if(known.contact.updated_at != self.contact().updated_at, now);
        Self { email_key, updated, phone_key, known, version: self.version + 1, ..self.clone() }
    }

    /// The next state after a merge brought a client, or took it elsewhere.
    pub(super) fn with_client_by_merge(&self, client: Option<&ClientId>, now: Timestamp) -> Self {
        let mut known = self.known.clone();
        known.contact.client_id = client.cloned();
        known.contact.updated_at = known.later(now);
        Self { client_by_merge: client.is_some(), ..self.changed(known, now) }
    }

    /// The next state after a change by the API: its phone stays.
    pub(super) fn changed(&self, known: KnownContact, now: Timestamp) -> Self {
        self.next(known, self.phone_key.clone(), now)
    }

    /// The contact as the API shows it.
    pub fn contact(&self) -> &Contact {
        &self.known.contact
    }

    /// Returns true if the contact has that address.
    pub(super) fn has_email(&self, email: &EmailKey) -> bool {
        self.email_key.as_deref() == Some(email.as_str())
    }

    /// The addresses of the contact.
    pub fn addresses(&self) -> Addresses {
        [self.email_key.as_deref().map(email_sk), self.phone_key.as_deref().map(phone_sk)]
    }

    /// The addresses of a contact with that e-mail and the ending of its phone.
    pub fn addresses_of(email: Option<&Email>, phone_key: Option<&str>) -> Addresses {
        [email.map(|email| email_sk(email.key().as_str())), phone_key.map(phone_sk)]
    }
}

/// The contact that another contact was merged into.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Merged {
    merged_into: ContactId,
    /// The time of the merge.
    merged_at: FactTime,
    /// Reference to `merged_into`, for the index `by_contact`.
    contact_ref: String,
}

impl Merged {
    pub fn new(coach: &CoachId, merged_into: ContactId, merged_at: FactTime) -> Self {
        Self { merged_into, merged_at, contact_ref: ContactRef::new(coach, merged_into).to_string() }
    }
}

/// A former contact: the alias of another contact, or a tombstone.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct FormerContact {
    pk: String,
    sk: String,
    /// The merge of the contact. `None`: the contact was erased without one.
    #[serde(flatten)]
    merge: Option<Merged>,
    /// The client that was created from the contact itself.
    client_id: Option<ClientId>,
    /// The address of the contact when it was merged away, as [`merged_email_key`] writes it.
    email_key: Option<String>,
    /// The time at which the merge was stored. `None`: the contact was erased, so no list shows it.
    pub(super) updated: Option<Updated>,
    /// The time at which the application or the API set the address, or removed it.
    email_set_at: Option<FactTime>,
    /// The time of the erasure. `None`: the contact is an alias.
    erased_at: Option<FactTime>,
    /// `None` in a tombstone: nothing takes its place.
    version: Option<u64>,
}
domain::discreet! { FormerContact }

impl FormerContact {
    /// The alias that a merge leaves of the contact that was found.
    pub fn alias(own: &ContactRef, found: &ContactItem, merge: Merged, now: Timestamp) -> Self {
        let first = || Updated::first(PREFIX, own.contact_id.0, now);
        let updated = Some(found.updated().map_or_else(first, |updated| updated.next(now)));
        Self { merge: Some(merge), updated, ..Self::of(own, found) }
    }

    /// The tombstone that an erasure leaves of the contact that was found.
    pub(super) fn tombstone(own: &ContactRef, found: &ContactItem, erased_at: FactTime) -> Self {
        let Self { pk, sk, merge, client_id, .. } = Self::of(own, found);
        Self { pk, sk, merge, client_id, erased_at: Some(erased_at), ..Self::default() }
    }

    fn of(own: &ContactRef, found: &ContactItem) -> Self {
        let (pk, sk) = (partition(&own.coach_id), contact_sk(own.contact_id));
        let version = Some(found.version().unwrap_or(0) + 1);
        match found {
            ContactItem::Unseen => Self { pk, sk, version, ..Self::default() },
            ContactItem::Live(live) => {
                let client_id = live.contact().client_id.clone().filter(|_| !live.client_by_merge);
                let email_key = live.email_key.as_deref().map(merged_email_key);
                let email_set_at = live.known.registers.email.set_at();
                Self { pk, sk, version, client_id, email_key, email_set_at, ..Self::default() }
            }
            ContactItem::Former(former) => Self { version, ..(**former).clone() },
        }
    }

    /// Applies a late record of the application to an alias. Of its addresses, the last one set before the merge
    /// counts, or else the first one after it. Returns `None` if this address does not count or changes nothing.
    pub fn with_late_email(&self, email: Option<&Email>, occurred_at: FactTime) -> Option<Self> {
        let merged_at = self.merge.as_ref().filter(|_| self.erased_at.is_none())?.merged_at;
        let email_key = email.map(|email| merged_email_key(email.key().as_str()));
        let counts = match self.email_set_at {
            None => true,
            Some(known) if known <= merged_at => (known..=merged_at).contains(&occurred_at),
            Some(known) => occurred_at < known,
        };
        let is_change = (&self.email_key, self.email_set_at) != (&email_key, Some(occurred_at));
        let version = self.version.map(|version| version + 1);
        let updated = Self { email_key, email_set_at: Some(occurred_at), version, ..self.clone() };
        (counts && is_change).then_some(updated)
    }

    /// The time at which the service stored the merge.
    pub fn merge_stored_at(&self) -> Option<Timestamp> {
        Some(self.updated.as_ref()?.update().at)
    }

    /// The contact that this contact was merged into.
    pub fn merged_into(&self) -> Option<ContactId> {
        Some(self.merge.as_ref()?.merged_into)
    }

    /// Returns true if the contact had that address.
    pub(super) fn had_email(&self, email: &EmailKey) -> bool {
        self.email_key.as_deref() == Some(merged_email_key(email.as_str()).as_str())
    }
}

/// The item under a contact's key.
#[derive(Debug, Clone)]
pub enum ContactItem {
    /// The contact is not stored.
    Unseen,
    Live(Box<StoredContact>),
    /// The contact was merged away or erased.
    Former(Box<FormerContact>),
}

impl ContactItem {
    pub(super) fn from_item(item: Item) -> Result<Self, StoreError> {
        if item.contains_key("listed") {
            return from_item("contact", item).map(Box::new).map(Self::Live);
        }
        from_item("contact", item).map(Box::new).map(Self::Former)
    }

    pub fn live(&self) -> Option<&StoredContact> {
        match self {
            Self::Live(live) => Some(live),
            Self::Unseen | Self::Former(_) => None,
        }
    }

    /// The addresses of a live contact.
    pub fn addresses(&self) -> Addresses {
        self.live().map(StoredContact::addresses).unwrap_or_default()
    }

    fn former(&self) -> Option<&FormerContact> {
        match self {
            Self::Former(former) => Some(former),
            Self::Unseen | Self::Live(_) => None,
        }
    }

    /// The version that a write in its place expects, if the contact is stored and not erased.
    pub(super) fn version(&self) -> Option<u64> {
        match self {
            Self::Unseen => None,
            Self::Live(live) => Some(live.version),
            Self::Former(former) => former.version,
        }
    }

    /// The client that a live contact is, or that was created from a former contact itself.
    pub(super) fn client_id(&self) -> Option<&ClientId> {
        match self {
            Self::Unseen => None,
            Self::Live(live) => live.contact().client_id.as_ref(),
            Self::Former(former) => former.client_id.as_ref(),
        }
    }

    fn updated(&self) -> Option<&Updated> {
        match self {
            Self::Unseen => None,
            Self::Live(live) => Some(&live.updated),
            Self::Former(former) => former.updated.as_ref(),
        }
    }

    /// The contact that this contact was merged into.
    pub fn merged_into(&self) -> Option<ContactId> {
        self.former()?.merged_into()
    }

    /// The time of the merge.
    pub fn merged_at(&self) -> Option<FactTime> {
        Some(self.former()?.merge.as_ref()?.merged_at)
    }

    /// The time of the erasure.
    pub fn erased_at(&self) -> Option<FactTime> {
        self.former()?.erased_at
    }

    pub(super) fn is_erased(&self) -> bool {
        self.erased_at().is_some()
    }
}

pub(super) const PREFIX: &str = "CONTACT#";

/// The key of a contact's item.
pub(crate) fn contact_key(coach: &CoachId, contact: ContactId) -> Item {
    key_of(coach, &contact_sk(contact))
}

pub(crate) fn contact_sk(contact: ContactId) -> String {
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
