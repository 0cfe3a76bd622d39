//! Values of facts. The application's own records may lack a name or have an empty text instead of null.

use serde_json::Value;

use crate::email::{Email, MAX_EMAIL_CHARS};
use crate::fields::{Fields, Invalid};
use crate::id::{InvalidId, MAX_ID_CHARS};

pub(super) const MAX_NAME_CHARS: usize = 1_000;

/// Requires a field, although its value may be null: a record without the field is not whole.
pub(super) fn present(fields: Fields<'_>, name: &str) -> Result<(), Invalid> {
    if fields.mentions(name) { Ok(()) } else { Err(fields.refuse(name, "is required (it may be null)")) }
}

/// Reads a text or null. The application's own records may contain an empty text instead of null.
pub(super) fn nullable<'a>(fields: Fields<'a>, name: &str, max: usize) -> Result<Option<&'a str>, Invalid> {
    present(fields, name)?;
    if fields.value(name).and_then(Value::as_str) == Some("") { Ok(None) } else { fields.text(name, max) }
}

/// Reads an id or null. An empty id is malformed.
pub(super) fn nullable_id<T>(
    fields: Fields<'_>,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, InvalidId>,
) -> Result<Option<T>, Invalid> {
    present(fields, name)?;
    fields.parsed(name, MAX_ID_CHARS, parse)
}

/// Reads a name. The application's own records may contain an empty name.
pub(super) fn name(fields: Fields<'_>, member: &str) -> Result<String, Invalid> {
    if fields.value(member).and_then(Value::as_str) == Some("") {
        return Ok(String::new());
    }
    Ok(fields.required_text(member, MAX_NAME_CHARS)?.to_owned())
}

/// Reads an e-mail address as the application has it, or null.
pub(super) fn email(fields: Fields<'_>) -> Result<Option<Email>, Invalid> {
    Ok(nullable(fields, "email", MAX_EMAIL_CHARS)?.map(Email::unchecked))
}
