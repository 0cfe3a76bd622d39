//! Writes of the API to contacts.

use domain::contact::KnownContact;
use domain::id::CoachId;
use domain::time::Timestamp;

use super::Contacts;
use super::item::StoredContact;
use crate::db::Write;

impl Contacts {
    /// Parts of a transaction: store a new contact. Its address is the lock: of parallel creations with one address,
    /// one succeeds.
    pub fn create(&self, coach: &CoachId, known: &KnownContact) -> Vec<Write> {
        let record = StoredContact::first(coach, known.clone(), None);
        let [email, _] = record.addresses();
        let taken = email.map(|email| self.address(coach, &email).take(&known.contact.id.to_string()));
        [self.put(&record, None)].into_iter().chain(taken).collect()
    }

    /// Part of a transaction: stores a changed contact, if the contact is as it was read.
    pub fn change(&self, found: &StoredContact, changed: KnownContact, now: Timestamp) -> Write {
        self.put(&found.changed(changed, now), Some(found.version))
    }
}
