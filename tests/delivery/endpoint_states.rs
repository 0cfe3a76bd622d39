//! Endpoint states: gone for good, switched off, deleted, failing for days.

mod failing;

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Answer, Caller, Coach, Endpoint, Fact, Receiver, World, list};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;

/// A coach with an endpoint for new clients with their contact details.
pub(crate) struct EndpointScene {
    pub(crate) world: World,
    pub(crate) receiver: Receiver,
}

impl EndpointScene {
    pub(crate) async fn new() -> Self {
        Self { world: World::start().await, receiver: Receiver::start().await }
    }

    /// A scene for attempts in flight while other work goes on.
    pub(crate) async fn in_real_time() -> Self {
        Self { world: World::start_in_real_time().await, receiver: Receiver::start().await }
    }

    pub(crate) async fn coach(&self) -> (Coach<'_>, Endpoint, Caller) {
        let ada = self.world.coach("ada").await;
        let endpoint = ada.endpoint(&self.receiver.url(), "contact_details").await;
        let settings = ada.settings().await;
        (ada, endpoint, settings)
    }

    /// Emits an event by creating a client.
    pub(crate) async fn event(&self, client: &str) {
        self.world.apply([Fact::client("ada", client)]).await;
    }

    /// The endpoint's stored start of its failures.
    pub(crate) async fn failing_since(&self) -> Value {
        let mut items = self.world.items("workspaces", "COACH#ada").await;
        items.retain(|item| item["sk"]["S"].as_str().unwrap().starts_with("ENDPOINT#"));
        items[0]["health"]["M"]["failing_since"]["S"].clone()
    }
}

async fn state(settings: &Caller, endpoint: &Endpoint) -> Value {
    settings.get(&format!("/settings/webhooks/{}", endpoint.id)).await.expect(200).body
}

#[tokio::test]
async fn a_receiver_that_answers_410_gets_no_further_request() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.receiver.script([Answer::status(500), Answer::status(410)]);
    scene.event("waits").await;
    scene.event("gone").await;
    let seen = scene.receiver.hooks().len();
    let gone = state(&settings, &endpoint).await;
    assert_eq!((gone["status"].as_str(), gone["disabled_at"].is_string()), (Some("gone"), true));
    assert!(gone["disabled_reason"].as_str().unwrap().contains("410"));
    for delivery in ada.deliveries(&endpoint).await {
        assert_eq!(delivery["status"], "failed", "waiting deliveries end at once");
        assert!(delivery["next_attempt_at"].is_null());
    }
    scene.event("later").await;
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), seen);
    let path = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&path, json!({ "enabled": true })).await.refused(409, "endpoint_gone");
    for what in ["test", "recover"] {
        let call = settings.post(&format!("{path}/{what}"), json!({ "since": "2026-01-01T00:00:00Z" }));
        let call = if what == "test" { settings.post(&format!("{path}/{what}"), json!({})) } else { call };
        call.await.refused(409, "endpoint_gone");
    }
    let emitted = scene.world.changes("endpoint.disabled").await;
    assert_eq!(emitted.len(), 1);
    assert_eq!((&emitted[0]["coach_id"], &emitted[0]["endpoint"]["status"]), (&json!("ada"), &json!("gone")));
    assert!(!emitted[0].to_string().contains("/hook"), "only the host of the URL");
    assert_eq!(emitted[0]["endpoint"]["host"], "127.0.0.1");
}

#[tokio::test]
async fn a_410_from_an_endpoints_former_url_ends_nothing() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.receiver.script([Answer::status(410).after(Duration::from_secs(5))]);
    scene.world.publish([Fact::client("ada", "c1")]).await;
    while scene.receiver.hooks().is_empty() {
        scene.world.now().await;
    }
    let moved = json!({ "url": format!("{}/moved", scene.receiver.url()) });
    settings.patch(&format!("/settings/webhooks/{}", endpoint.id), moved).await.expect(200);
    scene.world.settle().await;
    assert_eq!(state(&settings, &endpoint).await["status"], "enabled");
    assert_eq!(ada.deliveries(&endpoint).await[0]["attempts"][0]["status_code"], 410);
    scene.world.advance_s(60).await;
    let delivered = &ada.deliveries(&endpoint).await[0];
    assert_eq!((&delivered["status"], delivered["attempts"].as_array().unwrap().len()), (&json!("delivered"), 2));
    let paths: Vec<String> = scene.receiver.hooks().into_iter().map(|hook| hook.path).collect();
    assert_eq!(paths, ["/hook", "/hook/moved"]);
    assert!(scene.receiver.hooks()[1].is_signed_with(&endpoint.secret));
    assert!(scene.world.changes("endpoint.disabled").await.is_empty() && scene.world.mail().await.is_empty());
}

