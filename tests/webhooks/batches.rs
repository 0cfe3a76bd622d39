//! Orders that come to the deliverer together: each on its own terms.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Answer, Coach, Endpoint, Fact, Receiver, World, list};

const HOUR_S: u64 = 3_600;
/// Slots of endpoints are there from their first delivery on.
const FIRST: &str = "first";
/// Somewhat less than what a call to AWS takes at most, before it is made again.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// A coach whose every event goes to several endpoints of one receiver.
struct FanOut {
    world: World,
    receiver: Receiver,
    endpoints: usize,
}

impl FanOut {
    async fn new(endpoints: usize) -> Self {
        Self { world: World::start().await, receiver: Receiver::start().await, endpoints }
    }

    async fn coach(&self) -> (Coach<'_>, Vec<Endpoint>) {
        let ada = self.world.coach("ada").await;
        let mut endpoints = Vec::new();
        for number in 0..self.endpoints {
            endpoints.push(ada.endpoint(&format!("{}/{number}", self.receiver.url()), "identifiers").await);
        }
        self.event(FIRST).await;
        (ada, endpoints)
    }

    async fn event(&self, client: &str) {
        self.world.facts([Fact::client("ada", client)]).await;
        self.world.settle().await;
    }

    async fn fault(&self, fault: &str, count: u32) {
        self.world.faults(json!({ "function": "deliver", fault: count })).await;
    }

    /// How often each endpoint heard of each event.
    fn heard(&self) -> BTreeMap<(String, String), usize> {
        let mut heard = BTreeMap::new();
        for hook in self.receiver.hooks() {
            *heard.entry((hook.header("webhook-id").to_owned(), hook.path.clone())).or_default() += 1;
        }
        heard
    }

    /// What the deliverer has asked AWS for so far: operation and tables.
    async fn asked(&self) -> Vec<(String, Value)> {
        let calls = self.world.calls("deliver").await.into_iter().flat_map(|call| list(call["calls"].clone()));
        calls.map(|call| (call["operation"].as_str().unwrap().to_owned(), call["tables"].clone())).collect()
    }
}

/// The endpoints' latest deliveries.
async fn latest(ada: &Coach<'_>, endpoints: &[Endpoint]) -> Vec<Value> {
    let mut latest = Vec::new();
    for endpoint in endpoints {
        latest.push(ada.deliveries(endpoint).await.remove(0));
    }
    latest
}

#[tokio::test]
async fn orders_for_ten_endpoints_cost_few_requests() {
    let place = FanOut::new(10).await;
    let (ada, endpoints) = place.coach().await;
    let before = place.asked().await.len();
    place.event("second").await;
    assert!(place.heard().values().all(|times| *times == 1), "{:?}", place.heard());
    for delivery in latest(&ada, &endpoints).await {
        assert_eq!((&delivery["status"], list(delivery["attempts"].clone()).len()), (&json!("delivered"), 1));
    }
    let asked = place.asked().await;
    let count = |operation: &str| asked[..asked.len() - before].iter().filter(|(asked, _)| asked == operation).count();
    // Newest first. Each order takes a slot, claims, records and gives the slot back.
    assert_eq!((count("GetItem"), count("BatchGetItem"), count("UpdateItem")), (0, 1, 40), "{asked:?}");
}

#[tokio::test]
async fn an_order_alone_takes_five_requests() {
    let place = FanOut::new(1).await;
    place.coach().await;
    let before = place.asked().await.len();
    place.event("second").await;
    let asked = place.asked().await;
    let mut operations: Vec<&str> =
        asked[..asked.len() - before].iter().map(|(operation, _)| operation.as_str()).collect();
    operations.sort_unstable();
    assert_eq!(operations, ["BatchGetItem", "UpdateItem", "UpdateItem", "UpdateItem", "UpdateItem"]);
}

