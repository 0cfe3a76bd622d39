//! `endpoint`, `key`, `delivery retry` and `rebuild counts`.

use serde_json::json;

use super::{killed_after, operate, trail};
use crate::world::{Answer, Fact, Receiver, World};

#[tokio::test]
async fn an_endpoint_is_disabled_and_enabled_as_its_coach_would() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    receiver.script([Answer::status(503)]);
    world.apply([Fact::client("ada", "c1")]).await;
    let disable = ["endpoint", "disable", &endpoint.id, "--reason", "it floods a host", "--yes"];
    let answer = json!({ "done": "endpoint.updated", "target": endpoint.id, "coach_id": "ada", "changed": true });
    assert_eq!(operate(&world, &disable).await.expect(), answer);
    let settings = ada.settings().await;
    let shown = settings.get(&format!("/settings/webhooks/{}", endpoint.id)).await.expect(200).body;
    assert_eq!(json!([shown["status"], shown["disabled_reason_code"]]), json!(["disabled", "by_hand"]));
    assert_eq!(ada.deliveries(&endpoint).await[0]["status"], "failed", "what waits ends");
    assert_eq!(operate(&world, &disable).await.expect()["changed"], false);

    let enable = ["endpoint", "enable", &endpoint.id, "--coach", "ada", "--reason", "mended", "--yes"];
    assert_eq!(operate(&world, &enable).await.expect()["changed"], true);
    assert_eq!(operate(&world, &enable).await.expect()["changed"], false);
    world.apply([Fact::client("ada", "c2")]).await;
    assert_eq!(receiver.hooks().len(), 2);
    let line = |reason| json!(["endpoint.updated", endpoint.id, "operator:local", reason]);
    assert_eq!(trail(&world, "ada").await, [line("it floods a host"), line("mended")]);
}

#[tokio::test]
async fn an_endpoint_that_is_gone_stays_gone() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    receiver.script([Answer::status(410)]);
    world.apply([Fact::client("ada", "c1")]).await;
    for command in ["enable", "disable"] {
        let arguments = ["endpoint", command, &endpoint.id, "--coach", "ada", "--reason", "r", "--yes"];
        assert!(operate(&world, &arguments).await.refused(1, "refused").contains("gone"));
    }
    assert!(trail(&world, "ada").await.is_empty());
}

#[tokio::test]
async fn a_revoked_key_is_refused_from_the_next_request_on() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let created = json!({ "name": "sync", "scope": "partner", "permissions": ["clients.read"] });
    let created = ada.settings().await.post("/settings/keys", created).await.expect(201);
    let partner = world.anonymous().with_bearer(created.str("key"));
    partner.get("/v1/clients").await.expect(200);
    let id = created.str("id");
    let revoke = ["key", "revoke", id, "--reason", "it was in a public repository", "--yes"];
    let answer = json!({ "done": "key.revoked", "target": id, "coach_id": "ada", "changed": true });
    let revoked = operate(&world, &revoke).await;
    assert!(!revoked.stderr.contains(created.str("key")), "{}", revoked.stderr);
    assert_eq!(revoked.expect(), answer);
    assert_eq!(partner.get("/v1/clients").await.status, 401);
    assert_eq!(operate(&world, &revoke).await.expect()["changed"], false);
    let line = json!(["key.revoked", id, "operator:local", "it was in a public repository"]);
    assert_eq!(trail(&world, "ada").await, [line]);
}

#[tokio::test]
async fn a_retry_is_a_fresh_chain_under_the_same_webhook_id() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    receiver.script([Answer::status(503)]);
    world.apply([Fact::client("ada", "c1")]).await;
    let delivery = ada.deliveries(&endpoint).await.remove(0);
    let retry = ["delivery", "retry", delivery["id"].as_str().unwrap(), "--reason", "asked", "--yes"];
    assert!(operate(&world, &retry).await.refused(1, "refused").contains("pending"));
    world.advance_s(10).await;
    let answer = json!({ "done": "delivery.retried", "target": delivery["id"], "coach_id": "ada", "changed": true });
    assert_eq!(operate(&world, &retry).await.expect(), answer);
    world.settle().await;
    let hooks = receiver.hooks();
    assert_eq!(hooks.len(), 3);
    assert!(hooks.iter().all(|hook| hook.headers["webhook-id"] == hooks[0].headers["webhook-id"]));
    let off = ["endpoint", "disable", &endpoint.id, "--coach", "ada", "--reason", "off", "--yes"];
    operate(&world, &off).await.expect();
    assert!(operate(&world, &retry).await.refused(1, "refused").contains("off"));
    let mut actions: Vec<_> = trail(&world, "ada").await.iter().map(|line| line[0].to_string()).collect();
    actions.sort_unstable();
    assert_eq!(actions, [r#""delivery.retried""#, r#""endpoint.updated""#]);
}

#[tokio::test]
async fn counts_that_do_not_fit_are_found_and_set() {
    let world = World::start().await;
    world.coach("ada").await;
    world.apply([Fact::client("ada", "c1"), Fact::client("ada", "c2").with("is_active", false)]).await;
    let counts = |clients: u32, active: u32| json!({ "clients": clients, "active": active });
    let fits = operate(&world, &["rebuild", "counts", "ada"]).await.expect();
    let expected = json!({ "coach_id": "ada", "stored": counts(2, 1), "counted": counts(2, 1), "differs": false, "changed": false });
    assert_eq!(fits, expected);
    let apply = ["rebuild", "counts", "ada", "--apply", "--reason", "they drifted", "--yes"];
    assert_eq!(operate(&world, &apply).await.expect()["changed"], false);

    let mut workspace = world.items("workspaces", "COACH#ada").await;
    workspace.retain(|item| item["sk"]["S"] == "WORKSPACE");
    let mut drifted = workspace.remove(0);
    drifted["client_count"]["N"] = "7".into();
    world.put_item("workspaces", &drifted).await;
    let differs = operate(&world, &["rebuild", "counts", "ada"]).await.expect();
    assert_eq!(json!([differs["stored"], differs["differs"]]), json!([counts(7, 1), true]));
    let answer = json!({ "done": "counts.rebuilt", "target": "ada", "coach_id": "ada", "changed": true });
    assert_eq!(operate(&world, &apply).await.expect(), answer);
    assert_eq!(operate(&world, &["coach", "ada"]).await.expect()["clients"], json!({ "stored": 2, "active": 1 }));
    assert_eq!(trail(&world, "ada").await, [json!(["counts.rebuilt", "ada", "operator:local", "they drifted"])]);
}

/// A kill before any call of an act leaves the whole act or nothing of it.
#[tokio::test]
async fn an_act_that_is_killed_is_done_with_its_line_or_not_at_all() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    for calls in 0.. {
        let created = json!({ "name": "sync", "scope": "partner", "permissions": ["clients.read"] });
        let created = settings.post("/settings/keys", created).await.expect(201);
        let before = trail(&world, "ada").await.len();
        let revoke = ["key", "revoke", created.str("id"), "--reason", "leaked", "--yes"];
        let ran = killed_after(&world, calls, &revoke).await;
        let status = world.anonymous().with_bearer(created.str("key")).get("/v1/clients").await.status;
        let lines = trail(&world, "ada").await.len() - before;
        assert_eq!(lines, usize::from(status == 401), "after {calls} calls");
        if ran.is_some() {
            assert_eq!(status, 401);
            break;
        }
    }
}