#[tokio::test]
async fn an_endpoint_is_switched_off_or_deleted_although_waiting_deliveries_cannot_be_ended_now() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    scene.receiver.otherwise(Answer::status(500));
    scene.event("c1").await;
    let fail = async |spared: usize, failures: u32| {
        scene.world.faults(json!({ "function": "settings", "spared_calls": spared, "store_failures": failures })).await;
    };
    // The change itself makes this many calls, and so does the deletion.
    settings.patch(&path, json!({ "description": "Calls are counted" })).await.expect(200);
    let change = scene.world.calls("settings").await[0]["calls"].as_array().unwrap().len();
    fail(change, 20).await;
    let off = settings.patch(&path, json!({ "enabled": false })).await.expect(200);
    assert_eq!(off.body["status"], "disabled");
    fail(0, 0).await;
    assert_eq!(state(&settings, &endpoint).await["status"], "disabled");
    fail(change, 20).await;
    settings.delete(&path).await.expect(200);
    fail(0, 0).await;
    settings.get(&path).await.refused(404, "not_found");
    // A delivery that was left waiting ends when it is due.
    let seen = scene.receiver.hooks().len();
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), seen);
}

/// The call that queries the waiting deliveries stalls.
#[tokio::test]
async fn switching_off_ends_no_delivery_from_after_switching_on_again() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    scene.receiver.otherwise(Answer::status(500));
    scene.event("waits").await;
    scene.event("retried").await;
    // Neither is retried by itself for an hour.
    scene.world.advance_s(HOUR_S).await;
    let retried = ada.deliveries(&endpoint).await[0]["id"].as_str().unwrap().to_owned();
    // The change itself makes this many calls.
    settings.patch(&path, json!({ "description": "Calls are counted" })).await.expect(200);
    let change = scene.world.calls("settings").await[0]["calls"].as_array().unwrap().len();
    scene.world.faults(json!({ "function": "settings", "spared_calls": change, "stalled_calls": 1 })).await;
    let off = tokio::spawn(settings.patch(&path, json!({ "enabled": false })).into_future());
    scene.world.until_stalled().await;
    settings.patch(&path, json!({ "enabled": true })).await.expect(200);
    settings.post(&format!("{path}/deliveries/{retried}/retry"), json!({})).await.expect(202);
    scene.event("new").await;
    scene.world.faults(json!({ "stalled_calls": 0, "function": "" })).await;
    off.await.unwrap().expect(200);
    let deliveries = ada.deliveries(&endpoint).await;
    let statuses: Vec<&str> = deliveries.iter().map(|delivery| delivery["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["pending", "pending", "failed"], "newest first: new, retried, waiting");
}

#[tokio::test]
async fn switching_off_and_deleting_end_waiting_deliveries_with_that_reason() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.receiver.otherwise(Answer::status(500));
    scene.event("c1").await;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&path, json!({ "enabled": false })).await.expect(200);
    let ended = &ada.deliveries(&endpoint).await[0];
    assert_eq!((&ended["status"], &ended["next_attempt_at"]), (&json!("failed"), &Value::Null));
    let lines = list(ended["attempts"].clone());
    assert_eq!(lines.last().unwrap()["error"], "not sent: endpoint disabled");
    settings.patch(&path, json!({ "enabled": true })).await.expect(200);
    let seen = scene.receiver.hooks().len();
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), seen, "ended is ended");
    scene.event("c2").await;
    let seen = scene.receiver.hooks().len();
    settings.delete(&path).await.expect(200);
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), seen);
    assert!(scene.world.take_messages("deliveries-dlq.fifo").await.is_empty());
}

#[tokio::test]
async fn a_rejected_mail_is_sent_later_and_duplicates_no_other() {
    let scene = EndpointScene::new().await;
    let ada = scene.world.coach("ada").await;
    for number in 0..3 {
        ada.endpoint(&format!("{}/{number}", scene.receiver.url()), "identifiers").await;
    }
    scene.receiver.otherwise(Answer::status(410));
    scene.world.faults(json!({ "mail_failures": 1 })).await;
    scene.event("c1").await;
    scene.world.advance_s(HOUR_S).await;
    assert_eq!(scene.world.changes("endpoint.disabled").await.len(), 3);
    assert_eq!(scene.world.mail().await.len(), 3);
}
