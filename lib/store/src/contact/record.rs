//! What stands under a contact's key: a live contact, one that was merged away, or one that was erased.

use domain::contact::{Contact, KnownContact};
use domain::email::{Email, EmailKey};
use domain::fact_time::FactTime;
use domain::id::{ClientId, CoachId, ContactId};
use serde::{Deserialize, Serialize};

use super::{contact_sk, email_sk, merged_email_key, phone_sk};
use crate::contact_ref::ContactRef;
use crate::db::{Item, StoreError, from_item};
use crate::workspace::partition;

/// A live contact as stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredContact {
    pk: String,
    sk: String,
    /// Lists show what has it.
    listed: String,
    email_key: Option<String>,
    /// The number's ending; E.164 in items of version 0.1.
    phone_key: Option<String>,
    #[serde(flatten)]
    pub known: KnownContact,
    pub(super) version: u64,
}
domain::discreet! { StoredContact }

impl StoredContact {
    /// A contact that has not been stored before.
    pub(super) fn first(coach: &CoachId, known: KnownContact, phone_key: Option<String>) -> Self {
        let sk = contact_sk(known.contact.id);
        let email_key = known.contact.email.as_ref().map(|email| email.key().as_str().to_owned());
        Self { pk: partition(coach), listed: sk.clone(), sk, email_key, phone_key, known, version: 1 }
    }

    /// The contact as it is next.
    pub(super) fn next(&self, known: KnownContact, phone_key: Option<String>) -> Self {
        let email_key = known.contact.email.as_ref().map(Email::key).map(|key| key.as_str().to_owned());
        Self { email_key, phone_key, known, version: self.version + 1, ..self.clone() }
    }

    /// The contact as it is next, by what the API says of it: its phone stays.
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

    /// Sort keys of its e-mail's and its phone's items.
    pub(super) fn addresses(&self) -> [Option<String>; 2] {
        [self.email_key.as_deref().map(email_sk), self.phone_key.as_deref().map(phone_sk)]
    }
}

/// The signpost of a contact that was merged away: ids, dates, and the address that leads to the contact it was merged
/// into.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct MergedContact {
    pk: String,
    sk: String,
    pub(super) merged_into: ContactId,
    /// When that was said.
    pub(super) merged_at: FactTime,
    /// The contact that it was merged into: who erases that one finds this one by it.
    contact_ref: String,
    /// The client that it was. The contact that it lives on as has the link, or takes it once it is seen.
    pub(super) client_id: Option<ClientId>,
    /// The address of the contact when it was merged away, as [`merged_email_key`] writes it.
    email_key: Option<String>,
    /// When the application or the API set the address, or removed it.
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

    /// The same, with the address of the stored contact.
    pub(super) fn with_email_of(mut self, found: Option<&Stored>) -> Self {
        (self.email_key, self.email_set_at) = match found {
            Some(Stored::Live(live)) => {
                let email_key = live.email_key.as_deref().map(merged_email_key);
                (email_key, live.known.times.saved_at.max(live.known.times.email_set_at.map(FactTime::from)))
            }
            Some(Stored::Merged(before)) => (before.email_key.clone(), before.email_set_at),
            Some(Stored::Erased(_)) | None => (None, None),
        };
        self
    }

    /// The same, after a late record of the application with that address. The last address said before the merge
    /// counts, or else the first one after it. `None`: this address does not count, or changes nothing.
    pub(super) fn with_late_email(&self, email: Option<&Email>, said_at: FactTime) -> Option<Self> {
        let email_key = email.map(|email| merged_email_key(email.key().as_str()));
        let counts = match self.email_set_at {
            None => true,
            Some(known) if known <= self.merged_at => (known..=self.merged_at).contains(&said_at),
            Some(known) => said_at < known,
        };
        let is_news = (&self.email_key, self.email_set_at) != (&email_key, Some(said_at));
        let told = Self { email_key, email_set_at: Some(said_at), version: self.version + 1, ..self.clone() };
        (counts && is_news).then_some(told)
    }

    /// Returns true if the contact had that address.
    pub(super) fn had_email(&self, email: &EmailKey) -> bool {
        self.email_key.as_deref() == Some(merged_email_key(email.as_str()).as_str())
    }

    /// The same, of nobody who was a client.
    pub(super) fn unlinked(self) -> Self {
        Self { client_id: None, version: self.version + 1, ..self }
    }

    /// Returns true if another signpost says nothing new.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        (self.merged_into, self.merged_at, &self.client_id) == (other.merged_into, other.merged_at, &other.client_id)
    }
}

