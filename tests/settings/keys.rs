//! `/settings/keys`: create, change, rotate and revoke keys.

mod changes;
mod events;
mod lists;
mod rings;

use std::future::IntoFuture;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::settings::start_with_session;
use crate::world::{Caller, Reply, World, list};

/// The path of a key.
fn path(key: &Reply) -> String {
    format!("/settings/keys/{}", key.str("id"))
}

/// Creates a key and returns the answer.
async fn new_key(settings: &Caller, body: Value) -> Reply {
    settings.post("/settings/keys", body).await.expect(201)
}

/// Creates keys that never expire.
async fn make_keys(settings: &Caller, count: usize) {
    for _ in 0..count {
        new_key(settings, json!({ "name": "x", "scope": "partner" })).await;
    }
}

#[tokio::test]
async fn a_key_is_shown_once() {
    let (_world, settings) = start_with_session().await;
    let made = new_key(&settings, json!({ "name": "EMR", "scope": "partner" })).await;
    let mut expected = made.body.clone();
    let key = expected.as_object_mut().unwrap().remove("key").unwrap();
    let key = key.as_str().unwrap();
    assert_eq!(made.str("display"), format!("svc_live_…{}", &key[key.len() - 4..]));
    let listed = settings.get("/settings/keys").await.expect(200);
    assert_eq!(listed.body["keys"], json!([expected]));
    assert!(!listed.text.contains(key));
}

#[tokio::test]
async fn a_key_that_expires_during_its_revocation_frees_one_place() {
    /// The next call is the transaction.
    const CALLS_BEFORE: usize = 3;
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let make = || settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" }));
    make_keys(&settings, 49).await;
    let ends = world.now().await + TimeDelta::seconds(3);
    let short = ada.new_key(json!({ "name": "short", "scope": "partner", "expires_at": ends })).await;
    make().await.refused(409, "key_limit_reached");
    world.faults(json!({ "function": "settings", "spared_calls": CALLS_BEFORE, "stalled_calls": 1 })).await;
    let revoking = tokio::spawn(settings.delete(&path(&short)).into_future());
    world.until_stalled().await;
    world.advance_s(4).await;
    make().await.expect(201);
    world.clear_faults().await;
    revoking.await.unwrap().expect(200);
    make().await.refused(409, "key_limit_reached");
}

#[tokio::test]
async fn a_workspace_has_at_most_50_live_keys() {
    let (world, settings) = start_with_session().await;
    let make = || settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" }));
    let expires_at = world.timestamp_in(3600).await;
    let short = new_key(&settings, json!({ "name": "short", "scope": "partner", "expires_at": expires_at })).await;
    let first = make().await.expect(201);
    make_keys(&settings, 47).await;
    let replies = futures::future::join_all((0..4).map(|_| make().into_future())).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1, "at 49, of four at once one is made");
    make().await.refused(409, "key_limit_reached");
    let revoked = settings.delete(&path(&first)).await.expect(200).body;
    world.advance_s(60).await;
    assert_eq!(settings.delete(&path(&first)).await.expect(200).body, revoked, "a second revocation changes nothing");
    make().await.expect(201);
    make().await.refused(409, "key_limit_reached");
    world.advance_s(3601).await;
    make().await.expect(201);
    // A revoked key that had expired frees no second place.
    settings.delete(&path(&short)).await.expect(200);
    make().await.refused(409, "key_limit_reached");
    make_keys(&world.coach("bob").await.settings().await, 1).await;
}

#[tokio::test]
async fn a_rotation_creates_a_key_like_the_old_one() {
    let (_world, settings) = start_with_session().await;
    let permissions = json!(["login_links.create", "clients.read", "clients.read"]);
    let old = new_key(&settings, json!({ "name": "P", "scope": "partner", "permissions": permissions })).await;
    assert_eq!(old.body["permissions"], json!(["clients.read", "login_links.create"]));
    let new = settings.post(&format!("{}/rotate", path(&old)), json!({})).await.expect(201);
    assert_ne!((new.str("id"), new.str("key")), (old.str("id"), old.str("key")));
    for same in ["name", "scope", "permissions"] {
        assert_eq!(new.body[same], old.body[same]);
    }
}

#[tokio::test]
async fn a_key_is_replaced_once_whatever_its_lifetime() {
    let (world, settings) = start_with_session().await;
    for expires_in_s in [None, Some(10 * 24 * 3600), Some(3600)] {
        let expires_at = match expires_in_s {
            Some(s) => json!(world.timestamp_in(s).await),
            None => Value::Null,
        };
        let old = new_key(&settings, json!({ "name": "x", "scope": "partner", "expires_at": expires_at })).await;
        let rotate = || settings.post(&format!("{}/rotate", path(&old)), json!({}));
        let at_once = futures::future::join_all((0..8).map(|_| rotate().into_future())).await;
        let (made, refused): (Vec<Reply>, Vec<Reply>) = at_once.into_iter().partition(|reply| reply.status == 201);
        assert_eq!((made.len(), refused.len()), (1, 7), "{expires_at}");
        for reply in refused {
            reply.refused(409, "key_not_active");
        }
        rotate().await.refused(409, "key_not_active");
        assert_eq!(made[0].body["expires_at"], old.body["expires_at"], "the new key has the chosen lifetime");
        let listed = list(settings.get("/settings/keys?status=live").await.expect(200).body["keys"].clone());
        let of_old = listed.iter().find(|key| key["id"] == old.body["id"]).unwrap();
        assert_eq!(of_old["replaced_by"], made[0].body["id"]);
        for key in &listed {
            settings.delete(&format!("/settings/keys/{}", key["id"].as_str().unwrap())).await.expect(200);
        }
        assert_eq!(listed.len(), 2, "{expires_at}: the old key and its successor are live, and no other");
    }
}
