//! Removes claims by whom their answers are about.

use runtime::{BoxError, Environment};

use super::{About, ClaimKey, Named};
use crate::contact_ref::ContactRef;
use crate::db::{Ask, Db, Index, StoreError, failed, from_item, s, write};

/// Claims for those who only remove them.
#[derive(Clone)]
pub struct ClaimEraser {
    db: Db,
    table: String,
}

impl ClaimEraser {
    /// The table that `IDEMPOTENCY_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("IDEMPOTENCY_TABLE")?.to_owned() })
    }

    /// The records whose answers are about a contact, as far as the index knows them: at most so many.
    pub async fn about(&self, contact: &ContactRef, most: i32) -> Result<Vec<ClaimKey>, StoreError> {
        let index = Index { table: &self.table, name: "by_contact", hash: "contact_ref" };
        let page = self.db.query_keys(&index, &contact.to_string()).limit(most).ask().await;
        let items = page.map_err(|error| failed("Query", error))?.items.unwrap_or_default();
        items.into_iter().map(|item| from_item::<Named>("claim", item).map(|named| named.pk)).collect()
    }

    /// Removes a record, its answer and its stage with it.
    pub async fn forget(&self, key: &ClaimKey, about: &About) -> Result<(), StoreError> {
        let written = write("DeleteItem", || {
            let delete = self.db.client().delete_item().table_name(&self.table).key("pk", s(&key.0));
            delete
                .condition_expression("#about = :about")
                .expression_attribute_names("#about", about.attribute())
                .expression_attribute_values(":about", about.value())
                .ask()
        });
        // Refused: it has gone already, or somebody else has the key.
        written.await?;
        Ok(())
    }
}
