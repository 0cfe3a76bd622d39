//! `/settings/keys`.

use domain::fields::Invalid;
use domain::key::{KeyCursor, KeyDraft, KeyList, KeyView, MAX_LIVE_KEYS, NewKey, ROTATION_OVERLAP};
use domain::list::KEY_PAGE;
use edge::Problem;
use serde_json::json;

use super::{Operation, SETTINGS_KEYS, Schemas, identifier, size, size_rule};
use crate::document::examples::{KEY_ID, key, new_key, to_json};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![list(schemas), create(schemas), rotate(schemas), revoke(schemas)]
}

fn of_key(operation: Operation) -> Operation {
    operation
        .in_path("id", identifier(), "The key's id, which is not the key.", KEY_ID)
        .tag(SETTINGS_KEYS)
        .coach()
        .refuses(Problem::NotFound("key"))
}

fn made(schemas: &mut Schemas, about: &'static str) -> Answer {
    let of_key = json!({ "id": "$response.body#/id" });
    Answer::json(201, about, schemas.of::<NewKey>(), &[("key", to_json(&new_key()))])
        .link("rotateKey", of_key.clone())
        .link("revokeKey", of_key)
}

fn list(schemas: &mut Schemas) -> Operation {
    let example = to_json(&KeyList { keys: vec![key()], next_cursor: None });
    let about = "Live keys first, then those that are revoked or have expired; newest first in both.";
    Operation::new("GET", "/settings/keys", "listKeys")
        .tag(SETTINGS_KEYS)
        .coach()
        .summary("List keys")
        .about(
            "A key that ends while pages are read keeps its place, so that each key is listed once. A replaced key is live until its overlap \
             ends.",
        )
        .in_query("limit", size(KEY_PAGE), size_rule("Keys in the answer", KEY_PAGE))
        .in_query(
            "status",
            json!({ "type": "string", "enum": ["live"] }),
            "Keys alone that are neither revoked nor expired.",
        )
        .in_query(
            "cursor",
            json!({ "type": "string", "pattern": KeyCursor::PATTERN }),
            "`next_cursor` of the page before. Empty: the first page.",
        )
        .answers(
            Answer::json(200, about, schemas.of::<KeyList>(), &[("keys", example)])
                .link("listKeys", json!({ "cursor": "$response.body#/next_cursor" })),
        )
        .refuses(malformed("cursor", "must be the next_cursor of an earlier answer"))
        .refuses(malformed("status", "must be live, or left out"))
}

fn malformed(field: &'static str, rule: &'static str) -> Problem {
    Problem::Invalid(Invalid::field(field, rule))
}

fn create(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("CreateKey", KeyDraft::schema().into_json());
    Operation::new("POST", "/settings/keys", "createKey")
        .tag(SETTINGS_KEYS)
        .coach()
        .summary("Create a key")
        .about(format!("The key is shown this once. At most {MAX_LIVE_KEYS} of a workspace live at a time."))
        .body(
            body,
            &[
                ("partner", json!({ "name": "Booking desk", "scope": "partner" })),
                (
                    "crm",
                    json!({
                        "name": "Lead forms", "scope": "crm", "permissions": ["contacts.read", "contacts.write"],
                        "expires_at": "2126-01-01T00:00:00Z",
                    }),
                ),
            ],
        )
        .answers(made(schemas, "The key, and its record."))
        .refuses(Problem::Invalid(Invalid::field("expires_at", "must be in the future")))
        .refuses(Problem::KeyLimit)
}

fn rotate(schemas: &mut Schemas) -> Operation {
    of_key(Operation::new("POST", "/settings/keys/{id}/rotate", "rotateKey"))
        .summary("Replace a key")
        .about(format!("A new key like the old one, which lives on for {} hours.", ROTATION_OVERLAP.num_hours()))
        .answers(made(schemas, "The new key, and its record."))
        .refuses(Problem::KeyLimit)
        .refuses(Problem::KeyNotLive)
}

fn revoke(schemas: &mut Schemas) -> Operation {
    let answer =
        Answer::json(200, "The key's record, which stays.", schemas.of::<KeyView>(), &[("key", to_json(&key()))]);
    of_key(Operation::new("DELETE", "/settings/keys/{id}", "revokeKey"))
        .summary("Revoke a key")
        .about("From the next request on. Revoking a revoked key changes nothing.")
        .answers(answer)
}
