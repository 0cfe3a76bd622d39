//! `PATCH /settings/keys/{id}`, and the status of a key.

use std::future::IntoFuture;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{make_keys, new_key, path};
use crate::settings::start_with_session;
use crate::world::{Caller, Reply, World, list, time};

const DAY_S: u64 = 86_400;
/// Store calls before the transaction of a rotation or of a new expiry: the count of the request, the workspace, the
/// key, and the workspace again.
const CALLS_BEFORE: usize = 4;

/// The key as the list shows it.
pub(super) async fn listed(settings: &Caller, key: &Reply) -> Value {
    let keys = list(settings.get("/settings/keys").await.expect(200).body["keys"].clone());
    keys.into_iter().find(|listed| listed["id"] == key.body["id"]).unwrap()
}

/// Status, replacement, and the time until which the key works.
fn state(key: &Value) -> [&Value; 3] {
    [&key["status"], &key["replaced_by"], &key["works_until"]]
}

/// Runs a call up to its transaction, then `meanwhile`, then the rest.
pub(super) async fn overtaken(world: &World, call: crate::world::Call, meanwhile: impl AsyncFnOnce()) -> Reply {
    world.faults(json!({ "function": "settings", "spared_calls": CALLS_BEFORE, "stalled_calls": 1 })).await;
    let calling = tokio::spawn(call.into_future());
    world.until_stalled().await;
    meanwhile().await;
    world.faults(json!({ "function": "", "spared_calls": 0, "stalled_calls": 0 })).await;
    calling.await.unwrap()
}

#[tokio::test]
async fn a_change_sets_its_fields_and_keeps_the_others() {
    let (world, settings) = start_with_session().await;
    let made = new_key(&settings, json!({ "name": "x", "scope": "crm", "permissions": ["contacts.read"] })).await;
    let bearer = world.anonymous().with_bearer(made.str("key"));
    bearer.get("/v1/crm/contacts").await.expect(200);
    let mut expected = listed(&settings, &made).await;
    assert!(expected["last_used_at"].is_string());
    let later = world.timestamp_in(3600).await;
    for (change, works_until) in [
        (json!({ "name": "Front desk" }), Value::Null),
        (json!({ "expires_at": later }), json!(later)),
        (json!({ "name": "x".repeat(100) }), json!(later)),
        (json!({ "name": "y", "expires_at": null }), Value::Null),
    ] {
        let changed = settings.patch(&path(&made), change.clone()).await.expect(200);
        for (field, value) in change.as_object().unwrap() {
            expected[field] = value.clone();
        }
        expected["works_until"] = works_until;
        assert_eq!(changed.body, expected);
        assert_eq!(listed(&settings, &made).await, expected);
    }
    bearer.get("/v1/crm/contacts").await.expect(200);
}

#[tokio::test]
async fn the_next_use_of_a_key_sees_its_new_expiry() {
    let (world, settings) = start_with_session().await;
    let soon = world.timestamp_in(600).await;
    let made = new_key(&settings, json!({ "name": "x", "scope": "partner", "expires_at": soon })).await;
    let bearer = world.anonymous().with_bearer(made.str("key"));
    bearer.get("/v1/ping").await.expect(200);
    settings.patch(&path(&made), json!({ "expires_at": world.timestamp_in(7_200).await })).await.expect(200);
    world.advance_s(3_600).await;
    bearer.get("/v1/ping").await.expect(200);
    settings.patch(&path(&made), json!({ "expires_at": null })).await.expect(200);
    world.advance_s(3_600 + 60).await;
    bearer.get("/v1/ping").await.expect(200);
    let ends = world.now().await + TimeDelta::seconds(3);
    settings.patch(&path(&made), json!({ "expires_at": ends })).await.expect(200);
    world.advance_s(3).await;
    bearer.get("/v1/ping").await.refused(401, "unauthorized");
    settings.patch(&path(&made), json!({ "expires_at": null })).await.refused(409, "key_not_active");
}

#[tokio::test]
async fn a_key_shows_its_status_its_replacement_and_until_when_it_works() {
    let (world, settings) = start_with_session().await;
    let never = new_key(&settings, json!({ "name": "never", "scope": "partner" })).await;
    let in_an_hour = world.timestamp_in(3600).await;
    let body = json!({ "name": "hour", "scope": "partner", "expires_at": in_an_hour });
    let hour = new_key(&settings, body).await;
    assert_eq!(state(&never.body), [&json!("active"), &Value::Null, &Value::Null]);
    assert_eq!(state(&hour.body), [&json!("active"), &Value::Null, &json!(in_an_hour)]);
    let mut replacements = Vec::new();
    for key in [&never, &hour] {
        let new = settings.post(&format!("{}/rotate", path(key)), json!({})).await.expect(201);
        let overlap_end = time(&new.body["created_at"]) + TimeDelta::hours(24);
        let works_until = time(&in_an_hour.clone().into()).min(overlap_end);
        let works_until = if key.body["expires_at"].is_null() { overlap_end } else { works_until };
        let old = listed(&settings, key).await;
        assert_eq!(state(&old)[..2], [&json!("replaced"), &new.body["id"]]);
        assert_eq!(time(&old["works_until"]), works_until);
        assert_eq!(state(&new.body)[..2], [&json!("active"), &Value::Null]);
        replacements.push(new);
    }
    // A replaced key takes another name and no other expiry.
    for expires_at in [Value::Null, json!(world.timestamp_in(60).await)] {
        let change = json!({ "name": "y", "expires_at": expires_at });
        settings.patch(&path(&never), change).await.refused(409, "key_not_active");
    }
    settings.patch(&path(&never), json!({ "name": "replaced" })).await.expect(200);
    // A replaced key is not replaced once more.
    let before = listed(&settings, &never).await;
    settings.post(&format!("{}/rotate", path(&never)), json!({})).await.refused(409, "key_not_active");
    assert_eq!(listed(&settings, &never).await, before);
    world.advance_s(DAY_S + 60).await;
    let settings = world.settings_of("ada").await;
    for (key, new) in [(&never, &replacements[0]), (&hour, &replacements[1])] {
        let old = listed(&settings, key).await;
        assert_eq!(state(&old)[..2], [&json!("expired"), &new.body["id"]]);
        settings.patch(&path(key), json!({ "expires_at": null })).await.refused(409, "key_not_active");
        settings.patch(&path(key), json!({ "name": "ended" })).await.expect(200);
        world.anonymous().with_bearer(key.str("key")).get("/v1/ping").await.refused(401, "unauthorized");
    }
    let new = &replacements[0];
    let revoked = settings.delete(&path(new)).await.expect(200);
    assert_eq!(state(&revoked.body), [&json!("revoked"), &Value::Null, &Value::Null]);
    for change in [json!({ "name": "z" }), json!({ "expires_at": null })] {
        settings.patch(&path(new), change).await.refused(409, "key_revoked");
    }
}

