//! A write of one item: its changes and its condition. A write is sent alone, or is a part of a transaction.
//!
//! Every write is built here, so each effect has one form. In expressions, `#name` stands for the attribute of that
//! name, `:one` for 1 and `:zero` for 0. A refused write returns the current item.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    Update,
};

use super::retry::write;
use super::{Db, Item, MeteredRequest, Part, StoreError, Write, Written, n};

/// A write under construction.
#[must_use]
#[derive(Clone)]
pub(crate) struct ItemWrite<'a> {
    db: &'a Db,
    table: &'a str,
    item: Item,
    set: Vec<String>,
    add: Vec<String>,
    remove: Vec<String>,
    delete: Vec<String>,
    conditions: Vec<String>,
    names: HashMap<String, String>,
    values: Item,
    returned: Option<ReturnValue>,
}

impl<'a> ItemWrite<'a> {
    pub(super) fn new(db: &'a Db, table: &'a str, item: Item) -> Self {
        Self {
            db,
            table,
            item,
            set: Vec::new(),
            add: Vec::new(),
            remove: Vec::new(),
            delete: Vec::new(),
            conditions: Vec::new(),
            names: HashMap::new(),
            values: Item::from([(":one".to_owned(), n(1)), (":zero".to_owned(), n(0))]),
            returned: None,
        }
    }

    /// Sets an attribute. `name` may lead into a map, as in `states.silent`.
    pub(crate) fn set(mut self, name: &str, value: AttributeValue) -> Self {
        let (place, placeholder) = (name.replace('.', ".#"), name.replace('.', "_"));
        self.set.push(format!("#{place} = :{placeholder}"));
        self.values([(&*format!(":{placeholder}"), value)])
    }

    /// Sets an attribute, or removes it if `value` is `None`.
    pub(crate) fn set_or_remove(self, name: &str, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.set(name, value),
            None => self.remove([name]),
        }
    }

    /// Adds a clause of `SET` that is more than a value.
    pub(crate) fn set_to(mut self, clause: impl Into<String>) -> Self {
        self.set.push(clause.into());
        self
    }

    pub(crate) fn remove<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.remove.extend(names.into_iter().map(|name| format!("#{name}")));
        self
    }

    /// Adds 1 to a number; an absent number counts as 0.
    pub(crate) fn count(mut self, name: &str) -> Self {
        self.add.push(format!("#{name} :one"));
        self
    }

    /// Adds to a number, or to a set.
    pub(crate) fn add(mut self, name: &str, value: AttributeValue) -> Self {
        self.add.push(format!("#{name} :{name}"));
        self.values([(&*format!(":{name}"), value)])
    }

    /// Removes elements from a set.
    pub(crate) fn take_out(mut self, name: &str, elements: AttributeValue) -> Self {
        self.delete.push(format!("#{name} :{name}"));
        self.values([(&*format!(":{name}"), elements)])
    }

    /// Adds a condition, with the values that it names. All conditions of a write have to hold.
    pub(crate) fn when<const N: usize>(
        mut self,
        condition: impl Into<String>,
        values: [(&str, AttributeValue); N],
    ) -> Self {
        self.conditions.push(condition.into());
        self.values(values)
    }

    /// Adds the condition that the item exists.
    pub(crate) fn when_present(self) -> Self {
        self.when("attribute_exists(pk)", [])
    }

    /// Adds the condition that the item does not exist.
    pub(crate) fn when_absent(self) -> Self {
        self.when("attribute_not_exists(pk)", [])
    }

    /// Adds the condition that the item still has that version, or for `None` that it does not exist.
    pub(crate) fn when_version(self, version: Option<u64>) -> Self {
        match version {
            Some(version) => self.when("version = :found_version", [(":found_version", n(version))]),
            None => self.when_absent(),
        }
    }

    /// Adds values that the clauses name.
    pub(crate) fn values<const N: usize>(mut self, values: [(&str, AttributeValue); N]) -> Self {
        self.values.extend(values.map(|(name, value)| (name.to_owned(), value)));
        self
    }

    /// Names an attribute whose own name is no identifier by an alias in this write's expressions.
    pub(crate) fn alias(mut self, alias: &str, attribute: String) -> Self {
        self.names.insert(alias.to_owned(), attribute);
        self
    }

    /// Makes an update return the changed item.
    pub(crate) fn returning_item(mut self) -> Self {
        self.returned = Some(ReturnValue::AllNew);
        self
    }

    fn update_expression(&self) -> String {
        let clauses = [("SET", &self.set), ("REMOVE", &self.remove), ("ADD", &self.add), ("DELETE", &self.delete)];
        let clauses = clauses.into_iter().filter(|(_, parts)| !parts.is_empty());
        clauses.map(|(keyword, parts)| format!("{keyword} {}", parts.join(", "))).collect::<Vec<_>>().join(" ")
    }

    fn condition(&self) -> Option<String> {
        match self.conditions.as_slice() {
            [] => None,
            [condition] => Some(condition.clone()),
            conditions => Some(format!("({})", conditions.join(") AND ("))),
        }
    }

    /// Takes the expressions, with the names and values that they use. DynamoDB refuses unused ones.
    fn expressions(&mut self) -> Expressions {
        let (update, condition) = (self.update_expression(), self.condition());
        let texts = [update.as_str(), condition.as_deref().unwrap_or_default()];
        let attribute = |name: &str| self.names.get(name).cloned().unwrap_or_else(|| name.to_owned());
        let names = texts.into_iter().flat_map(names_in).map(|name| (format!("#{name}"), attribute(name)));
        let names: HashMap<_, _> = names.collect();
        let values = texts.into_iter().flat_map(|text| tokens(text, ':'));
        let values: Item = values.filter_map(|name| self.values.remove_entry(&format!(":{name}"))).collect();
        Expressions {
            names: Some(names).filter(|names| !names.is_empty()),
            values: Some(values).filter(|values| !values.is_empty()),
            update,
            condition,
        }
    }
}