/// The rest of a contact that was erased: ids and dates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ErasedContact {
    pk: String,
    sk: String,
    /// When that was said.
    pub(super) erased_at: FactTime,
    /// Where it had been merged away, and when that was said.
    merged_into: Option<ContactId>,
    merged_at: Option<FactTime>,
    contact_ref: Option<String>,
    /// The client that it was.
    pub(super) client_id: Option<ClientId>,
}

impl ErasedContact {
    /// In the place of what was found.
    pub(super) fn new(own: &ContactRef, found: Option<&Stored>, erased_at: FactTime) -> Self {
        let (pk, sk) = (partition(&own.coach_id), contact_sk(own.contact_id));
        let client_id = found.and_then(Stored::client_id).cloned();
        let erased = Self { pk, sk, erased_at, merged_into: None, merged_at: None, contact_ref: None, client_id };
        match found {
            Some(Stored::Merged(merged)) => erased.merged(&own.coach_id, merged.merged_into, merged.merged_at),
            Some(Stored::Live(_) | Stored::Erased(_)) | None => erased,
        }
    }

    /// It was this client, as far as is not known otherwise.
    pub(super) fn of(mut self, client: Option<&ClientId>) -> Self {
        self.client_id = self.client_id.or_else(|| client.cloned());
        self
    }

    /// It had been merged into this one.
    pub(super) fn merged(mut self, coach: &CoachId, into: ContactId, at: FactTime) -> Self {
        self.contact_ref = Some(ContactRef::new(coach, into).to_string());
        (self.merged_into, self.merged_at) = (Some(into), Some(at));
        self
    }

    /// Returns true if a late merge that was said at `said_at` decides whom the contact lived on as: it is no older
    /// than the noted merge, and no younger than the erasure.
    pub(super) fn is_led_by(&self, said_at: FactTime) -> bool {
        said_at <= self.erased_at && self.merged_at.is_none_or(|merged_at| merged_at <= said_at)
    }
}

/// The item under a contact's key.
#[derive(Debug, Clone)]
pub(super) enum Stored {
    Live(Box<StoredContact>),
    Merged(MergedContact),
    Erased(ErasedContact),
}

impl Stored {
    pub(super) fn from_item(item: Item) -> Result<Self, StoreError> {
        if item.contains_key("erased_at") {
            return from_item("contact", item).map(Self::Erased);
        }
        if item.contains_key("merged_into") {
            return from_item("contact", item).map(Self::Merged);
        }
        from_item("contact", item).map(Box::new).map(Self::Live)
    }

    /// The version that a write in its place states; a tombstone has none.
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

    /// The client that it is, or was.
    pub(super) fn client_id(&self) -> Option<&ClientId> {
        match self {
            Self::Live(live) => live.contact().client_id.as_ref(),
            Self::Merged(merged) => merged.client_id.as_ref(),
            Self::Erased(erased) => erased.client_id.as_ref(),
        }
    }

    /// The contact that it was merged into.
    pub(super) fn merged_into(&self) -> Option<ContactId> {
        match self {
            Self::Live(_) => None,
            Self::Merged(merged) => Some(merged.merged_into),
            Self::Erased(erased) => erased.merged_into,
        }
    }

    /// When that was said.
    pub(super) fn merged_at(&self) -> Option<FactTime> {
        match self {
            Self::Live(_) => None,
            Self::Merged(merged) => Some(merged.merged_at),
            Self::Erased(erased) => erased.merged_at,
        }
    }
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
        let Stored::Live(read) = Stored::from_item(item).unwrap() else { panic!("live") };
        assert_eq!((&read.known, read.version), (&known, 1));
        assert!(read.has_email(&draft.email.key()));
    }
}
