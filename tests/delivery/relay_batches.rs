//! Outbox entries that reach the relay as a batch: enqueued together, and each independent of the others.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::delivery::operations;
use crate::webhooks::automations::{automation, check_in, on};
use crate::world::{Coach, Endpoint, Fact, Receiver, World, list};

/// Number of events of one check-in: more than a group of deliveries.
const EVENTS: usize = 30;
/// More calls than the relay makes for a check-in of few events.
const CALLS: usize = 12;
const HOUR_S: u64 = 3_600;

/// A coach whose client's check-ins emit events of many automations, all for one endpoint.
struct RelayScene {
    world: World,
    receiver: Receiver,
}

impl RelayScene {
    async fn new() -> Self {
        Self { world: World::start().await, receiver: Receiver::start().await }
    }

    async fn coach(&self, automations: usize) -> (Coach<'_>, Endpoint) {
        let ada = self.world.coach("ada").await;
        let body = json!({ "url": self.receiver.url(), "events": [], "payload_mode": "contact_details" });
        let made = ada.settings().await.post("/settings/webhooks", body).await.expect(201);
        let endpoint = Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() };
        self.world.apply([Fact::client("ada", "c1").with("backfill", true)]).await;
        let automations =
            (0..automations).map(|number| automation(&format!("a{number}"), on("check_in_submitted"), &[&endpoint]));
        self.world.apply(automations).await;
        (ada, endpoint)
    }

    async fn check_in(&self, id: &str) {
        let now = self.world.timestamp_in(0).await;
        self.world.apply([check_in(id, 2, json!({}), json!({})).with("submitted_at", now)]).await;
        self.world.settle().await;
    }

    /// Number of requests by event.
    fn received_counts(&self) -> BTreeMap<String, usize> {
        let mut received_counts = BTreeMap::new();
        for hook in self.receiver.hooks() {
            *received_counts.entry(hook.header("webhook-id").to_owned()).or_default() += 1;
        }
        received_counts
    }

    async fn unsent(&self) -> Vec<Value> {
        self.world.items("outbox", "").await
    }
}

#[tokio::test]
async fn thirty_events_for_one_endpoint_cost_few_requests_to_the_queue() {
    let scene = RelayScene::new().await;
    let (ada, endpoint) = scene.coach(EVENTS).await;
    let before = operations(&scene.world, "relay").await.len();
    scene.check_in("k1").await;
    scene.world.advance_s(60).await;
    assert_eq!(scene.received_counts().len(), EVENTS);
    assert!(scene.receiver.hooks().iter().all(|hook| hook.is_signed_with(&endpoint.secret)));
    assert!(ada.deliveries(&endpoint).await.iter().all(|delivery| delivery["status"] == "delivered"));
    let calls_made = operations(&scene.world, "relay").await;
    let count = |operation: &str| {
        calls_made[..calls_made.len() - before].iter().filter(|calls_made| *calls_made == operation).count()
    };
    assert_eq!(count("PutItem"), EVENTS, "{calls_made:?}");
    // The stream may split the events into two batches.
    assert!(count("SendMessageBatch") <= 5, "{calls_made:?}");
}

#[tokio::test]
async fn each_event_arrives_once_under_any_fault_of_the_relay() {
    let scene = RelayScene::new().await;
    let (ada, endpoint) = scene.coach(4).await;
    let mut check_ins = 0;
    for fault in ["store_conflicts", "store_failures", "store_lost_answers", "crash_before_call"] {
        for spared_calls in 0..CALLS {
            scene.world.faults(json!({ "function": "relay", "spared_calls": spared_calls, fault: 1 })).await;
            check_ins += 1;
            scene.check_in(&format!("k{check_ins}")).await;
            scene.world.advance_s(HOUR_S).await;
            let left = scene.world.remaining_faults().await;
            scene.world.faults(json!({ "function": "", "spared_calls": 0, fault: 0 })).await;
            assert_eq!(scene.received_counts().len(), 4 * check_ins, "{fault} after {spared_calls} calls");
            if left["spared_calls"] != 0 {
                break;
            }
        }
    }
    assert!(scene.received_counts().values().all(|times| *times == 1), "{:?}", scene.received_counts());
    for delivery in ada.deliveries(&endpoint).await {
        assert_eq!((&delivery["status"], list(delivery["attempts"].clone()).len()), (&json!("delivered"), 1));
    }
    assert!(scene.unsent().await.is_empty());
}

#[tokio::test]
async fn stored_events_of_a_batch_are_enqueued_although_others_conflict() {
    let scene = RelayScene::new().await;
    scene.coach(4).await;
    // Each request finds the first of its items in another transaction, and so do the retries of single writes, for a
    // while.
    scene.world.faults(json!({ "function": "relay", "store_conflicts": 6 })).await;
    scene.check_in("k1").await;
    assert_eq!(scene.received_counts().len(), 4);
    assert!(scene.received_counts().values().all(|times| *times == 1), "{:?}", scene.received_counts());
    assert!(scene.unsent().await.is_empty());
}

#[tokio::test]
async fn events_missed_by_a_disabled_endpoint_are_recorded_together_and_can_be_recovered() {
    let scene = RelayScene::new().await;
    let (ada, endpoint) = scene.coach(EVENTS).await;
    let (path, settings) = (format!("/settings/webhooks/{}", endpoint.id), ada.settings().await);
    settings.patch(&path, json!({ "enabled": false })).await.expect(200);
    let since = scene.world.timestamp_in(-60).await;
    scene.check_in("k1").await;
    assert!(scene.received_counts().is_empty());
    let missed = ada.deliveries(&endpoint).await;
    assert_eq!(missed.len(), EVENTS);
    for delivery in &missed {
        assert_eq!((&delivery["status"], &delivery["next_attempt_at"]), (&json!("failed"), &Value::Null));
        assert!(delivery["attempts"][0]["error"].as_str().unwrap().contains("endpoint disabled"), "{delivery}");
    }
    settings.patch(&path, json!({ "enabled": true })).await.expect(200);
    scene.world.settle().await;
    assert!(scene.received_counts().is_empty(), "missed events are not sent automatically");
    let recovered = settings.post(&format!("{path}/recover"), json!({ "since": since })).await.expect(202);
    assert_eq!(recovered.body["deliveries"], EVENTS);
    scene.world.advance_s(60).await;
    assert_eq!(scene.received_counts().len(), EVENTS);
    assert!(scene.received_counts().values().all(|times| *times == 1), "{:?}", scene.received_counts());
}
