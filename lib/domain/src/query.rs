//! Query parameters that filter. An empty parameter is no filter.

use std::fmt::Display;

use crate::fields::Invalid;
use crate::time::{TIME_RULE, Timestamp};

/// Parses the parameter that `query` looks up. Returns `None` if the parameter is absent or empty.
pub fn parsed<T, E: Display>(
    query: impl Fn(&str) -> Option<String>,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, Invalid> {
    let given = query(name).filter(|text| !text.is_empty());
    given.map(|text| parse(&text).map_err(|rule| Invalid::field(name, rule))).transpose()
}

/// Parses a time by the rules of [`Timestamp::parse_query`].
pub fn time(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse_query(text).ok_or(TIME_RULE)
}
