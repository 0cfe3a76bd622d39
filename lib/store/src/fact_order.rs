//! The time of the fact that set an item or a part of it, as it is stored: milliseconds as a number, and beside them
//! the nanoseconds beyond, where there are any. A release that knows no nanoseconds reads such an item as one of the
//! millisecond.

use domain::fact_time::FactTime;
use serde::{Deserialize, Serialize};

/// Condition: the stored item is not newer than the fact. Values: `:at` and `:at_ns`, the fact's time.
pub(crate) const NOT_NEWER: &str = "attribute_not_exists(pk) OR saved_at < :at \
    OR (saved_at = :at AND (attribute_not_exists(saved_ns) OR saved_ns <= :at_ns))";

/// Sets the time of an item to the fact's. Values: as for [`NOT_NEWER`].
pub(crate) const SET_SAVED: &str = "saved_at = :at, saved_ns = :at_ns";

/// Condition: the stored item was set by the fact that was found. Values: `:found` and `:found_ns`, that fact's time.
pub(crate) const AS_FOUND: &str = "saved_at = :found AND (saved_ns = :found_ns OR attribute_not_exists(saved_ns))";

/// Defines the two attributes of a time, to be flattened into an item.
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
    SaidAt: said_at, said_ns
}
stored_time! {
    /// The time of the fact, or of the request, that set a whole event.
    ToldAt: told_at, told_ns
}
stored_time! {
    /// The time of the last fact about a step to another phase.
    PhaseSetAt: phase_set_at, phase_set_ns
}
stored_time! {
    /// The time of the last fact that a check-in was submitted.
    SubmissionSaidAt: submission_said_at, submission_said_ns
}
stored_time! {
    /// The time of the last fact that a check-in was reviewed.
    ReviewSaidAt: review_said_at, review_said_ns
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(ns: &u32) -> bool {
    *ns == 0
}
