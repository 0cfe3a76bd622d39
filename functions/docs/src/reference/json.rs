//! Values of the document.

use serde_json::Value;

/// A value without the quotation marks of a text.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text of a value, empty if the value is absent or no text.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
