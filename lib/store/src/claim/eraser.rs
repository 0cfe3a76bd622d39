//! Removal of claims by the subject of their answers.

use runtime::{BoxError, Environment};

use super::{ClaimKey, RecordedSubject};
use crate::contact_ref::ContactRef;
use crate::db::{self, Db, StoreError, Table, query_page, s, text};

/// The idempotency table, for erasure only.
#[derive(Clone)]
pub struct ClaimEraser {
    table: Table,
}

impl ClaimEraser {
    /// The table that `IDEMPOTENCY_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "IDEMPOTENCY_TABLE")? })
    }

    /// Finds at most `most` records with answers about a contact. The index may lag.
    pub async fn about(&self, contact: &ContactRef, most: i32) -> Result<Vec<ClaimKey>, StoreError> {
        let query = self.table.query("contact_ref = :contact", [(":contact", s(contact.to_string()))]);
        let page = query_page(query.index_name("by_contact").limit(most)).await?;
        Ok(page.items.iter().map(|item| ClaimKey(text(item, "pk").to_owned())).collect())
    }

    /// Deletes a record with its answer and stage.
    pub async fn forget(&self, key: &ClaimKey, subject: &RecordedSubject) -> Result<(), StoreError> {
        let condition = format!("{} = :about", subject.attribute());
        // Refused: the record is deleted already, or another request has the key.
        self.table.write(db::pk(&key.0)).when(condition, [(":about", subject.value())]).delete_now().await?;
        Ok(())
    }
}
