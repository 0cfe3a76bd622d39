//! The breaker of an endpoint that does not answer: events wait, without requests, writes or lost attempts.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::breaker::SILENT_ATTEMPTS;
use domain::delivery::LANES;
use domain::retry::GAPS_S;
use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::delivery::simulation::log_of;
use crate::settings::webhooks::retry::{path, retry};
use crate::world::{Answer, Caller, Coach, Endpoint, Fact, World, list, time};

/// More than the longest opening.
const LONG_S: u64 = 16 * 60;

async fn open_until(settings: &Caller, endpoint: &Endpoint) -> Value {
    settings.get(&format!("/settings/webhooks/{}", endpoint.id)).await.expect(200).body["breaker_open_until"].clone()
}

/// The next attempts of the deliveries that wait, as each list and each read of one shows them.
async fn next_attempts(coach: &Coach<'_>, settings: &Caller, endpoint: &Endpoint) -> Vec<DateTime<Utc>> {
    let at = format!("/settings/webhooks/{}/deliveries", endpoint.id);
    let waiting = |shown: &Value| {
        let mut waiting = list(shown["data"].clone());
        waiting.retain(|delivery| delivery["status"] == "pending");
        waiting
    };
    let shown = waiting(&json!({ "data": log_of(coach, endpoint).await }));
    for list in [
        at.clone() + "?status=pending&limit=200",
        "/settings/deliveries?limit=200".to_owned(),
        format!("/settings/deliveries?limit=200&endpoint_id={}", endpoint.id),
    ] {
        assert_eq!(waiting(&settings.get(&list).await.expect(200).body), shown, "{list}");
    }
    for delivery in &shown {
        let one = settings.get(&format!("{at}/{}", delivery["id"].as_str().unwrap())).await.expect(200).body;
        assert_eq!(one["next_attempt_at"], delivery["next_attempt_at"]);
    }
    shown.iter().map(|delivery| time(&delivery["next_attempt_at"])).collect()
}

/// The number of attempts of each delivery, by status.
async fn attempts(coach: &Coach<'_>, endpoint: &Endpoint) -> BTreeMap<String, Vec<usize>> {
    let mut attempts = BTreeMap::<String, Vec<usize>>::new();
    for delivery in log_of(coach, endpoint).await {
        let status = delivery["status"].as_str().unwrap().to_owned();
        attempts.entry(status).or_default().push(list(delivery["attempts"].clone()).len());
    }
    attempts
}

/// The calls of the deliverer, each once. The stack itself keeps only the latest.
#[derive(Default)]
struct Calls(BTreeMap<String, Vec<Value>>);

impl Calls {
    async fn collect_from(&mut self, world: &World) {
        for invocation in world.calls("deliver").await {
            let request_id = invocation["request_id"].as_str().unwrap().to_owned();
            self.0.insert(request_id, list(invocation["calls"].clone()));
        }
    }

    /// The calls of one operation by invocations that carry out orders. The others move orders that have waited.
    fn count(&self, operation: &str) -> usize {
        let is = |call: &Value, operation: &str| call["operation"] == operation;
        let carriers = self.0.values().filter(|calls| calls.iter().any(|call| is(call, "BatchGetItem")));
        carriers.flatten().filter(|call| is(call, operation)).count()
    }
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_is_left_alone_and_no_attempt_is_lost() {
    const WAITING: usize = 20;
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    assert_eq!(open_until(&settings, &endpoint).await, Value::Null);
    scene.receiver.otherwise(Answer::silence());
    scene.world.apply((0..3).map(|number| Fact::client("ada", &format!("silent-{number}")))).await;
    let (until, now) = (time(&open_until(&settings, &endpoint).await), scene.world.now().await);
    let left_s = (until - now).num_seconds();
    assert!((1..=30).contains(&left_s), "{left_s}");
    let (sent, invocations) = (scene.receiver.hooks().len(), scene.world.calls("deliver").await.len());
    scene.world.apply((0..WAITING).map(|number| Fact::client("ada", &format!("waits-{number}")))).await;
    assert_eq!(scene.receiver.hooks().len(), sent);
    assert_eq!(scene.world.calls("deliver").await.len(), invocations, "their orders are sent to wait at once");
    let waiting = attempts(&ada, &endpoint).await;
    assert_eq!(waiting.keys().collect::<Vec<_>>(), ["pending"]);
    assert_eq!(waiting["pending"].iter().filter(|attempts| **attempts == 0).count(), WAITING);
    let next = next_attempts(&ada, &settings, &endpoint).await;
    assert!(next.len() == 3 + WAITING && next.iter().all(|at| *at >= until), "{next:?} until {until}");
    scene.receiver.otherwise(Answer::status(204));
    scene.world.advance_s(60).await;
    assert_eq!(open_until(&settings, &endpoint).await, Value::Null);
    let delivered = attempts(&ada, &endpoint).await;
    assert_eq!(delivered.keys().collect::<Vec<_>>(), ["delivered"]);
    assert_eq!(delivered["delivered"].iter().filter(|attempts| **attempts == 1).count(), WAITING);
}

/// The breaker of an endpoint is open, some deliveries are between two attempts, and some wait for their first.
struct SilentEndpoint<'s> {
    scene: &'s EndpointScene,
    ada: Coach<'s>,
    endpoint: Endpoint,
    settings: Caller,
}

