//! Deliveries that reach the deliverer as a batch: each succeeds or fails on its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::delivery::operations;
use crate::world::{Answer, Coach, Endpoint, Fact, Receiver, World, list, until_within};

const HOUR_S: u64 = 3_600;
const FIRST: &str = "first";
/// Somewhat less than the SDK's time-out for a call.
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
        self.world.apply([Fact::client("ada", client)]).await;
        self.world.settle().await;
    }

    async fn fault(&self, fault: &str, count: u32) {
        self.world.faults(json!({ "function": "deliver", fault: count })).await;
    }

    /// Emits an event whose deliverer dies at its call after so many.
    async fn event_with_a_death(&self, client: &str, spared_calls: usize) {
        let crash = json!({ "function": "deliver", "spared_calls": spared_calls, "crash_before_call": 1 });
        self.world.faults(crash).await;
        self.event(client).await;
    }

    /// Number of requests by endpoint and event.
    fn received_counts(&self) -> BTreeMap<(String, String), usize> {
        let mut received_counts = BTreeMap::new();
        for hook in self.receiver.hooks() {
            *received_counts.entry((hook.header("webhook-id").to_owned(), hook.path.clone())).or_default() += 1;
        }
        received_counts
    }
}

/// Each endpoint's latest delivery.
async fn latest(ada: &Coach<'_>, endpoints: &[Endpoint]) -> Vec<Value> {
    let mut latest = Vec::new();
    for endpoint in endpoints {
        latest.push(ada.deliveries(endpoint).await.remove(0));
    }
    latest
}

#[tokio::test]
async fn a_delivery_takes_three_requests_alone_and_in_a_batch_of_ten() {
    for endpoints in [1, 10] {
        let scene = FanOut::new(endpoints).await;
        scene.coach().await;
        let before = operations(&scene.world, "deliver").await.len();
        scene.event("second").await;
        let calls_made = operations(&scene.world, "deliver").await;
        let latest = &calls_made[..calls_made.len() - before];
        let count = |operation: &str| latest.iter().filter(|made| *made == operation).count();
        // Each delivery is read with its endpoint, recorded and counted.
        let counts = ["BatchGetItem", "PutItem", "UpdateItem"].map(count);
        assert_eq!(counts, [endpoints; 3], "{latest:?}");
        assert!(endpoints > 1 || latest.len() == 3, "{latest:?}");
    }
}

#[tokio::test]
async fn a_failing_or_slow_endpoint_does_not_affect_the_others() {
    let scene = FanOut::new(4).await;
    let (ada, endpoints) = scene.coach().await;
    let slow = Answer::status(204).after(Duration::from_millis(400));
    scene.receiver.script([Answer::status(503), Answer::status(204), slow, Answer::status(410)]);
    scene.event("second").await;
    let mut outcomes = Vec::new();
    for delivery in latest(&ada, &endpoints).await {
        assert_eq!(list(delivery["attempts"].clone()).len(), 1, "{delivery}");
        outcomes.push((
            delivery["status"].as_str().unwrap().to_owned(),
            delivery["attempts"][0]["status_code"].to_string(),
        ));
    }
    outcomes.sort_unstable();
    let expected = [("delivered", "204"), ("delivered", "204"), ("failed", "410"), ("pending", "503")];
    assert_eq!(outcomes, expected.map(|(status, code)| (status.to_owned(), code.to_owned())));
    scene.world.advance_s(HOUR_S).await;
    let statuses: BTreeSet<String> =
        latest(&ada, &endpoints).await.iter().map(|delivery| delivery["status"].to_string()).collect();
    assert_eq!(statuses, BTreeSet::from(["\"delivered\"".to_owned(), "\"failed\"".to_owned()]));
}

#[tokio::test]
async fn a_call_that_stalls_for_one_endpoint_does_not_delay_the_others() {
    let scene = FanOut::new(3).await;
    let (ada, _) = scene.coach().await;
    // The first calls read each endpoint with its delivery.
    ada.endpoint(&format!("{}/new", scene.receiver.url()), "identifiers").await;
    scene.world.faults(json!({ "function": "deliver", "spared_calls": 2, "stalled_calls": 1 })).await;
    scene.world.publish([Fact::client("ada", "second")]).await;
    scene.world.until_stalled().await;
    let others_got_it = async || scene.receiver.hooks().len() > 3;
    until_within(CALL_TIMEOUT, "another endpoint gets the event while the call stalls", others_got_it).await;
    scene.world.faults(json!({ "stalled_calls": 0, "function": "" })).await;
    scene.world.settle().await;
    assert_eq!(scene.received_counts().len(), 3 + 4);
    assert!(scene.received_counts().values().all(|times| *times == 1), "{:?}", scene.received_counts());
}

