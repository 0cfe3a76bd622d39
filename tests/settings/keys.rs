//! `/settings/keys`: create, change, rotate and revoke keys.

mod changes;
mod events;
mod lists;
mod rings;

use std::future::IntoFuture;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::world::{CRM_PERMISSIONS, PARTNER_PERMISSIONS, Reply, World, list, members, time, until};

const VIEW: [&str; 13] = [
    "created_at",
    "display",
    "events",
    "expires_at",
    "id",
    "last_used_at",
    "name",
    "permissions",
    "replaced_by",
    "revoked_at",
    "scope",
    "status",
    "works_until",
];

#[tokio::test]
async fn a_key_is_shown_once() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let made = ada.new_key(json!({ "name": "EMR", "scope": "partner" })).await;
    let mut with_key = VIEW.to_vec();
    with_key.push("key");
    with_key.sort_unstable();
    assert_eq!(made.members(), with_key);
    let key = made.str("key");
    assert_eq!(made.str("display"), format!("svc_live_…{}", &key[key.len() - 4..]));
    let listed = ada.settings().await.get("/settings/keys").await.expect(200);
    assert_eq!(listed.members(), ["keys", "next_cursor"]);
    assert!(!listed.text.contains(key));
    let mut expected = made.body.clone();
    expected.as_object_mut().unwrap().remove("key");
    assert_eq!(listed.body["keys"], json!([expected]));
    assert_eq!(members(&listed.body["keys"][0]), VIEW);
    for (table, item) in world.tables().await {
        assert!(!item.to_string().contains(key), "{table}");
    }
}

#[tokio::test]
async fn a_second_revocation_changes_nothing() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let made = ada.new_key(json!({ "name": "EMR", "scope": "partner" })).await;
    let revoke = async || ada.settings().await.delete(&format!("/settings/keys/{}", made.str("id"))).await.expect(200);
    let revoked = revoke().await;
    assert_eq!(revoked.members(), VIEW);
    world.advance_s(60).await;
    assert_eq!(revoke().await.body, revoked.body);
}

#[tokio::test]
async fn a_key_that_expires_during_its_revocation_frees_one_place() {
    /// The next call is the transaction.
    const CALLS_BEFORE: usize = 2;
    let world = World::start_in_real_time().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let body = |number: usize| json!({ "name": format!("Key {number}"), "scope": "partner" });
    for number in 1..50 {
        ada.new_key(body(number)).await;
    }
    let ends = world.now().await + TimeDelta::seconds(3);
    let mut short = body(0);
    short["expires_at"] = json!(ends);
    let short = ada.new_key(short).await.str("id").to_owned();
    let full = settings.post("/settings/keys", body(100)).await;
    full.refused(409, "key_limit_reached");
    world.faults(json!({ "function": "settings", "spared_calls": CALLS_BEFORE, "stalled_calls": 1 })).await;
    let revoking = tokio::spawn(settings.delete(&format!("/settings/keys/{short}")).into_future());
    world.until_stalled().await;
    until("the key ends", async || world.now().await > ends).await;
    settings.post("/settings/keys", body(101)).await.expect(201);
    world.faults(json!({ "stalled_calls": 0, "spared_calls": 0, "function": "" })).await;
    revoking.await.unwrap().expect(200);
    settings.post("/settings/keys", body(102)).await.refused(409, "key_limit_reached");
}

#[tokio::test]
async fn a_crm_key_has_the_permissions_that_were_selected() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let permissions = json!(["bookings.read", "contacts.write"]);
    let made = ada.new_key(json!({ "name": "CRM", "scope": "crm", "permissions": permissions })).await;
    assert!(made.str("key").starts_with("crm_live_"));
    let mut shown: Vec<Value> = list(made.body["permissions"].clone());
    shown.sort_by_key(Value::to_string);
    assert_eq!(json!(shown), permissions);
}

#[tokio::test]
async fn a_partner_key_has_the_permissions_that_were_selected_or_all() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for none in [json!({}), json!({ "permissions": null })] {
        let mut body = json!({ "name": "P", "scope": "partner" });
        body.as_object_mut().unwrap().extend(none.as_object().unwrap().clone());
        assert_eq!(ada.new_key(body).await.body["permissions"], json!(PARTNER_PERMISSIONS));
    }
    let permissions = json!(["login_links.create", "clients.read", "clients.read"]);
    let made = ada.new_key(json!({ "name": "P", "scope": "partner", "permissions": permissions })).await;
    assert_eq!(made.body["permissions"], json!(["clients.read", "login_links.create"]));
    let rotated = ada.settings().await.post(&format!("/settings/keys/{}/rotate", made.str("id")), json!({})).await;
    assert_eq!(rotated.expect(201).body["permissions"], made.body["permissions"]);
    let shown: Vec<Value> = list(ada.settings().await.get("/settings/keys").await.body["keys"].clone());
    assert_eq!(shown.iter().filter(|key| key["permissions"] == json!(PARTNER_PERMISSIONS)).count(), 2);
}

