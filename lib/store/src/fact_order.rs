//! Conditions on `saved_at`: the time of the fact that set an item. A [`FactTime`] is stored as text of one width. Such
//! texts sort as the instants do.

use domain::fact_time::FactTime;

use crate::db::{ItemWrite, s};

/// Adds the time of a fact to a write, and the condition that the stored item is not newer.
pub(crate) fn set_by_fact(write: ItemWrite<'_>, at: FactTime) -> ItemWrite<'_> {
    write.set("saved_at", s(at.to_string())).when("attribute_not_exists(pk) OR saved_at <= :saved_at", [])
}

/// Adds the condition that the stored item is the one that a fact set at that time, or for `None` that there is no
/// item.
pub(crate) fn as_found(write: ItemWrite<'_>, found: Option<FactTime>) -> ItemWrite<'_> {
    match found {
        Some(at) => write.when("saved_at = :found", [(":found", s(at.to_string()))]),
        None => write.when_absent(),
    }
}
