//! The error for a record that cannot be read. Serde's messages quote values, which must not reach the log, so the
//! error repeats none of them.

use std::fmt::Display;

use crate::db::StoreError;

/// Builds the error for a record of an unexpected form. Only "missing field" is kept of serde's message: it quotes no
/// value.
pub(crate) fn unreadable(entity: &'static str, error: impl Display) -> StoreError {
    let text = error.to_string();
    let reason = if text.starts_with("missing field") { text } else { "a member has another form".to_owned() };
    StoreError::Corrupt { entity, reason }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::db::{from_item, to_item};

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never read")]
    struct Thing {
        kind: Kind,
        count: u32,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Known,
    }

    #[test]
    fn the_error_for_an_unreadable_record_quotes_no_values() {
        let text = |record: serde_json::Value| {
            let item = from_item::<Thing>("thing", to_item(&record)).unwrap_err().to_string();
            let json = serde_json::from_value::<Thing>(record).map_err(|error| unreadable("thing", error));
            assert_eq!(json.unwrap_err().to_string(), item);
            item
        };
        let form = "a stored thing cannot be read: a member has another form";
        for record in [
            json!({ "kind": "grace", "count": 1 }),
            json!({ "kind": "known", "count": "grace" }),
            json!({ "kind": "known", "count": -4155552671_i64 }),
            json!({ "kind": ["grace"], "count": 1 }),
        ] {
            assert_eq!(text(record), form);
        }
        assert_eq!(text(json!({ "kind": "known" })), "a stored thing cannot be read: missing field `count`");
    }
}
