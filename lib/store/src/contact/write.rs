//! Writes of the API to contacts.

use domain::contact::KnownContact;

use super::Contacts;
use super::item::StoredContact;
use crate::crm_write::{Committed, CrmWrite};
use crate::db::StoreError;

impl Contacts {
    /// Stores a new contact. Its address is the lock: of parallel creations with one address, one succeeds.
    pub async fn create(&self, known: &KnownContact, write: &CrmWrite<'_>) -> Result<Committed, StoreError> {
        let record = StoredContact::first(write.coach, known.clone(), None);
        let [email, _] = record.addresses();
        let taken = email.map(|email| self.address(write.coach, &email).take(&known.contact.id.to_string()));
        let records = [self.put(&record, None)].into_iter().chain(taken);
        write.commit(records).await
    }

    /// Stores a changed contact, if the contact is as it was read.
    pub async fn change(
        &self,
        found: &StoredContact,
        changed: &KnownContact,
        write: &CrmWrite<'_>,
    ) -> Result<Committed, StoreError> {
        let record = self.put(&found.changed(changed.clone()), Some(found.version));
        write.commit([record]).await
    }
}