#[tokio::test]
async fn a_deliverer_crash_at_any_call_causes_at_most_one_duplicate_for_each_endpoint() {
    let scene = FanOut::new(3).await;
    let (ada, endpoints) = scene.coach().await;
    for spared_calls in 0..9 {
        scene.event_with_a_death(&format!("c{spared_calls}"), spared_calls).await;
        scene.world.advance_s(HOUR_S).await;
        scene.world.clear_faults().await;
        for delivery in latest(&ada, &endpoints).await {
            assert_eq!(delivery["status"], "delivered", "after {spared_calls} calls");
        }
    }
    let received_counts = scene.received_counts();
    assert_eq!(received_counts.len(), 3 * 10, "each event, at each endpoint");
    assert!(received_counts.values().all(|times| *times <= 2), "{received_counts:?}");
    assert!(scene.world.take_messages("deliveries-dlq.fifo").await.is_empty());
}

/// The deliverer dies after recording an attempt, before or after enqueuing the next. The message returns after a
/// minute.
#[tokio::test]
async fn a_delivery_continues_although_its_next_message_was_lost() {
    let scene = FanOut::new(1).await;
    let (ada, endpoints) = scene.coach().await;
    for spared_calls in 0..6 {
        scene.receiver.script([Answer::status(500)]);
        scene.event_with_a_death(&format!("c{spared_calls}"), spared_calls).await;
        scene.world.clear_faults().await;
        scene.world.advance_s(3 * HOUR_S).await;
        assert_eq!(latest(&ada, &endpoints).await[0]["status"], "delivered", "after {spared_calls} calls");
    }
}

/// SQS gives out no message of a lane while one of them is away.
#[tokio::test]
async fn deliveries_begin_within_16_seconds_after_a_fault_of_the_store_of_8_seconds() {
    const EVENTS: usize = 40;
    const FAULT: Duration = Duration::from_secs(8);
    const MOST: Duration = Duration::from_secs(16);
    let (world, receiver) = (World::start_in_real_time().await, Receiver::start().await);
    world.coach("ada").await.endpoint(&receiver.url(), "identifiers").await;
    world.faults(json!({ "function": "deliver", "store_failures": 1_000_000 })).await;
    world.publish((0..EVENTS).map(|number| Fact::client("ada", &format!("c{number}")))).await;
    let begun = Instant::now();
    until_within(2 * FAULT, "the end of the fault", async || begun.elapsed() >= FAULT).await;
    assert!(receiver.hooks().is_empty());
    world.faults(json!({ "function": "", "store_failures": 0 })).await;
    until_within(MOST, "the deliveries begin", async || receiver.hooks().len() == EVENTS).await;
}

#[tokio::test]
async fn a_deliverer_that_dies_holds_its_lanes_for_a_minute() {
    const MINUTE_S: u64 = 60;
    let scene = FanOut::new(3).await;
    scene.coach().await;
    scene.fault("crash_before_call", 1).await;
    scene.event("second").await;
    scene.world.advance_s(MINUTE_S + 1).await;
    assert_eq!(scene.received_counts().len(), 3 * 2, "each event, at each endpoint");
}

#[tokio::test]
async fn a_conflict_a_refusal_or_a_lost_answer_causes_no_duplicate() {
    let scene = FanOut::new(3).await;
    let (ada, endpoints) = scene.coach().await;
    let mut events = 1;
    for fault in ["store_conflicts", "store_failures", "store_lost_answers"] {
        for spared_calls in 0..6 {
            let fault = json!({ "function": "deliver", "spared_calls": spared_calls, fault: 1 });
            scene.world.faults(fault).await;
            scene.event(&format!("c{events}")).await;
            events += 1;
        }
        scene.fault(fault, 0).await;
    }
    scene.world.advance_s(HOUR_S).await;
    let received_counts = scene.received_counts();
    assert_eq!(received_counts.len(), 3 * events, "each event, at each endpoint");
    assert!(received_counts.values().all(|times| *times == 1), "{received_counts:?}");
    for endpoint in &endpoints {
        for delivery in ada.deliveries(endpoint).await {
            assert_eq!((&delivery["status"], list(delivery["attempts"].clone()).len()), (&json!("delivered"), 1));
        }
    }
}

#[tokio::test]
async fn a_storm_of_faults_loses_nothing() {
    let scene = FanOut::new(3).await;
    let (ada, endpoints) = scene.coach().await;
    for fault in ["store_conflicts", "store_failures", "store_lost_answers"] {
        scene.fault(fault, 60).await;
        scene.world.apply((0..5).map(|number| Fact::client("ada", &format!("{fault}-{number}")))).await;
        scene.world.advance_s(60).await;
        scene.fault(fault, 0).await;
    }
    scene.world.advance_s(HOUR_S).await;
    assert_eq!(scene.received_counts().len(), 3 * 16, "each event, at each endpoint");
    for endpoint in &endpoints {
        assert!(ada.deliveries(endpoint).await.iter().all(|delivery| delivery["status"] == "delivered"));
    }
}
