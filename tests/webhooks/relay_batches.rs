//! Events that come to the relay together: ordered together, and each on its own terms.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::webhooks::automations::{automation, check_in, on};
use crate::world::{Bill, Coach, Endpoint, Fact, Receiver, World, list};

/// Events of one check-in: more than a group of deliveries.
const EVENTS: usize = 30;
/// More than what the relay needs for a check-in of few events.
const CALLS: usize = 12;
const HOUR_S: u64 = 3_600;

/// A coach whose client's check-ins are events of many automations, all for one endpoint.
struct Place {
    world: World,
    receiver: Receiver,
}

impl Place {
    async fn new() -> Self {
        Self { world: World::start().await, receiver: Receiver::start().await }
    }

    async fn coach(&self, automations: usize) -> (Coach<'_>, Endpoint) {
        let ada = self.world.coach("ada").await;
        let body = json!({ "url": self.receiver.url(), "events": [], "payload_mode": "contact_details" });
        let made = ada.settings().await.post("/settings/webhooks", body).await.expect(201);
        let endpoint = Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() };
        self.world.facts([Fact::client("ada", "c1").with("backfill", true)]).await;
        let automations =
            (0..automations).map(|number| automation(&format!("a{number}"), on("check_in_submitted"), &[&endpoint]));
        self.world.facts(automations).await;
        (ada, endpoint)
    }

    async fn check_in(&self, id: &str) {
        self.world.facts([check_in(id, 2, json!({}), json!({}))]).await;
        self.world.settle().await;
    }

    /// How often each event was heard of.
    fn heard(&self) -> BTreeMap<String, usize> {
        let mut heard = BTreeMap::new();
        for hook in self.receiver.hooks() {
            *heard.entry(hook.header("webhook-id").to_owned()).or_default() += 1;
        }
        heard
    }

    /// What the relay has asked for so far.
    async fn asked(&self) -> Vec<String> {
        let calls = self.world.calls("relay").await.into_iter().flat_map(|call| list(call["calls"].clone()));
        calls.map(|call| call["operation"].as_str().unwrap().to_owned()).collect()
    }

    async fn unsent(&self) -> Vec<Value> {
        self.world.items("outbox", "").await
    }
}

#[tokio::test]
async fn thirty_events_for_one_endpoint_cost_few_requests_to_the_queue() {
    let place = Place::new().await;
    let (ada, endpoint) = place.coach(EVENTS).await;
    let before = place.asked().await.len();
    place.check_in("k1").await;
    place.world.advance_s(60).await;
    assert_eq!(place.heard().len(), EVENTS);
    assert!(place.receiver.hooks().iter().all(|hook| hook.is_signed_with(&endpoint.secret)));
    assert!(ada.deliveries(&endpoint).await.iter().all(|delivery| delivery["status"] == "delivered"));
    let asked = place.asked().await;
    let count = |operation: &str| asked[..asked.len() - before].iter().filter(|asked| *asked == operation).count();
    assert_eq!(count("PutItem"), EVENTS, "{asked:?}");
    // The stream may bring the events in two parts.
    assert!(count("SendMessageBatch") <= 5, "{asked:?}");
}

#[tokio::test]
async fn orders_for_one_endpoint_come_to_the_deliverer_together() {
    const MANY: usize = 10;
    let place = Place::new().await;
    let (ada, _) = place.coach(0).await;
    let mut endpoints = Vec::new();
    for number in 0..MANY {
        endpoints.push(ada.endpoint(&format!("{}/{number}", place.receiver.url()), "identifiers").await);
    }
    let endpoints: Vec<&Endpoint> = endpoints.iter().collect();
    let automations = (0..MANY).map(|number| automation(&format!("a{number}"), on("check_in_submitted"), &endpoints));
    place.world.facts(automations).await;
    place.check_in("k1").await;
    assert_eq!(place.receiver.hooks().len(), MANY * MANY);
    // A batch reads each endpoint that it has orders for, a unit each. Were they mixed, each of the hundred orders would read its own.
    let read_units: f64 = place.world.calls("deliver").await.iter().map(|call| Bill::of(call).read_units).sum();
    assert!(read_units <= 40.0, "{read_units}");
}

#[tokio::test]
async fn whatever_happens_to_the_relay_each_event_is_heard_of_once() {
    let place = Place::new().await;
    let (ada, endpoint) = place.coach(4).await;
    let mut check_ins = 0;
    for fault in ["store_conflicts", "store_failures", "store_lost_answers", "crash_before_call"] {
        for spared_calls in 0..CALLS {
            place.world.faults(json!({ "function": "relay", "spared_calls": spared_calls, fault: 1 })).await;
            check_ins += 1;
            place.check_in(&format!("k{check_ins}")).await;
            place.world.advance_s(HOUR_S).await;
            let left = place.world.local_faults().await;
            place.world.faults(json!({ "function": "", "spared_calls": 0, fault: 0 })).await;
            assert_eq!(place.heard().len(), 4 * check_ins, "{fault} after {spared_calls} calls");
            if left["spared_calls"] != 0 {
                break;
            }
        }
    }
    assert!(place.heard().values().all(|times| *times == 1), "{:?}", place.heard());
    for delivery in ada.deliveries(&endpoint).await {
        assert_eq!((&delivery["status"], list(delivery["attempts"].clone()).len()), (&json!("delivered"), 1));
    }
    assert!(place.unsent().await.is_empty());
}

#[tokio::test]
async fn of_a_batch_the_events_that_were_stored_are_ordered_though_the_others_conflict() {
    let place = Place::new().await;
    place.coach(4).await;
    // Each request finds the first of its items in another transaction, and so do the writes of those alone, for a while.
    place.world.faults(json!({ "function": "relay", "store_conflicts": 6 })).await;
    place.check_in("k1").await;
    assert_eq!(place.heard().len(), 4);
    assert!(place.heard().values().all(|times| *times == 1), "{:?}", place.heard());
    assert!(place.unsent().await.is_empty());
}

#[tokio::test]
async fn events_that_a_switched_off_endpoint_misses_are_noted_together_and_can_be_had_later() {
    let place = Place::new().await;
    let (ada, endpoint) = place.coach(EVENTS).await;
    let (path, settings) = (format!("/settings/webhooks/{}", endpoint.id), ada.settings().await);
    settings.patch(&path, json!({ "enabled": false })).await.expect(200);
    let since = place.world.timestamp_in(-60).await;
    place.check_in("k1").await;
    assert!(place.heard().is_empty());
    let missed = ada.deliveries(&endpoint).await;
    assert_eq!(missed.len(), EVENTS);
    for delivery in &missed {
        assert_eq!((&delivery["status"], &delivery["next_attempt_at"]), (&json!("failed"), &Value::Null));
        assert!(delivery["attempts"][0]["error"].as_str().unwrap().contains("endpoint disabled"), "{delivery}");
    }
    settings.patch(&path, json!({ "enabled": true })).await.expect(200);
    let recovered = settings.post(&format!("{path}/recover"), json!({ "since": since })).await.expect(202);
    assert_eq!(recovered.body["deliveries"], EVENTS);
    place.world.advance_s(60).await;
    assert_eq!(place.heard().len(), EVENTS);
    assert!(place.heard().values().all(|times| *times == 1), "{:?}", place.heard());
}
