//! Answers with a key or secret: replayed whole for ten minutes, then without it. Also recorded answers at rest.

use serde_json::{Value, json};

use crate::idempotency::rows::{Prepared, ROWS, Scene, assert_replay_of};
use crate::world::{Reply, World, list};

const MINUTE_S: u64 = 60;

/// The member that an answer shows once.
fn secret_member(reply: &Reply) -> Option<&'static str> {
    ["key", "secret"].into_iter().find(|name| reply.body[name].is_string())
}

/// Sends a request to each route whose answer shows a secret.
async fn secrets_shown(scene: &Scene) -> Vec<(Prepared, Reply)> {
    let mut shown = Vec::new();
    for row in ROWS {
        let prepared = scene.prepare(row).await;
        let first = prepared.send().await;
        if secret_member(&first).is_some() {
            shown.push((prepared, first));
        }
    }
    assert_eq!(shown.len(), 4);
    shown
}

/// Asserts that `late` is the answer `first` without its secret.
#[track_caller]
fn assert_redacted(late: &Reply, first: &Reply) {
    let mut expected = first.body.clone();
    expected.as_object_mut().unwrap().remove(secret_member(first).unwrap());
    assert_eq!((late.status, &late.body, late.is_replay()), (first.status, &expected, true));
}

/// Asserts that `late` repeats the answer `first`, apart from its secret.
#[track_caller]
pub(super) fn assert_replay_without_secret(late: &Reply, first: &Reply) {
    match secret_member(first) {
        Some(_) => assert_redacted(late, first),
        None => assert_replay_of(late, first),
    }
}

async fn secret_items(world: &World) -> Vec<Value> {
    world.items("idempotency", "SECRET#").await
}

#[tokio::test]
async fn a_secret_is_replayed_for_ten_minutes_and_then_leaves_the_store() {
    let scene = Scene::start().await;
    for row in ROWS {
        let prepared = scene.prepare(row).await;
        let first = prepared.send().await;
        let Some(member) = secret_member(&first) else { continue };
        scene.world.advance_s(10 * MINUTE_S - 30).await;
        assert_replay_of(&prepared.send().await, &first);
        assert!(!secret_items(&scene.world).await.is_empty());
        scene.world.advance_s(32).await;
        assert_eq!(secret_items(&scene.world).await, [] as [Value; 0], "{}", row.route);
        for _ in 0..2 {
            let late = prepared.send().await;
            assert_eq!(late.body.get(member), None);
            assert_redacted(&late, &first);
        }
        scene.world.advance_s(23 * 3600).await;
        assert_redacted(&prepared.send().await, &first);
    }
}

#[tokio::test]
async fn an_expired_secret_that_is_still_stored_is_not_shown_and_is_deleted() {
    let scene = Scene::start().await;
    let shown = secrets_shown(&scene).await;
    let kept = secret_items(&scene.world).await;
    assert!(!kept.is_empty());
    scene.world.advance_s(10 * MINUTE_S + 1).await;
    for (prepared, first) in &shown {
        scene.world.put_items("idempotency", &kept).await;
        assert_redacted(&prepared.send().await, first);
        let calls = list(scene.world.calls("settings").await[0]["calls"].clone());
        assert!(calls.iter().any(|call| call["operation"] == "DeleteItem"), "{calls:?}");
    }
    // The sealed part states its end itself, whatever the attributes beside it say.
    let later = (scene.world.now().await.timestamp() + 3_600).to_string();
    let mut claims = scene.world.items("idempotency", "CLAIM#").await;
    claims.retain(|claim| claim["secret_until"].is_object());
    for claim in &mut claims {
        claim["secret_until"] = json!({ "N": format!("{later}000") });
    }
    let mut kept = kept;
    for item in &mut kept {
        item["expires_at"] = json!({ "N": later });
    }
    scene.world.put_items("idempotency", &[claims, kept].concat()).await;
    for (prepared, first) in &shown {
        assert_redacted(&prepared.send().await, first);
    }
}

#[tokio::test]
async fn a_late_replay_leaves_the_key_and_endpoint_usable() {
    let scene = Scene::start().await;
    let live = async || list(scene.settings.get("/settings/keys?status=live").await.expect(200).body["keys"].clone());
    let before = live().await.len();
    let ((keys, key), (endpoints, endpoint)) = (scene.new_key().await, scene.new_endpoint().await);
    let key = || scene.settings.post(&keys, key.clone()).idempotent("key");
    let endpoint = || scene.settings.post(&endpoints, endpoint.clone()).idempotent("endpoint");
    let (first_key, first_endpoint) = (key().await.expect(201), endpoint().await.expect(201));
    scene.world.advance_s(11 * MINUTE_S).await;
    let (late_key, late_endpoint) = (key().await.expect(201), endpoint().await.expect(201));
    // The ids suffice to replace what was not seen.
    let rotate = format!("/settings/keys/{}/rotate", late_key.str("id"));
    let rotated = scene.settings.call("POST", &rotate).idempotent("new key").await.expect(201);
    scene.world.anonymous().with_bearer(rotated.str("key")).get("/v1/ping").await.expect(200);
    scene.world.anonymous().with_bearer(first_key.str("key")).get("/v1/ping").await.expect(200);
    let rotate = format!("/settings/webhooks/{}/rotate-secret", late_endpoint.str("id"));
    let rotated = scene.settings.call("POST", &rotate).idempotent("new secret").await.expect(200);
    assert_ne!(rotated.str("secret"), first_endpoint.str("secret"));
    assert_eq!(live().await.len(), before + 2);
}

#[tokio::test]
async fn recorded_answers_and_idempotency_keys_are_unreadable_at_rest() {
    let scene = Scene::start().await;
    let shown = secrets_shown(&scene).await;
    let made = scene.settings.post("/settings/keys", json!({ "name": "Zaphods desk", "scope": "partner" }));
    let made = made.idempotent("an-idempotency-key-of-ada").await.expect(201);
    let nameless = scene.settings.post("/settings/keys", json!({ "name": "" }));
    nameless.idempotent("another-idempotency-key").await.expect(400);
    let contact = json!({ "name": "Zaphod Beeblebrox", "email": "zaphod@example.com" });
    scene.crm.post("/v1/crm/contacts", contact).idempotent("one-two-three").await.expect(201);
    scene.world.settle().await;
    let at_rest = scene.world.at_rest().await;
    let secret = |reply: &Reply| reply.str(secret_member(reply).unwrap()).trim_start_matches("whsec_").to_owned();
    let secrets: Vec<String> = shown.iter().map(|(_, reply)| secret(reply)).chain([secret(&made)]).collect();
    at_rest.assert_absent(secrets.iter().map(String::as_str));
    let keys = ["an-idempotency-key-of-ada", "another-idempotency-key", "action-of-a-coach", "one-two-three"];
    at_rest.assert_absent(keys);
    at_rest.assert_only_in(["Zaphod Beeblebrox", "zaphod@example.com"], &["table crm"]);
    // The name of a key is in its record and in the audit trail, and sealed in the recorded answer.
    at_rest.assert_only_in(["Zaphods desk"], &["table keys", "table workspaces"]);
}
