//! Events about a client's life at the receivers: check-ins, grades, phases, messages.

use serde_json::{Value, json};

use crate::webhooks::automations::{AutomationScene, check_in, message};
use crate::world::{Fact, fact};

fn graded(id: &str, day: u32, grades: Value) -> Fact {
    check_in(id, day, json!({ "energy": 1 }), grades)
}

fn advance(to_phase: &str, advanced_at: &str) -> Fact {
    let detail = json!({ "client_id": "c1", "from_phase": null, "to_phase": to_phase, "advanced_at": advanced_at });
    fact("phase.advanced", detail)
}

#[tokio::test]
async fn a_check_in_is_emitted_once_with_id_and_time_only() {
    let scene = AutomationScene::new("identifiers").await;
    let submitted = graded("k1", 1, json!({"gut": 3}));
    scene.world.apply([submitted.clone(), submitted.clone()]).await;
    scene.world.apply([submitted.with("occurred_at", scene.world.timestamp_in(9).await)]).await;
    let body = json!({
        "type": "check_in_submitted", "timestamp": "2026-05-01T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k1", "submitted_at": "2026-05-01T07:00:00.000Z"} },
    });
    assert_eq!(scene.sent_to_subscribed("check_in_submitted"), [body]);
    assert_eq!(scene.subscribed.hooks().len(), 1);
}

#[tokio::test]
async fn a_grade_drop_is_emitted_once_per_check_in_without_system_or_size() {
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    world.apply([graded("k1", 1, json!({"gut": 3, "sleep": 4}))]).await;
    world.apply([graded("k2", 2, json!({"gut": 3, "sleep": 5}))]).await;
    assert!(scene.sent_to_subscribed("system_grade_drop").is_empty(), "nothing fell");
    world.apply([graded("k3", 3, json!({"gut": 2.5, "sleep": 4}))]).await;
    let body = json!({
        "type": "system_grade_drop", "timestamp": "2026-05-03T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k3", "submitted_at": "2026-05-03T07:00:00.000Z"} },
    });
    assert_eq!(scene.sent_to_subscribed("system_grade_drop"), std::slice::from_ref(&body));
    world.apply([graded("late", 1, json!({"gut": 1})), graded("k3", 3, json!({"gut": 1}))]).await;
    assert_eq!(scene.sent_to_subscribed("system_grade_drop"), [body], "an older or repeated check-in is no drop");
    world.apply([graded("k4", 4, json!({"gut": 0.5})).with("backfill", true)]).await;
    world.apply([graded("k5", 5, json!({"gut": 0.4}))]).await;
    let drops = scene.sent_to_subscribed("system_grade_drop");
    let dropped: Vec<&Value> = drops.iter().map(|body| &body["data"]["check_in"]["id"]).collect();
    assert_eq!(dropped, ["k3", "k5"], "a backfill is stored for the next one, and emits nothing");
}

#[tokio::test]
async fn a_grade_drop_is_emitted_even_if_the_earlier_check_in_arrives_later() {
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    world.apply([graded("k2", 2, json!({"gut": 4, "sleep": 4}))]).await;
    world.apply([graded("k1", 1, json!({"gut": 5, "sleep": 4}))]).await;
    let body = json!({
        "type": "system_grade_drop", "timestamp": "2026-05-02T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k2", "submitted_at": "2026-05-02T07:00:00.000Z"} },
    });
    assert_eq!(scene.sent_to_subscribed("system_grade_drop"), std::slice::from_ref(&body));
    world.apply([graded("k0", 1, json!({"sleep": 9})).with("submitted_at", "2026-05-01T06:00:00.000Z")]).await;
    assert_eq!(scene.sent_to_subscribed("system_grade_drop"), [body], "a check-in between the two changes nothing");
    assert_eq!(scene.sent_to_subscribed("check_in_submitted").len(), 3);
}

#[tokio::test]
async fn a_phase_step_is_emitted_shown_and_dated_by_the_local_date() {
    let scene = AutomationScene::new("identifiers").await;
    // 01:00 UTC is still the previous day in the coach's zone.
    let step = advance("Build", "2026-05-02T01:00:00Z");
    scene.world.apply([step.clone(), step]).await;
    let body = json!({
        "type": "phase_advanced", "timestamp": "2026-05-02T01:00:00.000Z",
        "data": {
            "client": {"id": "c1"}, "from_phase": null, "to_phase": "Build", "advanced_at": "2026-05-02T01:00:00.000Z",
        },
    });
    assert_eq!(scene.sent_to_subscribed("phase_advanced"), [body]);
    assert_eq!(scene.key.get("/v1/clients/c1").await.body["current_phase"], "Build");
    assert_eq!(scene.key.get("/v1/clients").await.body["clients"][0]["current_phase"], "Build");
    let stored = &scene.world.items("clients", "CLIENT#c1").await[0];
    assert_eq!(stored["phase_started_on"]["S"], "2026-05-01");
}

#[tokio::test]
async fn the_latest_phase_counts_and_each_step_is_emitted() {
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    let phase = async || scene.key.get("/v1/clients/c1").await.expect(200).body["current_phase"].clone();
    let at = async |fact: Fact, seconds| fact.with("occurred_at", world.timestamp_in(seconds).await);
    world.apply([at(advance("Peak", "2026-05-03T00:00:00Z"), 30).await]).await;
    world.apply([at(advance("Build", "2026-05-02T00:00:00Z"), 20).await]).await;
    assert_eq!(phase().await, "Peak");
    // The whole record, dated before the step, changes everything but the phase.
    let renamed = Fact::client("ada", "c1").with("full_name", "Renamed").with("current_phase", "Base");
    world.apply([at(renamed.clone(), 25).await]).await;
    assert_eq!(phase().await, "Peak");
    assert_eq!(scene.key.get("/v1/clients/c1").await.body["full_name"], "Renamed");
    world.apply([at(renamed, 40).await]).await;
    assert_eq!(phase().await, "Base", "a changed phase in the record counts");
    world.apply([at(advance("Never", "2026-05-01T00:00:00Z"), 35).await]).await;
    assert_eq!(phase().await, "Base");
    let received: Vec<Value> =
        scene.sent_to_subscribed("phase_advanced").iter().map(|body| body["data"]["to_phase"].clone()).collect();
    assert_eq!(received, ["Peak", "Build", "Never"], "a record emits nothing, each step does");
}

#[tokio::test]
async fn a_message_is_emitted_once() {
    let scene = AutomationScene::new("identifiers").await;
    scene.world.apply([message("m1"), message("m1"), message("m2")]).await;
    scene.world.apply([message("m1"), message("m3").with("backfill", true)]).await;
    let mut received: Vec<Value> =
        scene.sent_to_subscribed("message_received").iter().map(|body| body["data"]["message"]["id"].clone()).collect();
    received.sort_by_key(Value::to_string);
    assert_eq!(received, ["m1", "m2"]);
}
