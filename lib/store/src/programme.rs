//! Table `workspaces`, programmes. pk `COACH#<coach_id>`, sk `PROGRAMME#<programme_id>`: the phases, and when they were said.
//!
//! 1. `save` UpdateItem, unless something newer is stored.

use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use domain::programme::Programme;
use domain::time::Timestamp;

use crate::db::{Item, StoreError, n, s, to_attribute, write};
use crate::workspace::{Workspaces, partition};

impl Workspaces {
    /// Stores a programme as the application has it, unless a newer state is stored.
    pub async fn save_programme(&self, programme: &Programme, said_at: Timestamp) -> Result<(), StoreError> {
        let key = Item::from([
            ("pk".to_owned(), s(partition(&programme.coach_id))),
            ("sk".to_owned(), s(format!("PROGRAMME#{}", programme.programme_id))),
        ]);
        let written = write("UpdateItem", || {
            let update = self.db().client().update_item().table_name(self.table()).set_key(Some(key.clone()));
            update
                .update_expression("SET phases = :phases, saved_at = :at")
                .condition_expression("attribute_not_exists(pk) OR saved_at <= :at")
                .expression_attribute_values(":phases", to_attribute(&programme.phases))
                .expression_attribute_values(":at", n(said_at.ms()))
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        // Refused: what is stored is newer.
        written.await?;
        Ok(())
    }
}