/// The expressions of a write.
struct Expressions {
    /// Empty unless the write changes attributes.
    update: String,
    condition: Option<String>,
    names: Option<HashMap<String, String>>,
    values: Option<Item>,
}

/// Sets the members that the SDK's builders of all writes share.
macro_rules! conditional {
    ($write:ident, $expressions:ident, $builder:expr) => {
        $builder
            .table_name($write.table)
            .set_return_values_on_condition_check_failure(
                $expressions.condition.as_ref().map(|_| ReturnValuesOnConditionCheckFailure::AllOld),
            )
            .set_condition_expression($expressions.condition)
            .set_expression_attribute_names($expressions.names)
            .set_expression_attribute_values($expressions.values)
    };
}

/// Conversions to parts of a transaction.
impl ItemWrite<'_> {
    pub(crate) fn put(mut self, part: Part) -> Write {
        let expressions = self.expressions();
        let put = conditional!(self, expressions, Put::builder()).set_item(Some(self.item)).build();
        Write::new(part, TransactWriteItem::builder().put(put.expect("a table and an item are given")))
    }

    pub(crate) fn update(mut self, part: Part) -> Write {
        let expressions = self.expressions();
        let update = conditional!(self, expressions, Update::builder()).update_expression(expressions.update);
        let update = update.set_key(Some(self.item)).build().expect("a table, a key and an expression are given");
        Write::new(part, TransactWriteItem::builder().update(update))
    }

    pub(crate) fn delete(mut self, part: Part) -> Write {
        let expressions = self.expressions();
        let delete = conditional!(self, expressions, Delete::builder()).set_key(Some(self.item)).build();
        Write::new(part, TransactWriteItem::builder().delete(delete.expect("a table and a key are given")))
    }

    /// Checks the condition without a change of the item.
    pub(crate) fn check(mut self, part: Part) -> Write {
        let expressions = self.expressions();
        let check = conditional!(self, expressions, ConditionCheck::builder()).set_key(Some(self.item)).build();
        let check = check.expect("a table, a key and a condition are given");
        Write::new(part, TransactWriteItem::builder().condition_check(check))
    }
}

/// Writes outside a transaction.
impl ItemWrite<'_> {
    pub(crate) async fn put_now(mut self) -> Result<Written<()>, StoreError> {
        let expressions = self.expressions();
        let put = conditional!(self, expressions, self.db.client().put_item()).set_item(Some(self.item));
        Ok(write("PutItem", || put.clone().send_metered()).await?.map(drop))
    }

    pub(crate) async fn update_now(mut self) -> Result<Written<Item>, StoreError> {
        let expressions = self.expressions();
        let update =
            conditional!(self, expressions, self.db.client().update_item()).set_return_values(self.returned.clone());
        let update = update.update_expression(expressions.update).set_key(Some(self.item));
        Ok(write("UpdateItem", || update.clone().send_metered())
            .await?
            .map(|updated| updated.attributes.unwrap_or_default()))
    }

    pub(crate) async fn delete_now(mut self) -> Result<Written<()>, StoreError> {
        let expressions = self.expressions();
        let delete = conditional!(self, expressions, self.db.client().delete_item()).set_key(Some(self.item));
        Ok(write("DeleteItem", || delete.clone().send_metered()).await?.map(drop))
    }
}

/// The names of attributes in an expression, which follow `#`.
pub(super) fn names_in(expression: &str) -> impl Iterator<Item = &str> {
    tokens(expression, '#')
}

/// The identifiers that follow a mark.
fn tokens(expression: &str, mark: char) -> impl Iterator<Item = &str> {
    let rests = expression.split(mark).skip(1);
    rests.map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{Table, s};

    fn table() -> Table {
        let config = aws_sdk_dynamodb::Config::builder().behavior_version_latest().build();
        Table { db: Db { client: aws_sdk_dynamodb::Client::from_conf(config) }, name: "t".to_owned() }
    }

    #[test]
    fn an_update_has_the_names_and_values_of_its_expressions_and_no_others() {
        let (table, key) = (table(), Item::from([("pk".to_owned(), s("a"))]));
        let write = table.write(key.clone()).set("states.silent", s("yes")).remove(["hop"]).count("version");
        let write = write.add("tags", s("x")).when("#owner = :owner", [(":owner", s("me"))]).when_version(Some(3));
        let write = write.alias("hop", "e#1".to_owned()).update(Part::Client);
        let update = write.item.update().unwrap();
        assert_eq!(
            update.update_expression(),
            "SET #states.#silent = :states_silent REMOVE #hop ADD #version :one, #tags :tags"
        );
        assert_eq!(update.condition_expression(), Some("(#owner = :owner) AND (version = :found_version)"));
        let names = [("#states", "states"), ("#silent", "silent"), ("#hop", "e#1"), ("#version", "version")];
        let names = names.into_iter().chain([("#tags", "tags"), ("#owner", "owner")]);
        let names = names.map(|(name, attribute)| (name.to_owned(), attribute.to_owned())).collect();
        assert_eq!(update.expression_attribute_names(), Some(&names));
        let values = [(":one", n(1)), (":tags", s("x")), (":owner", s("me")), (":found_version", n(3))];
        let values = values.into_iter().chain([(":states_silent", s("yes"))]);
        let values = values.map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(update.expression_attribute_values(), Some(&values));

        let write = table.write(key).put(Part::Client);
        let put = write.item.put().unwrap();
        assert!(put.condition_expression().is_none() && put.expression_attribute_names().is_none());
        assert!(put.expression_attribute_values().is_none());
    }
}
