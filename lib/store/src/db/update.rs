//! An update of one item, written once and carried out alone or as part of a transaction.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure, Update};

use super::{Ask, Db, Item, Part, StoreError, Write, Written, write};

/// An update with its condition.
pub(crate) struct ItemUpdate<'a> {
    pub(crate) table: &'a str,
    pub(crate) key: Item,
    pub(crate) update: String,
    pub(crate) condition: String,
    pub(crate) names: HashMap<String, String>,
    pub(crate) values: HashMap<String, AttributeValue>,
}

impl ItemUpdate<'_> {
    /// Part of a transaction.
    pub(crate) fn in_transaction(self, part: Part) -> Write {
        let update = Update::builder()
            .table_name(self.table)
            .set_key(Some(self.key))
            .update_expression(self.update)
            .condition_expression(self.condition)
            .set_expression_attribute_names(Some(self.names))
            .set_expression_attribute_values(Some(self.values));
        part.update(update)
    }

    /// UpdateItem. A refusal has the item as it is.
    pub(crate) async fn alone(self, db: &Db) -> Result<Written<()>, StoreError> {
        let written = write("UpdateItem", || {
            let update = db.client().update_item().table_name(self.table).set_key(Some(self.key.clone()));
            update
                .update_expression(&self.update)
                .condition_expression(&self.condition)
                .set_expression_attribute_names(Some(self.names.clone()))
                .set_expression_attribute_values(Some(self.values.clone()))
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .ask()
        });
        Ok(match written.await? {
            Written::Done(_) => Written::Done(()),
            Written::Refused(item) => Written::Refused(item),
        })
    }
}