impl<'s> SilentEndpoint<'s> {
    /// More than a page of a job.
    const WAITING: usize = 120;

    async fn new(scene: &'s EndpointScene) -> Self {
        let (ada, endpoint, settings) = scene.coach().await;
        scene.receiver.otherwise(Answer::silence());
        scene.world.apply((0..3).map(|number| Fact::client("ada", &format!("silent-{number}")))).await;
        scene.world.apply((0..Self::WAITING).map(|number| Fact::client("ada", &format!("waits-{number}")))).await;
        assert!(open_until(&settings, &endpoint).await.is_string());
        Self { scene, ada, endpoint, settings }
    }

    fn sent(&self) -> usize {
        self.scene.receiver.hooks().len()
    }

    async fn open_until(&self) -> Value {
        open_until(&self.settings, &self.endpoint).await
    }

    /// Presses a button: a test event, or a delivery that is sent again.
    async fn press(&self, button: &str) {
        let path = match button {
            "test" => path(&self.endpoint, "test"),
            _ => retry(&self.endpoint, &log_of(&self.ada, &self.endpoint).await[0]),
        };
        self.settings.post(&path, json!({})).await.expect(202);
        self.scene.world.settle().await;
    }

    /// Asserts that what waited for its first attempt is sent page by page, once, long before the breaker would have
    /// closed by itself.
    async fn assert_sent_at_once(&self, sent_before: usize) {
        let sent = self.sent() - sent_before;
        assert!((90..Self::WAITING).contains(&sent), "a page is sent at once: {sent}");
        self.scene.world.advance_s(6).await;
        let log = log_of(&self.ada, &self.endpoint).await;
        let delivered = log.iter().filter(|delivery| delivery["status"] == "delivered");
        assert!(delivered.count() >= Self::WAITING);
        self.scene.world.advance_s(LONG_S).await;
        let statuses: Vec<String> = attempts(&self.ada, &self.endpoint).await.into_keys().collect();
        assert_eq!(statuses, ["delivered"]);
        let ids = self.scene.webhook_ids();
        let distinct: BTreeSet<&String> = ids[sent_before..].iter().collect();
        assert_eq!(distinct.len(), ids.len() - sent_before, "nothing is sent twice");
    }
}

#[tokio::test]
async fn a_new_address_closes_the_breaker_and_what_waits_is_sent_there_at_once() {
    let scene = EndpointScene::new().await;
    let silent = SilentEndpoint::new(&scene).await;
    let (at, sent) = (format!("/settings/webhooks/{}", silent.endpoint.id), silent.sent());
    // A change of anything else, and another secret, close nothing.
    silent.settings.patch(&at, json!({ "description": "Silent" })).await.expect(200);
    silent.settings.post(&path(&silent.endpoint, "rotate-secret"), json!({})).await.expect(200);
    scene.world.settle().await;
    assert!(silent.open_until().await.is_string());
    assert_eq!(silent.sent(), sent);
    scene.receiver.otherwise(Answer::status(204));
    let moved = json!({ "url": format!("{}/moved", scene.receiver.url()) });
    assert_eq!(silent.settings.patch(&at, moved).await.expect(200).body["breaker_open_until"], Value::Null);
    scene.world.settle().await;
    silent.assert_sent_at_once(sent).await;
    assert!(scene.receiver.hooks()[sent..].iter().all(|hook| hook.path == "/hook/moved"));
}

