//! Conditions on the time of the fact that set an item, its attribute `saved_at`: a date-time of nine decimals, which sorts as text.
//!
//! Items that version 0.1 wrote hold milliseconds as a number there. DynamoDB finds values of two types neither equal nor ordered, so each
//! condition states both forms.

/// What is stored is not newer than the fact. Values: `:at`, the fact's time; `:at_ms`, its milliseconds.
pub(crate) const NOT_NEWER: &str = "attribute_not_exists(pk) OR saved_at <= :at OR saved_at <= :at_ms";

/// What is stored was set by the fact that was found. Values: `:found`, that fact's time; `:found_ms`, its milliseconds.
pub(crate) const AS_FOUND: &str = "saved_at = :found OR saved_at = :found_ms";
