//! What the API makes of contacts.

use domain::contact::KnownContact;

use super::Contacts;
use super::item::StoredContact;
use crate::crm_write::{Committed, CrmWrite};
use crate::db::StoreError;

impl Contacts {
    /// Stores a contact that the API makes. Its address is the lock: of all who take it at once one is done.
    pub async fn create(&self, known: &KnownContact, write: &CrmWrite<'_>) -> Result<Committed, StoreError> {
        let record = StoredContact::first(write.coach, known.clone(), None);
        let [email, _] = record.addresses();
        let taken = email.map(|email| self.address(write.coach, &email).take(&known.contact.id.to_string()));
        let records = [self.put(&record, None)].into_iter().chain(taken);
        Ok(write.commit(records).await?.into())
    }

    /// Stores what the API makes of a contact that was read.
    pub async fn change(
        &self,
        found: &StoredContact,
        changed: &KnownContact,
        write: &CrmWrite<'_>,
    ) -> Result<Committed, StoreError> {
        let record = self.put(&found.changed(changed.clone()), Some(found.version));
        Ok(write.commit([record]).await?.into())
    }
}
