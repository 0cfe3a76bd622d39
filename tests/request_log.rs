//! The request log: `GET /v1/requests` for a key, `GET /settings/requests` and its summary for a coach.

mod costs;
mod ended_keys;
mod faults;
mod filters;
mod kept;
mod privacy;
mod records;
mod summary;

use serde_json::{Value, json};

use crate::world::{Caller, Coach, Reply, list};

/// Members of a record.
const MEMBERS: [&str; 15] = [
    "at",
    "client",
    "code",
    "duration_ms",
    "id",
    "idempotency_key_sha256",
    "key_id",
    "method",
    "parameters",
    "replayed",
    "route",
    "status",
    "target",
    "tool",
    "user_agent",
];

/// The records that a request to a log shows.
async fn shown(caller: &Caller, path: &str) -> Vec<Value> {
    list(caller.get(path).await.expect(200).body["data"].clone())
}

/// The records of a coach's log with these filters, newest first.
async fn requests(settings: &Caller, filters: &str) -> Vec<Value> {
    shown(settings, &format!("/settings/requests?limit=200{filters}")).await
}

/// The id of the request that was answered like this.
#[track_caller]
fn id_of(reply: &Reply) -> &str {
    reply.header("x-request-id").unwrap()
}

/// A key with its id.
async fn key(coach: &Coach<'_>, scope: &str) -> (Caller, String) {
    let permissions: Vec<&str> = match scope {
        "crm" => crate::world::CRM_PERMISSIONS.to_vec(),
        _ => crate::world::PARTNER_PERMISSIONS.to_vec(),
    };
    let made = coach.new_key(json!({ "name": "Desk", "scope": scope, "permissions": permissions })).await;
    (coach.world.anonymous().with_bearer(made.str("key")), made.str("id").to_owned())
}