#[tokio::test]
async fn a_burst_for_one_endpoint_reaches_it_once_each() {
    let place = FanOut::new(1).await;
    let (ada, endpoints) = place.coach().await;
    place.world.faults(json!({ "duplicate_messages": true })).await;
    place.world.facts((0..40).map(|number| Fact::client("ada", &format!("c{number}")))).await;
    place.world.advance_s(HOUR_S).await;
    assert_eq!(place.heard().len(), 41);
    assert!(place.heard().values().all(|times| *times == 1), "{:?}", place.heard());
    let delivered = ada.deliveries(&endpoints[0]).await;
    assert!(delivered.iter().all(|delivery| delivery["status"] == "delivered"));
}

#[tokio::test]
async fn one_that_fails_or_dawdles_does_not_touch_the_others() {
    let place = FanOut::new(4).await;
    let (ada, endpoints) = place.coach().await;
    let slow = Answer::status(204).after(Duration::from_millis(400));
    place.receiver.script([Answer::status(503), Answer::status(204), slow, Answer::status(410)]);
    place.event("second").await;
    let mut told = Vec::new();
    for delivery in latest(&ada, &endpoints).await {
        assert_eq!(list(delivery["attempts"].clone()).len(), 1, "{delivery}");
        told.push((
            delivery["status"].as_str().unwrap().to_owned(),
            delivery["attempts"][0]["status_code"].to_string(),
        ));
    }
    told.sort_unstable();
    let expected = [("delivered", "204"), ("delivered", "204"), ("failed", "410"), ("pending", "503")];
    assert_eq!(told, expected.map(|(status, code)| (status.to_owned(), code.to_owned())));
    place.world.advance_s(HOUR_S).await;
    let statuses: BTreeSet<String> =
        latest(&ada, &endpoints).await.iter().map(|delivery| delivery["status"].to_string()).collect();
    assert_eq!(statuses, BTreeSet::from(["\"delivered\"".to_owned(), "\"failed\"".to_owned()]));
}

#[tokio::test]
async fn a_call_that_stalls_for_one_endpoint_does_not_hold_up_the_others() {
    let place = FanOut::new(3).await;
    let (ada, _) = place.coach().await;
    // The endpoints are read by the first call. The third takes a slot of one of them.
    ada.endpoint(&format!("{}/new", place.receiver.url()), "identifiers").await;
    place.world.faults(json!({ "function": "deliver", "spared_calls": 2, "stalled_calls": 1 })).await;
    place.world.put([Fact::client("ada", "second")]).await;
    place.world.until_stalled().await;
    let began = Instant::now();
    while place.receiver.hooks().len() == 3 {
        assert!(began.elapsed() < CALL_TIMEOUT, "nobody hears of it while one call stalls");
        place.world.now().await;
    }
    place.world.faults(json!({ "stalled_calls": 0, "function": "" })).await;
    place.world.settle().await;
    assert_eq!(place.heard().len(), 3 + 4);
    assert!(place.heard().values().all(|times| *times == 1), "{:?}", place.heard());
}

#[tokio::test]
async fn a_deliverer_that_dies_at_any_call_costs_each_endpoint_at_most_one_duplicate() {
    let place = FanOut::new(3).await;
    let (ada, endpoints) = place.coach().await;
    for spared_calls in 0..9 {
        place
            .world
            .faults(json!({ "function": "deliver", "spared_calls": spared_calls, "crash_before_call": 1 }))
            .await;
        place.event(&format!("c{spared_calls}")).await;
        place.world.advance_s(HOUR_S).await;
        place.world.faults(json!({ "function": "", "spared_calls": 0, "crash_before_call": 0 })).await;
        for delivery in latest(&ada, &endpoints).await {
            assert_eq!(delivery["status"], "delivered", "after {spared_calls} calls");
        }
    }
    let heard = place.heard();
    assert_eq!(heard.len(), 3 * 10, "each event, at each endpoint");
    assert!(heard.values().all(|times| *times <= 2), "{heard:?}");
    assert!(place.world.take_messages("deliveries-dlq").await.is_empty());
}

