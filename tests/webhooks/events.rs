//! Events about a client's life at the receivers: check-ins, grades, phases, messages.

use serde_json::{Value, json};

use crate::world::{Caller, Endpoint, Fact, Receiver, World, emitted_events, fact};

/// A coach whose endpoint subscribes to everything, and her client `c1`, whose event has arrived.
struct LifeEventScene {
    world: World,
    key: Caller,
    receiver: Receiver,
    endpoint: Endpoint,
}

impl LifeEventScene {
    async fn new(payload_mode: &str) -> Self {
        let world = World::start().await;
        let receiver = Receiver::start().await;
        let ada = world.coach("ada").await;
        let body = json!({ "url": receiver.url(), "events": emitted_events(), "payload_mode": payload_mode });
        let made = ada.settings().await.post("/settings/webhooks", body).await.expect(201);
        let endpoint = Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() };
        let key = ada.partner_key().await;
        world.apply([Fact::client("ada", "c1").with("backfill", true)]).await;
        assert!(receiver.hooks().is_empty());
        Self { world, key, receiver, endpoint }
    }

    /// Received bodies of an event.
    fn received(&self, event: &str) -> Vec<Value> {
        let hooks = self.receiver.hooks();
        assert!(hooks.iter().all(|hook| hook.verify(&self.endpoint.secret)));
        let of_type = hooks.iter().filter(|hook| hook.header("x-service-event") == event);
        of_type.map(|hook| hook.json()).collect()
    }
}

fn check_in(id: &str, day: u32, grades: Value) -> Fact {
    let submitted_at = format!("2026-05-{day:02}T07:00:00Z");
    let detail = json!({
        "client_id": "c1", "check_in_id": id, "submitted_at": submitted_at, "scores": {"energy": 1}, "grades": grades,
    });
    fact("check_in.submitted", detail)
}

fn advance(to_phase: &str, advanced_at: &str) -> Fact {
    let detail = json!({ "client_id": "c1", "from_phase": null, "to_phase": to_phase, "advanced_at": advanced_at });
    fact("phase.advanced", detail)
}

fn message(id: &str) -> Fact {
    fact("message.received", json!({ "client_id": "c1", "message_id": id, "received_at": "2026-05-01T10:00:00Z" }))
}

#[tokio::test]
async fn a_check_in_is_emitted_once_with_id_and_time_only() {
    let scene = LifeEventScene::new("identifiers").await;
    let submitted = check_in("k1", 1, json!({"gut": 3}));
    scene.world.apply([submitted.clone(), submitted.clone()]).await;
    scene.world.apply([submitted.with("occurred_at", scene.world.timestamp_in(9).await)]).await;
    let body = json!({
        "type": "check_in_submitted", "timestamp": "2026-05-01T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k1", "submitted_at": "2026-05-01T07:00:00.000Z"} },
    });
    assert_eq!(scene.received("check_in_submitted"), [body]);
    assert_eq!(scene.receiver.hooks().len(), 1);
}

#[tokio::test]
async fn contact_details_are_added_for_endpoints_that_include_them() {
    let scene = LifeEventScene::new("contact_details").await;
    scene.world.apply([message("m1")]).await;
    let body = json!({
        "type": "message_received", "timestamp": "2026-05-01T10:00:00.000Z",
        "data": {
            "client": {"id": "c1", "name": "Client c1", "email": "c1@clients.example", "phone": null, "external_id": null},
            "message": {"id": "m1", "received_at": "2026-05-01T10:00:00.000Z"},
        },
    });
    assert_eq!(scene.received("message_received"), [body]);
}

#[tokio::test]
async fn a_grade_drop_is_emitted_once_per_check_in_without_system_or_size() {
    let scene = LifeEventScene::new("identifiers").await;
    let world = &scene.world;
    world.apply([check_in("k1", 1, json!({"gut": 3, "sleep": 4}))]).await;
    world.apply([check_in("k2", 2, json!({"gut": 3, "sleep": 5}))]).await;
    assert!(scene.received("system_grade_drop").is_empty(), "nothing fell");
    world.apply([check_in("k3", 3, json!({"gut": 2.5, "sleep": 4}))]).await;
    let body = json!({
        "type": "system_grade_drop", "timestamp": "2026-05-03T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k3", "submitted_at": "2026-05-03T07:00:00.000Z"} },
    });
    assert_eq!(scene.received("system_grade_drop"), std::slice::from_ref(&body));
    world.apply([check_in("late", 1, json!({"gut": 1})), check_in("k3", 3, json!({"gut": 1}))]).await;
    assert_eq!(scene.received("system_grade_drop"), [body], "an older or repeated check-in is no drop");
    world.apply([check_in("k4", 4, json!({"gut": 0.5})).with("backfill", true)]).await;
    world.apply([check_in("k5", 5, json!({"gut": 0.4}))]).await;
    let dropped: Vec<Value> =
        scene.received("system_grade_drop").iter().map(|body| body["data"]["check_in"]["id"].clone()).collect();
    assert_eq!(dropped, ["k3", "k5"], "a backfill is stored for the next one, and emits nothing");
}