#[tokio::test]
async fn a_key_takes_no_permission_of_the_other_scope() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    for (scope, own, others) in [
        ("partner", PARTNER_PERMISSIONS[0], CRM_PERMISSIONS.as_slice()),
        ("crm", CRM_PERMISSIONS[0], PARTNER_PERMISSIONS.as_slice()),
    ] {
        for other in others {
            for permissions in [json!([other]), json!([own, other])] {
                let body = json!({ "name": "x", "scope": scope, "permissions": permissions });
                let refused = settings.post("/settings/keys", body).await.refused_for("permissions");
                assert!(refused.text.contains(other), "{}", refused.text);
            }
        }
    }
    assert_eq!(settings.get("/settings/keys").await.expect(200).body["keys"], json!([]));
}

#[tokio::test]
async fn invalid_key_fields_are_refused_by_name() {
    let world = World::start().await;
    let settings = world.coach("ada").await.settings().await;
    let past = world.timestamp_in(-1).await;
    for (field, body) in [
        ("name", json!({ "name": "\u{200b}", "scope": "partner" })),
        ("permissions", json!({ "name": "x", "scope": "crm" })),
        ("permissions", json!({ "name": "x", "scope": "crm", "permissions": [] })),
        ("permissions", json!({ "name": "x", "scope": "partner", "permissions": [] })),
        ("permissions", json!({ "name": "x", "scope": "partner", "permissions": ["clients.delete"] })),
        ("expires_at", json!({ "name": "x", "scope": "partner", "expires_at": past })),
    ] {
        settings.post("/settings/keys", body).await.refused_for(field);
    }
    settings.post("/settings/keys", json!([])).await.refused(400, "invalid_json");
    settings.call("POST", "/settings/keys").body("{").await.refused(400, "invalid_json");
    let post = settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" }));
    post.clone().header("content-type", "text/plain").await.refused(415, "unsupported_media_type");
    post.body(vec![b' '; 256 * 1024 + 1]).await.refused(413, "body_too_large");
    assert_eq!(settings.get("/settings/keys").await.body["keys"], json!([]));
}

#[tokio::test]
async fn a_workspace_has_at_most_50_live_keys() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let make = || settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" }));
    let expires_at = world.timestamp_in(3600).await;
    settings
        .post("/settings/keys", json!({ "name": "short", "scope": "partner", "expires_at": expires_at }))
        .await
        .expect(201);
    let first = make().await.expect(201);
    for _ in 0..47 {
        make().await.expect(201);
    }
    let replies = futures::future::join_all((0..4).map(|_| std::future::IntoFuture::into_future(make()))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1, "at 49, of four at once one is made");
    make().await.refused(409, "key_limit_reached");
    settings.delete(&format!("/settings/keys/{}", first.str("id"))).await.expect(200);
    make().await.expect(201);
    make().await.refused(409, "key_limit_reached");
    world.advance_s(3601).await;
    make().await.expect(201);
    world.coach("bob").await.new_key(json!({ "name": "x", "scope": "partner" })).await;
}

#[tokio::test]
async fn a_revoked_key_that_had_expired_frees_no_second_place() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let make = || settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" }));
    let expires_at = world.timestamp_in(3600).await;
    let short = json!({ "name": "short", "scope": "partner", "expires_at": expires_at });
    let short = settings.post("/settings/keys", short).await.expect(201);
    for _ in 0..49 {
        make().await.expect(201);
    }
    world.advance_s(3601).await;
    make().await.expect(201);
    settings.delete(&format!("/settings/keys/{}", short.str("id"))).await.expect(200);
    make().await.refused(409, "key_limit_reached");
}

#[tokio::test]
async fn a_rotation_creates_a_key_like_the_old_one() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let old = ada.new_key(json!({ "name": "CRM", "scope": "crm", "permissions": ["contacts.read"] })).await;
    let settings = ada.settings().await;
    let path = format!("/settings/keys/{}/rotate", old.str("id"));
    let new = settings.post(&path, json!({})).await.expect(201);
    assert_ne!((new.str("id"), new.str("key")), (old.str("id"), old.str("key")));
    for same in ["name", "scope", "permissions"] {
        assert_eq!(new.body[same], old.body[same]);
    }
    let listed = list(settings.get("/settings/keys").await.body["keys"].clone());
    let old_now = listed.iter().find(|key| key["id"] == old.body["id"]).unwrap();
    let lives_on = time(&old_now["expires_at"]) - time(&new.body["created_at"]);
    assert_eq!(lives_on, chrono::TimeDelta::hours(24));
    settings.delete(&format!("/settings/keys/{}", new.str("id"))).await.expect(200);
    let of_revoked = format!("/settings/keys/{}/rotate", new.str("id"));
    settings.post(&of_revoked, json!({})).await.refused(409, "key_not_live");
    settings.post("/settings/keys/key_0/rotate", json!({})).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_key_is_replaced_once_whatever_its_lifetime() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    for expires_in_s in [None, Some(10 * 24 * 3600), Some(3600)] {
        let expires_at = match expires_in_s {
            Some(s) => json!(world.timestamp_in(s).await),
            None => Value::Null,
        };
        let old = ada.new_key(json!({ "name": "x", "scope": "partner", "expires_at": expires_at })).await;
        let rotate = || settings.post(&format!("/settings/keys/{}/rotate", old.str("id")), json!({}));
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
