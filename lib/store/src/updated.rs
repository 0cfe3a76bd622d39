//! Range keys of the index `by_update` of the table `crm`: the prefix of a kind of records, the time at which the
//! service stored a record's last shown change, and the record's UUID. The time of a record only goes forward.
//!
//! The time is that of the service's clock, never the `occurred_at` of a fact: a fact that arrives late is listed after
//! what a reader has seen. A write whose change is not shown keeps the key. An entry costs a write unit when it is
//! created and two when it moves, and one when another attribute of its record changes.

use domain::crm_list::Update;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::db::StoreError;

/// The attribute of the key.
pub(crate) const UPDATED: &str = "updated";

/// The last update of a record, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Updated {
    /// Ends with `#`.
    prefix: String,
    update: Update,
}

impl Updated {
    /// The key of a new record.
    pub(crate) fn first(prefix: &str, id: Uuid, now: Timestamp) -> Self {
        Self { prefix: prefix.to_owned(), update: Update { at: now, id } }
    }

    /// The key after a change.
    pub(crate) fn next(&self, now: Timestamp) -> Self {
        let at = now.after(self.update.at);
        Self { prefix: self.prefix.clone(), update: Update { at, ..self.update } }
    }

    /// The key after a write that may have changed something that is shown.
    pub(crate) fn next_if(&self, is_change: bool, now: Timestamp) -> Self {
        if is_change { self.next(now) } else { self.clone() }
    }

    pub(crate) fn update(&self) -> Update {
        self.update
    }
}

impl From<Updated> for String {
    fn from(updated: Updated) -> Self {
        format!("{}{}", updated.prefix, updated.update)
    }
}

impl TryFrom<String> for Updated {
    type Error = StoreError;

    fn try_from(text: String) -> Result<Self, StoreError> {
        let corrupt = || StoreError::corrupt("record", "its time of update");
        let (kind, update) = text.split_once('#').ok_or_else(corrupt)?;
        Ok(Self { prefix: format!("{kind}#"), update: Update::parse(update).ok_or_else(corrupt)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_goes_forward_even_if_the_clock_does_not() {
        let now = Timestamp::from_ms(1_790_000_000_000);
        let first = Updated::first("BOOKING#", Uuid::from_u128(7), now);
        let text = String::from(first.clone());
        assert_eq!(Updated::try_from(text.clone()).unwrap(), first);
        let next = first.next(Timestamp::from_ms(0));
        assert_eq!(next.update(), Update { at: Timestamp::from_ms(now.ms() + 1), id: Uuid::from_u128(7) });
        assert!(String::from(next) > text);
        assert_eq!((first.next_if(false, now), first.next_if(true, now)), (first.clone(), first.next(now)));
    }
}
