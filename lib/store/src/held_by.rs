//! Who has an address: one item per e-mail address or phone number, with its first holder and whoever came later.
//!
//! Attributes beside the key: `holder`, `later_holders` (set; absent when empty). The first holder keeps the address; when it leaves, one of
//! the others takes its place, in the transaction of whatever made it leave. Every write states what it found.
//!
//! So many are noted. Whoever comes later has the address all the same, and is not found by it: a placeholder that an import gives to
//! everybody leads to nobody, and its item must not outgrow what DynamoDB holds.

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Update};

use crate::db::{Item, Part, StoreError, Write, s};

/// Holders of one address that are noted.
const MAX_HOLDERS: usize = 1_000;

/// The holders of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holders {
    pub(crate) holder: String,
    pub(crate) others: Vec<String>,
}

impl Holders {
    pub(crate) fn from_item(mut item: Item) -> Result<Self, StoreError> {
        let Some(AttributeValue::S(holder)) = item.remove("holder") else {
            return Err(StoreError::corrupt("address", "holder is missing"));
        };
        let mut others = match item.remove("later_holders") {
            Some(AttributeValue::Ss(others)) => others,
            _ => Vec::new(),
        };
        others.sort_unstable();
        Ok(Self { holder, others })
    }

    /// All of them, the first holder first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.holder.as_str()).chain(self.others.iter().map(String::as_str))
    }

    fn has(&self, id: &str) -> bool {
        self.all().any(|other| other == id)
    }
}

/// An address's item.
pub(crate) struct Address<'a> {
    pub(crate) table: &'a str,
    pub(crate) key: Item,
}

impl Address<'_> {
    /// Takes an address that nobody has.
    pub(crate) fn take(self, id: &str) -> Write {
        let mut item = self.key;
        item.insert("holder".to_owned(), s(id));
        Part::Address.put_over(self.table, item, None)
    }

    /// Part of a transaction: nobody has the address.
    pub(crate) fn check_free(self) -> Write {
        let check = ConditionCheck::builder().table_name(self.table).set_key(Some(self.key));
        Part::Address.check(check.condition_expression("attribute_not_exists(pk)"))
    }

    /// Adds a holder to what was found; nothing to write when it is one already, or there are as many as are noted.
    pub(crate) fn join(self, found: Option<&Holders>, id: &str) -> Option<Write> {
        let Some(holders) = found else { return Some(self.take(id)) };
        if holders.has(id) || holders.all().count() >= MAX_HOLDERS {
            return None;
        }
        let update = Update::builder()
            .table_name(self.table)
            .set_key(Some(self.key))
            .update_expression("ADD later_holders :joining")
            .condition_expression("holder = :holder")
            .expression_attribute_values(":joining", AttributeValue::Ss(vec![id.to_owned()]))
            .expression_attribute_values(":holder", s(&holders.holder));
        Some(Part::Address.update(update))
    }

    /// Takes a holder off what was found; nothing to write when it is none.
    pub(crate) fn leave(self, found: Option<&Holders>, id: &str) -> Option<Write> {
        let holders = found.filter(|holders| holders.has(id))?;
        if holders.holder == id && holders.others.is_empty() {
            let delete = Delete::builder()
                .table_name(self.table)
                .set_key(Some(self.key))
                .condition_expression("holder = :holder AND attribute_not_exists(later_holders)")
                .expression_attribute_values(":holder", s(id));
            return Some(Part::Address.delete(delete));
        }
        let update = Update::builder()
            .table_name(self.table)
            .set_key(Some(self.key))
            .condition_expression("holder = :holder AND contains(later_holders, :leaving)")
            .expression_attribute_values(":holder", s(&holders.holder));
        let (expression, leaving) = match holders.others.first() {
            Some(heir) if holders.holder == id => ("SET holder = :leaving DELETE later_holders :set", heir.clone()),
            _ => ("DELETE later_holders :set", id.to_owned()),
        };
        let update = update
            .update_expression(expression)
            .expression_attribute_values(":set", AttributeValue::Ss(vec![leaving.clone()]))
            .expression_attribute_values(":leaving", s(leaving));
        Some(Part::Address.update(update))
    }
}
