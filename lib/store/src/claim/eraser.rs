//! Removes claims by whom their answers are subject.

use runtime::{BoxError, Environment};

use super::{AnswerSubject, ClaimKey};
use crate::contact_ref::ContactRef;
use crate::db::{self, Db, StoreError, Table, query_page, s, text};

/// Claims for those who only remove them.
#[derive(Clone)]
pub struct ClaimEraser {
    table: Table,
}

impl ClaimEraser {
    /// The table that `IDEMPOTENCY_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "IDEMPOTENCY_TABLE")? })
    }

    /// The records whose answers are about a contact, as far as the index knows them: `most` at most.
    pub async fn about(&self, contact: &ContactRef, most: i32) -> Result<Vec<ClaimKey>, StoreError> {
        let query = self.table.query("contact_ref = :contact", [(":contact", s(contact.to_string()))]);
        let page = query_page(query.index_name("by_contact").limit(most)).await?;
        Ok(page.items.iter().map(|item| ClaimKey(text(item, "pk").to_owned())).collect())
    }

    /// Removes a record, its answer and its stage with it.
    pub async fn forget(&self, key: &ClaimKey, subject: &AnswerSubject) -> Result<(), StoreError> {
        let condition = format!("{} = :about", subject.attribute());
        // Refused: it has gone already, or somebody else has the key.
        self.table.write(db::pk(&key.0)).when(condition, [(":about", subject.value())]).delete_now().await?;
        Ok(())
    }
}
