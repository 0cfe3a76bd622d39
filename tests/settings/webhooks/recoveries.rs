//! Recoveries of a part of the failed deliveries, and their dry runs.

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::settings::webhooks::retry::path;
use crate::world::{Answer, Caller, Endpoint, Fact, fact};

const HOUR_S: u64 = 3_600;

/// The number of deliveries that a dry run counts.
async fn dry_run(settings: &Caller, endpoint: &Endpoint, body: &Value) -> Value {
    let mut body = body.clone();
    body["dry_run"] = json!(true);
    let counted = settings.post(&path(endpoint, "recover"), body).await.expect(200);
    assert_eq!(counted.members(), ["deliveries"]);
    counted.body["deliveries"].clone()
}

/// The number of failed deliveries.
async fn failed(settings: &Caller, endpoint: &Endpoint) -> usize {
    let page = settings.get(&path(endpoint, "deliveries?status=failed&limit=200")).await.expect(200).body;
    page["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_dry_run_counts_what_the_recovery_sends_and_sends_nothing() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    let events = json!({ "events": ["new_client", "message_received"] });
    settings.patch(&at, events).await.expect(200);
    let fail = async |facts: Vec<Fact>| {
        settings.patch(&at, json!({ "enabled": false })).await.expect(200);
        scene.world.apply(facts).await;
        settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    };
    let message = |id: &str| {
        let detail = json!({ "client_id": "c1", "message_id": id, "received_at": "2026-05-01T10:00:00Z" });
        fact("message.received", detail)
    };
    let mut times = vec![scene.world.timestamp_in(0).await];
    fail(vec![Fact::client("ada", "c1"), Fact::client("ada", "c2")]).await;
    scene.world.advance_s(HOUR_S).await;
    times.push(scene.world.timestamp_in(0).await);
    fail(vec![Fact::client("ada", "c3"), message("m1"), message("m2"), message("m3")]).await;
    scene.world.advance_s(HOUR_S).await;
    times.push(scene.world.timestamp_in(0).await);
    let nothing = scene.receiver.hooks().len();
    for (body, expected) in [
        (json!({ "since": times[0] }), 6),
        (json!({ "since": times[1] }), 4),
        (json!({ "since": times[0], "until": times[1] }), 2),
        (json!({ "since": times[0], "until": times[2], "types": ["message_received"] }), 3),
        (json!({ "since": times[0], "types": ["message_received", "new_client"] }), 6),
        (json!({ "since": times[0], "types": ["phase_advanced"] }), 0),
        (json!({ "since": times[1], "until": times[0] }), 0),
        (json!({ "since": times[0], "until": times[0] }), 0),
    ] {
        assert_eq!(dry_run(&settings, &endpoint, &body).await, json!(expected), "{body}");
    }
    scene.world.settle().await;
    assert_eq!((scene.receiver.hooks().len(), failed(&settings, &endpoint).await), (nothing, 6));
    // Each recovery sends what its dry run counted. The next counts the rest.
    for (body, expected) in [
        (json!({ "since": times[0], "until": times[1] }), 2),
        (json!({ "since": times[0], "types": ["message_received"] }), 3),
        (json!({ "since": times[0] }), 1),
        (json!({ "since": times[0] }), 0),
    ] {
        assert_eq!(dry_run(&settings, &endpoint, &body).await, json!(expected), "{body}");
        let recovered = settings.post(&path(&endpoint, "recover"), body).await.expect(202);
        assert_eq!(recovered.body, json!({ "deliveries": expected }));
        scene.world.settle().await;
    }
}

#[tokio::test]
async fn a_dry_run_leaves_out_what_the_pause_of_recoveries_leaves_out() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    let off_and_on = async || {
        settings.patch(&at, json!({ "enabled": false })).await.expect(200);
        settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    };
    scene.receiver.otherwise(Answer::status(500));
    scene.event("c1").await;
    settings.post(&path(&endpoint, "test"), json!({})).await.expect(202);
    scene.world.settle().await;
    off_and_on().await;
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    for expected in [1, 0] {
        assert_eq!(dry_run(&settings, &endpoint, &since).await, json!(expected));
        let recovered = settings.post(&path(&endpoint, "recover"), since.clone()).await.expect(202);
        assert_eq!(recovered.body["deliveries"], json!(expected));
        scene.world.settle().await;
        off_and_on().await;
    }
    scene.world.advance_s(HOUR_S).await;
    assert_eq!(dry_run(&settings, &endpoint, &since).await, json!(1));
}

#[tokio::test]
async fn a_dry_run_takes_no_recovery_lease_and_leaves_no_line_in_the_audit_trail() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    scene.event("c1").await;
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    let stored = async || scene.world.table("workspaces").await.len();
    let before = stored().await;
    assert_eq!(dry_run(&settings, &endpoint, &since).await, json!(1));
    assert_eq!(stored().await, before);
    // A recovery whose delivery has not been attempted is running.
    scene.receiver.otherwise(Answer::status(204).after(std::time::Duration::from_secs(2)));
    settings.post(&path(&endpoint, "recover"), since.clone()).await.expect(202);
    settings.post(&path(&endpoint, "recover"), since.clone()).await.refused(409, "recovery_running");
    assert_eq!(dry_run(&settings, &endpoint, &since).await, json!(0));
    scene.world.settle().await;
    for (field, value) in [
        ("since", Value::Null),
        ("until", json!("soon")),
        ("types", json!([])),
        ("types", json!(["client_created"])),
        ("dry_run", json!("yes")),
        ("limit", json!(1)),
    ] {
        let mut body = since.clone();
        body[field] = value;
        settings.post(&path(&endpoint, "recover"), body).await.refused_for(field);
    }
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    let body = json!({ "since": "2026-01-01T00:00:00Z", "dry_run": true });
    settings.post(&path(&endpoint, "recover"), body).await.refused(409, "endpoint_disabled");
}
