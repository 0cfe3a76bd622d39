//! The holders of addresses: one item per e-mail address or ending of a phone number, with its first holder and all
//! later holders.
//!
//! Attributes beside the key: `holder`, `later_holders` (set; absent when empty). The first holder keeps the address.
//! When the first holder leaves, the same transaction makes a later holder the first. Every write states the holders
//! that it read.
//!
//! An item lists at most `MAX_HOLDERS`. A placeholder address that an import gives to every client must not outgrow
//! DynamoDB's item size. A holder beyond the limit keeps the address, but is not found by it.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::db::{Item, Part, StoreError, Table, Write, s};

/// Holders that one item lists.
const MAX_HOLDERS: usize = 1_000;

/// The holders of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holders {
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

    /// All holders, the first one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.holder.as_str()).chain(self.others.iter().map(String::as_str))
    }

    fn has(&self, id: &str) -> bool {
        self.all().any(|other| other == id)
    }
}

/// The item of an address.
pub(crate) struct Address<'a> {
    pub(crate) table: &'a Table,
    pub(crate) key: Item,
}

impl Address<'_> {
    /// Takes an address that has no holder.
    pub(crate) fn take(self, id: &str) -> Write {
        let mut item = self.key;
        item.insert("holder".to_owned(), s(id));
        self.table.write(item).when_absent().put(Part::Address)
    }

    /// Adds a holder to the holders that were read. Returns `None` if the holder is listed already, or the item is
    /// full.
    pub(crate) fn join(self, found: Option<&Holders>, id: &str) -> Option<Write> {
        let Some(holders) = found else { return Some(self.take(id)) };
        if holders.has(id) || holders.all().count() >= MAX_HOLDERS {
            return None;
        }
        let joined = self.table.write(self.key).add("later_holders", AttributeValue::Ss(vec![id.to_owned()]));
        Some(joined.when("holder = :found", [(":found", s(&holders.holder))]).update(Part::Address))
    }

    /// Removes a holder from the holders that were read. Returns `None` if the holder is not listed.
    pub(crate) fn leave(self, found: Option<&Holders>, id: &str) -> Option<Write> {
        let holders = found.filter(|holders| holders.has(id))?;
        let write = self.table.write(self.key).when("holder = :found", [(":found", s(&holders.holder))]);
        let (write, removed) = match holders.others.first() {
            None => return Some(write.when("attribute_not_exists(later_holders)", []).delete(Part::Address)),
            Some(heir) if holders.holder == id => (write.set("holder", s(heir)), heir.as_str()),
            Some(_) => (write, id),
        };
        let write = write.take_out("later_holders", AttributeValue::Ss(vec![removed.to_owned()]));
        Some(write.when("contains(later_holders, :removed)", [(":removed", s(removed))]).update(Part::Address))
    }
}