#[tokio::test]
async fn a_rotation_that_a_change_overtakes_has_the_new_name_and_expiry() {
    let (world, settings) = start_with_session().await;
    let old = new_key(&settings, json!({ "name": "x", "scope": "partner" })).await;
    let in_an_hour = world.timestamp_in(3600).await;
    let rotate = settings.post(&format!("{}/rotate", path(&old)), json!({}));
    let new = overtaken(&world, rotate, async || {
        settings.patch(&path(&old), json!({ "name": "y", "expires_at": in_an_hour })).await.expect(200);
    });
    let new = new.await.expect(201);
    assert_eq!((new.str("name"), &new.body["expires_at"]), ("y", &json!(in_an_hour)));
    let old_now = listed(&settings, &old).await;
    assert_eq!(state(&old_now), [&json!("replaced"), &new.body["id"], &json!(in_an_hour)], "not prolonged");
    assert_eq!(list(settings.get("/settings/keys").await.body["keys"].clone()).len(), 2);
}

#[tokio::test]
async fn a_change_that_a_rotation_or_revocation_overtakes_is_refused() {
    let (world, settings) = start_with_session().await;
    for (is_rotated, code) in [(true, "key_not_active"), (false, "key_revoked")] {
        let key = new_key(&settings, json!({ "name": "x", "scope": "partner" })).await;
        let change = settings.patch(&path(&key), json!({ "name": "y", "expires_at": null }));
        let refused = overtaken(&world, change, async || {
            if is_rotated {
                settings.post(&format!("{}/rotate", path(&key)), json!({})).await.expect(201);
            } else {
                settings.delete(&path(&key)).await.expect(200);
            }
        });
        refused.await.refused(409, code);
        let shown = listed(&settings, &key).await;
        assert_eq!(shown["name"], "x");
        assert_eq!(shown["works_until"].is_null(), !is_rotated);
        let actions = list(settings.get("/settings/audit").await.expect(200).body["data"].clone());
        assert!(actions.iter().all(|line| line["action"] != "key.updated"));
    }
}

#[tokio::test]
async fn a_key_that_ends_during_its_prolongation_keeps_its_place_or_is_refused() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let body = json!({ "name": "x", "scope": "partner" });
    make_keys(&settings, 49).await;
    for is_place_taken in [false, true] {
        let ends = world.now().await + TimeDelta::seconds(3);
        let short = ada.new_key(json!({ "name": "short", "scope": "partner", "expires_at": ends })).await;
        let prolong = settings.patch(&path(&short), json!({ "expires_at": null }));
        let mut other = None;
        let prolonged = overtaken(&world, prolong, async || {
            world.advance_s(4).await;
            if is_place_taken {
                other = Some(settings.post("/settings/keys", body.clone()).await.expect(201));
            }
        });
        let prolonged = prolonged.await;
        let status = if is_place_taken { 401 } else { 200 };
        world.anonymous().with_bearer(short.str("key")).get("/v1/ping").await.expect(status);
        if is_place_taken {
            prolonged.refused(409, "key_not_active");
        } else {
            prolonged.expect(200);
        }
        settings.post("/settings/keys", body.clone()).await.refused(409, "key_limit_reached");
        let workspace = settings.get("/settings/workspace").await.expect(200);
        assert_eq!(workspace.body["keys"], json!({ "live": 50, "max": 50 }));
        settings.delete(&path(other.as_ref().unwrap_or(&short))).await.expect(200);
    }
}

#[tokio::test]
async fn a_key_that_ends_during_its_prolongation_gets_a_change_of_the_workspace() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let ends = world.now().await + TimeDelta::seconds(3);
    let key = ada.new_key(json!({ "name": "x", "scope": "partner", "expires_at": ends })).await;
    let prolong = settings.patch(&path(&key), json!({ "expires_at": null }));
    let prolonged = overtaken(&world, prolong, async || {
        world.advance_s(4).await;
        world.coach("ada").not_entitled().await;
    });
    prolonged.await.expect(200);
    let bearer = world.anonymous().with_bearer(key.str("key"));
    bearer.get("/v1/ping").await.expect(402);
    // The key is on the ring again.
    world.coach("ada").await;
    bearer.get("/v1/ping").await.expect(200);
}
