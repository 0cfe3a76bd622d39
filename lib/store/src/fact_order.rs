//! The time of the fact that set an item or a part of an item, as stored: milliseconds as a number, and in a second
//! attribute the nanoseconds beyond, if there are any. A release that knows no nanoseconds reads such an item as one of
//! that millisecond.

use domain::fact_time::FactTime;
use serde::{Deserialize, Serialize};

use crate::db::{ItemWrite, n};

/// Adds the time of a fact to a write, and the condition that the stored item is not newer.
pub(crate) fn set_by_fact(write: ItemWrite<'_>, at: FactTime) -> ItemWrite<'_> {
    const NOT_NEWER: &str = "attribute_not_exists(pk) OR saved_at < :saved_at \
        OR (saved_at = :saved_at AND (attribute_not_exists(saved_ns) OR saved_ns <= :saved_ns))";
    write.set("saved_at", n(at.ms())).set("saved_ns", n(at.ns_of_ms())).when(NOT_NEWER, [])
}

/// Adds the condition that the stored item is the one that a fact set at that time, or for `None` that there is no
/// item.
pub(crate) fn as_found(write: ItemWrite<'_>, found: Option<FactTime>) -> ItemWrite<'_> {
    const AS_FOUND: &str = "saved_at = :found AND (saved_ns = :found_ns OR attribute_not_exists(saved_ns))";
    match found {
        Some(at) => write.when(AS_FOUND, [(":found", n(at.ms())), (":found_ns", n(at.ns_of_ms()))]),
        None => write.when_absent(),
    }
}

/// Defines the two attributes of a time, which are flattened into an item.
macro_rules! stored_time {
    ($(#[$doc:meta])* $name:ident: $ms:ident, $ns:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub(crate) struct $name {
            $ms: i64,
            #[serde(default, skip_serializing_if = "is_zero")]
            $ns: u32,
        }

        impl From<FactTime> for $name {
            fn from(at: FactTime) -> Self {
                Self { $ms: at.ms(), $ns: at.ns_of_ms() }
            }
        }

        impl From<$name> for FactTime {
            fn from(stored: $name) -> Self {
                Self::from_ms_and_ns(stored.$ms, stored.$ns)
            }
        }
    };
}

stored_time! {
    /// The time of the fact that set the whole item.
    SavedAt: saved_at, saved_ns
}
stored_time! {
    /// The time of the fact that set a dose log.
    DoseLogSetAt: said_at, said_ns
}
stored_time! {
    /// The time of the fact or request that set a whole calendar event.
    EventSetAt: told_at, told_ns
}
stored_time! {
    /// The time of the last fact that advanced the phase.
    PhaseSetAt: phase_set_at, phase_set_ns
}
stored_time! {
    /// The time of the last fact that a check-in was submitted.
    SubmissionSetAt: submission_said_at, submission_said_ns
}
stored_time! {
    /// The time of the last fact that a check-in was reviewed.
    ReviewSetAt: review_said_at, review_said_ns
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(ns: &u32) -> bool {
    *ns == 0
}