#[tokio::test]
async fn a_press_passes_an_open_breaker_and_an_answer_closes_it_for_all_that_waits() {
    for button in ["retry", "test"] {
        let scene = EndpointScene::new().await;
        let silent = SilentEndpoint::new(&scene).await;
        let sent = silent.sent();
        scene.receiver.otherwise(Answer::status(204));
        silent.press(button).await;
        assert_eq!(silent.open_until().await, Value::Null, "{button}");
        silent.assert_sent_at_once(sent).await;
    }
}

#[tokio::test]
async fn a_press_that_is_not_answered_is_one_request_and_opens_the_breaker_for_longer() {
    let scene = EndpointScene::new().await;
    let silent = SilentEndpoint::new(&scene).await;
    let mut until = time(&silent.open_until().await);
    for (button, opening_s) in [("test", 60), ("retry", 120), ("test", 240)] {
        let (sent, now) = (silent.sent(), scene.world.now().await);
        silent.press(button).await;
        let longer = time(&silent.open_until().await);
        assert_eq!(silent.sent(), sent + 1, "{button}");
        let open_s = (longer - now).num_seconds();
        assert!(longer > until && (opening_s - 1..opening_s + 5).contains(&open_s), "{button}: {open_s} s");
        until = longer;
    }
}

/// Each order costs one message for each time that the breaker opens, and no write.
#[tokio::test]
async fn a_long_queue_for_an_endpoint_that_does_not_answer_waits_cheaply() {
    const EVENTS: usize = 150;
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.receiver.otherwise(Answer::silence());
    scene.world.apply((0..EVENTS).map(|number| Fact::client("ada", &format!("c{number:03}")))).await;
    let (mut calls, mut openings) = (Calls::default(), BTreeSet::new());
    for _ in 0..60 {
        calls.collect_from(&scene.world).await;
        openings.insert(open_until(&settings, &endpoint).await.to_string());
        scene.world.advance_s(60).await;
    }
    calls.collect_from(&scene.world).await;
    let made: usize = attempts(&ada, &endpoint).await.values().flatten().sum();
    let (waits, writes) = (calls.count("SendMessage") - made, calls.count("PutItem"));
    println!("{made} attempts, {} openings, {waits} waits, {writes} writes", openings.len());
    assert!((5..=9).contains(&openings.len()), "an hour has few openings: {openings:?}");
    // Of the first round, the lanes whose attempts end before the breaker opens go on to their next orders.
    let first = usize::from(LANES) + SILENT_ATTEMPTS as usize - 1;
    assert!(made <= first + openings.len(), "one probe each time, after the first round: {made}");
    assert!(waits <= EVENTS * (openings.len() + 1), "{waits} waits in {} openings", openings.len());
    // Each attempt is recorded, and some change the endpoint.
    assert!(writes <= made + 3 * (openings.len() + 1), "{writes} writes for {made} attempts");
    scene.receiver.otherwise(Answer::status(204));
    scene.world.advance_s(LONG_S).await;
    // All is delivered except what was a probe so often that its own next attempt is later.
    let now = scene.world.now().await;
    let mut last = now;
    for delivery in log_of(&ada, &endpoint).await.iter().filter(|delivery| delivery["status"] != "delivered") {
        let (made, next) = (list(delivery["attempts"].clone()).len(), time(&delivery["next_attempt_at"]));
        assert!(made > 0 && u64::from(GAPS_S[made - 1]) > LONG_S && next > now, "{delivery}");
        last = last.max(next);
    }
    scene.world.advance_s(u64::try_from((last - now).num_seconds()).unwrap() + 60).await;
    assert_eq!(attempts(&ada, &endpoint).await.keys().collect::<Vec<_>>(), ["delivered"]);
}