#[tokio::test]
async fn a_grade_drop_is_emitted_even_if_the_earlier_check_in_arrives_later() {
    let scene = LifeEventScene::new("identifiers").await;
    let world = &scene.world;
    world.apply([check_in("k2", 2, json!({"gut": 4, "sleep": 4}))]).await;
    world.apply([check_in("k1", 1, json!({"gut": 5, "sleep": 4}))]).await;
    let body = json!({
        "type": "system_grade_drop", "timestamp": "2026-05-02T07:00:00.000Z",
        "data": { "client": {"id": "c1"}, "check_in": {"id": "k2", "submitted_at": "2026-05-02T07:00:00.000Z"} },
    });
    assert_eq!(scene.received("system_grade_drop"), std::slice::from_ref(&body));
    world.apply([check_in("k0", 1, json!({"sleep": 9})).with("submitted_at", "2026-05-01T06:00:00.000Z")]).await;
    assert_eq!(scene.received("system_grade_drop"), [body], "a check-in between the two changes nothing");
    assert_eq!(scene.received("check_in_submitted").len(), 3);
}

#[tokio::test]
async fn a_phase_step_is_emitted_shown_and_dated_by_the_local_date() {
    let scene = LifeEventScene::new("identifiers").await;
    // 01:00 UTC is still the previous day in the coach's zone.
    let step = advance("Build", "2026-05-02T01:00:00Z");
    scene.world.apply([step.clone(), step]).await;
    let body = json!({
        "type": "phase_advanced", "timestamp": "2026-05-02T01:00:00.000Z",
        "data": {
            "client": {"id": "c1"}, "from_phase": null, "to_phase": "Build", "advanced_at": "2026-05-02T01:00:00.000Z",
        },
    });
    assert_eq!(scene.received("phase_advanced"), [body]);
    assert_eq!(scene.key.get("/v1/clients/c1").await.body["current_phase"], "Build");
    assert_eq!(scene.key.get("/v1/clients").await.body["clients"][0]["current_phase"], "Build");
    let stored = &scene.world.items("clients", "CLIENT#c1").await[0];
    assert_eq!(stored["phase_started_on"]["S"], "2026-05-01");
}

#[tokio::test]
async fn the_latest_phase_counts_and_each_step_is_emitted() {
    let scene = LifeEventScene::new("identifiers").await;
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
        scene.received("phase_advanced").iter().map(|body| body["data"]["to_phase"].clone()).collect();
    assert_eq!(received, ["Peak", "Build", "Never"], "a record emits nothing, each step does");
}

#[tokio::test]
async fn a_message_is_emitted_once() {
    let scene = LifeEventScene::new("identifiers").await;
    scene.world.apply([message("m1"), message("m1"), message("m2")]).await;
    scene.world.apply([message("m1"), message("m3").with("backfill", true)]).await;
    let mut received: Vec<Value> =
        scene.received("message_received").iter().map(|body| body["data"]["message"]["id"].clone()).collect();
    received.sort_by_key(Value::to_string);
    assert_eq!(received, ["m1", "m2"]);
}

#[tokio::test]
async fn events_after_a_hand_over_go_to_the_new_coach() {
    let scene = LifeEventScene::new("identifiers").await;
    scene.world.coach("bob").await;
    scene.world.apply([message("m1")]).await;
    scene.world.apply([Fact::client("bob", "c1")]).await;
    scene.world.apply([message("m2"), check_in("k1", 1, json!({})), advance("Build", "2026-05-02T01:00:00Z")]).await;
    assert_eq!(scene.receiver.hooks().len(), 1);
}
