//! `/settings/keys`.

use domain::key::{KeyChange, KeyCursor, KeyDraft, KeyList, MAX_LIVE_KEYS, ROTATION_OVERLAP};
use domain::list::KEY_PAGE;
use edge::Problem;
use serde_json::json;

use super::{Operation, Schemas, identifier, invalid, invalid_cursor};
use crate::document::examples::{KEY_ID, key, new_key, replaced_key, revoked_key};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![list(schemas), create(schemas), update(schemas), rotate(schemas), revoke(schemas)]
}

fn with_key_id(operation: Operation) -> Operation {
    operation
        .in_path("id", identifier(), "The key's id, which is not the key.", KEY_ID)
        .refuses([Problem::NotFound("key")])
}

fn created_key(schemas: &mut Schemas, about: &'static str) -> Answer {
    Answer::of(schemas, 201, about, "key", &new_key())
        .link(&["updateKey", "rotateKey", "revokeKey"], json!({ "id": "$response.body#/id" }))
}

fn list(schemas: &mut Schemas) -> Operation {
    let about = "Live keys first, then those that are revoked or have expired; newest first in both.";
    let answer =
        Answer::of(schemas, 200, about, "keys", &KeyList { keys: vec![key(), replaced_key()], next_cursor: None })
            .link(&["listKeys"], json!({ "cursor": "$response.body#/next_cursor" }));
    Operation::new("GET", "/settings/keys", "listKeys", "List keys")
        .about(
            "A key that expires between two pages keeps its place, so each key is listed once. A replaced key is live \
             until its overlap ends.",
        )
        .size("limit", "Keys in the answer", KEY_PAGE)
        .filter(
            "status",
            json!({ "type": "string", "enum": ["live"] }),
            "`live`: only keys that are neither revoked nor expired.",
        )
        .in_query(
            "cursor",
            json!({ "type": "string", "pattern": KeyCursor::PATTERN }),
            "`next_cursor` of the page before. Empty: the first page.",
        )
        .answers(answer)
        .refuses([invalid_cursor(), invalid("status", "must be live, or left out")])
}

fn create(schemas: &mut Schemas) -> Operation {
    Operation::new("POST", "/settings/keys", "createKey", "Create a key")
        .about(format!("The answer shows the key once. A workspace has at most {MAX_LIVE_KEYS} live keys."))
        .body(schemas, "CreateKey", KeyDraft::schema())
        .example("partner", json!({ "name": "Booking desk", "scope": "partner" }))
        .example(
            "crm",
            json!({
                "name": "Lead forms", "scope": "crm", "permissions": ["contacts.read", "contacts.write"],
                "expires_at": "2126-01-01T00:00:00Z",
            }),
        )
        .answers(created_key(schemas, "The key, and its record."))
        .refuses([
            invalid("expires_at", "must be in the future"),
            invalid("permissions", "must name at least one permission for a key of scope crm"),
            Problem::KeyLimit,
        ])
}

fn update(schemas: &mut Schemas) -> Operation {
    with_key_id(Operation::new("PATCH", "/settings/keys/{id}", "updateKey", "Change a key"))
        .about(
            "Omitted fields stay unchanged. The next request with the key sees the new expiry. A key that has expired \
             or is replaced takes another name only.",
        )
        .body(schemas, "UpdateKey", KeyChange::schema())
        .example("name", json!({ "name": "Front desk" }))
        .example("expiry", json!({ "expires_at": "2126-01-01T00:00:00Z" }))
        .example("never", json!({ "expires_at": null }))
        .answers(Answer::of(schemas, 200, "The key after the change.", "key", &key()))
        .refuses([invalid("expires_at", "must be in the future"), Problem::KeyRevoked, Problem::KeyNotActive])
}

fn rotate(schemas: &mut Schemas) -> Operation {
    with_key_id(Operation::new("POST", "/settings/keys/{id}/rotate", "rotateKey", "Replace a key"))
        .about(format!(
            "Creates a new key with the same settings. The old key works for {} more hours, unless it expires earlier.",
            ROTATION_OVERLAP.num_hours()
        ))
        .answers(created_key(schemas, "The new key, and its record."))
        .refuses([Problem::KeyLimit, Problem::KeyNotLive, Problem::KeyNotActive])
}

fn revoke(schemas: &mut Schemas) -> Operation {
    with_key_id(Operation::new("DELETE", "/settings/keys/{id}", "revokeKey", "Revoke a key"))
        .about("The key is refused from the next request on. Revoking a revoked key changes nothing.")
        .answers(Answer::of(schemas, 200, "The revoked key. Its record is kept.", "key", &revoked_key()))
}