/// It dies after it has recorded an attempt, before or after it has ordered the next; the order that comes again, after three minutes, finds
/// every slot taken.
#[tokio::test]
async fn a_delivery_goes_on_where_its_next_order_was_lost_and_its_last_finds_no_slot() {
    let place = FanOut::new(1).await;
    let (ada, endpoints) = place.coach().await;
    for spared_calls in 3..8 {
        place.receiver.script([Answer::status(500)]);
        let crash = json!({ "function": "deliver", "spared_calls": spared_calls, "crash_before_call": 1 });
        place.world.faults(crash).await;
        place.event(&format!("c{spared_calls}")).await;
        place.world.faults(json!({ "function": "", "spared_calls": 0, "crash_before_call": 0 })).await;
        let held = json!({ "S": format!("{:015}#another", (place.world.now().await.timestamp() + 190) * 1000) });
        let key = format!("SLOTS#{}", endpoints[0].id);
        let slots = json!({ "pk": { "S": "COACH#ada" }, "sk": { "S": key }, "s0": held, "s1": held, "s2": held });
        place.world.put_item("workspaces", &slots).await;
        place.world.advance_s(3 * HOUR_S).await;
        assert_eq!(latest(&ada, &endpoints).await[0]["status"], "delivered", "after {spared_calls} calls");
    }
}

#[tokio::test]
async fn a_conflict_a_refusal_or_a_lost_answer_costs_no_duplicate() {
    let place = FanOut::new(3).await;
    let (ada, endpoints) = place.coach().await;
    let mut events = 1;
    for fault in ["store_conflicts", "store_failures", "store_lost_answers"] {
        for spared_calls in 0..6 {
            let fault = json!({ "function": "deliver", "spared_calls": spared_calls, fault: 1 });
            place.world.faults(fault).await;
            place.event(&format!("c{events}")).await;
            events += 1;
        }
        place.fault(fault, 0).await;
    }
    place.world.advance_s(HOUR_S).await;
    let heard = place.heard();
    assert_eq!(heard.len(), 3 * events, "each event, at each endpoint");
    assert!(heard.values().all(|times| *times == 1), "{heard:?}");
    for endpoint in &endpoints {
        for delivery in ada.deliveries(endpoint).await {
            assert_eq!((&delivery["status"], list(delivery["attempts"].clone()).len()), (&json!("delivered"), 1));
        }
    }
}

#[tokio::test]
async fn a_slot_that_was_taken_alone_and_whose_answer_was_lost_is_given_back() {
    lost_answers_leave_no_slot_taken(1).await;
}

#[tokio::test]
async fn a_slot_that_was_taken_in_a_batch_and_whose_answer_was_lost_is_given_back() {
    lost_answers_leave_no_slot_taken(3).await;
}

async fn lost_answers_leave_no_slot_taken(endpoints: usize) {
    let place = FanOut::new(endpoints).await;
    place.coach().await;
    for spared_calls in 0..6 {
        let fault = json!({ "function": "deliver", "spared_calls": spared_calls, "store_lost_answers": 1 });
        place.world.faults(fault).await;
        place.event(&format!("c{spared_calls}")).await;
        for item in place.world.items("workspaces", "COACH#ada").await {
            let held = item.as_object().unwrap().keys().any(|name| ["s0", "s1", "s2"].contains(&name.as_str()));
            let is_slots = item["sk"]["S"].as_str().unwrap().starts_with("SLOTS#");
            assert!(!is_slots || !held, "after {spared_calls} calls: {item}");
        }
    }
    place.fault("store_lost_answers", 0).await;
}

#[tokio::test]
async fn a_storm_of_faults_loses_nothing() {
    let place = FanOut::new(3).await;
    let (ada, endpoints) = place.coach().await;
    for fault in ["store_conflicts", "store_failures", "store_lost_answers"] {
        place.fault(fault, 60).await;
        place.world.facts((0..5).map(|number| Fact::client("ada", &format!("{fault}-{number}")))).await;
        place.world.advance_s(60).await;
        place.fault(fault, 0).await;
    }
    place.world.advance_s(HOUR_S).await;
    assert_eq!(place.heard().len(), 3 * 16, "each event, at each endpoint");
    for endpoint in &endpoints {
        assert!(ada.deliveries(endpoint).await.iter().all(|delivery| delivery["status"] == "delivered"));
    }
}
