//! Limits of what a coach has sent by hand: one recovery of an endpoint at a time, an event once an hour, ten test
//! events a minute.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::time::Duration;

use serde_json::{Value, json};

use crate::settings::webhooks::retry::{path, retry};
use crate::webhooks::endpoint_states::Place;
use crate::world::{Answer, Caller, Endpoint, Fact, Reply, until};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;

/// Switches an endpoint off and on again.
async fn off_and_on(settings: &Caller, endpoint: &Endpoint) {
    let at = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
}

/// A recovery of all that failed.
async fn recover(settings: &Caller, endpoint: &Endpoint) -> Reply {
    settings.post(&path(endpoint, "recover"), json!({ "since": "2026-01-01T00:00:00Z" })).await
}

/// The seconds that a refused recovery is told to wait.
#[track_caller]
fn ends_in_s(running: Reply) -> u64 {
    let running = running.refused(409, "recovery_running");
    let seconds: u64 = running.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    seconds
}

#[tokio::test]
async fn of_recoveries_at_once_one_runs_and_sends_each_event_once() {
    const FAILED: usize = 40;
    let place = Place::new().await;
    let (_, endpoint, settings) = place.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    place.world.facts((0..FAILED).map(|number| Fact::client("ada", &format!("c{number}")))).await;
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    // None has been attempted while the calls are made.
    place.receiver.otherwise(Answer::status(204).after(Duration::from_secs(1)));
    let calls = (0..4).map(|_| recover(&settings, &endpoint));
    let (recovered, running): (Vec<Reply>, Vec<Reply>) =
        futures::future::join_all(calls).await.into_iter().partition(|reply| reply.status == 202);
    assert_eq!((recovered.len(), running.len()), (1, 3));
    assert_eq!(recovered[0].body["deliveries"], FAILED);
    for reply in running {
        ends_in_s(reply);
    }
    place.receiver.otherwise(Answer::status(204));
    place.world.settle().await;
    assert_eq!(place.receiver.hooks().len(), FAILED);
    // The first that is sent again ends all the others: none is begun once more by the same call.
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    place.world.facts((0..FAILED).map(|number| Fact::client("ada", &format!("d{number}")))).await;
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    place.receiver.otherwise(Answer::status(410));
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], FAILED);
}

#[tokio::test]
async fn a_recovery_runs_until_what_it_ordered_last_was_attempted() {
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    let other = ada.endpoint(&format!("{}/other", place.receiver.url()), "identifiers").await;
    settings.patch(&format!("/settings/webhooks/{}", endpoint.id), json!({ "enabled": false })).await.expect(200);
    place.event("c1").await;
    off_and_on(&settings, &endpoint).await;
    let sent = place.receiver.hooks().len();
    place.receiver.script([Answer::status(500).after(Duration::from_secs(3))]);
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], 1);
    assert!(ends_in_s(recover(&settings, &endpoint).await) > 1);
    recover(&settings, &other).await.expect(202);
    // The delivery waits for its second attempt by then.
    until("an attempt", async || place.receiver.hooks().len() > sent).await;
    let attempted = async || ada.deliveries(&endpoint).await[0]["attempts"].as_array().unwrap().len() > 1;
    until("the attempt is recorded", attempted).await;
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], 0);
    // Nothing was ordered: nothing is waited for.
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], 0);
}

#[tokio::test]
async fn a_recovery_that_dies_holds_the_next_one_up_for_a_minute_at_most_and_is_gone_on_with() {
    const FAILED: usize = 40;
    /// Deliveries that fit into one transaction.
    const COMMITTED: usize = 25;
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    settings.patch(&format!("/settings/webhooks/{}", endpoint.id), json!({ "enabled": false })).await.expect(200);
    place.world.facts((0..FAILED).map(|number| Fact::client("ada", &format!("c{number}")))).await;
    off_and_on(&settings, &endpoint).await;
    place.world.faults(json!({ "crash_after_commit": 1, "function": "settings" })).await;
    recover(&settings, &endpoint).await.expect(500);
    place.world.faults(json!({ "crash_after_commit": 0, "function": "" })).await;
    let wait_s = ends_in_s(recover(&settings, &endpoint).await);
    place.world.settle().await;
    assert_eq!(place.receiver.hooks().len(), COMMITTED, "what was committed is sent");
    place.world.advance_s(wait_s).await;
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], FAILED - COMMITTED);
    place.world.settle().await;
    let ids = place.webhook_ids();
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (FAILED, FAILED));
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], 0);
    drop(ada);
}

#[tokio::test]
async fn switching_off_and_on_and_recovering_in_a_loop_sends_an_event_once_an_hour_and_a_test_never() {
    const EVENTS: usize = 3;
    const TESTS: usize = 2;
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    place.receiver.otherwise(Answer::status(500));
    for number in 0..EVENTS {
        place.event(&format!("c{number}")).await;
    }
    for _ in 0..TESTS {
        settings.post(&path(&endpoint, "test"), json!({})).await.expect(202);
    }
    place.world.settle().await;
    let mut sent = EVENTS + TESTS;
    assert_eq!(place.receiver.hooks().len(), sent);
    off_and_on(&settings, &endpoint).await;
    place.world.advance_s(2 * DAY_S).await;
    assert_eq!(place.receiver.hooks().len(), sent, "switching off and on sends nothing");
    for recovered in [EVENTS, 0, 0, 0] {
        assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], recovered);
        place.world.settle().await;
        sent += recovered;
        off_and_on(&settings, &endpoint).await;
        place.world.advance_s(10 * 60).await;
        assert_eq!(place.receiver.hooks().len(), sent);
    }
    // All but one succeed when they are sent again, and a delivery that succeeded is not sent once more.
    place.world.advance_s(HOUR_S - 4 * 600).await;
    place.receiver.script((1..EVENTS).map(|_| Answer::status(204)));
    for (recovered, pause_s) in [(EVENTS, HOUR_S), (1, HOUR_S), (1, 0)] {
        assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], recovered);
        place.world.settle().await;
        sent += recovered;
        off_and_on(&settings, &endpoint).await;
        assert_eq!(place.receiver.hooks().len(), sent);
        place.world.advance_s(pause_s).await;
    }
    let of_tests: Vec<Value> = ada
        .deliveries(&endpoint)
        .await
        .into_iter()
        .filter(|line| line["attempts"].as_array().unwrap().len() == 2)
        .collect();
    assert_eq!(of_tests.len(), TESTS, "one attempt, and a line that the endpoint was switched off");
    assert!(of_tests.iter().all(|line| line["status"] == "failed"));
    // By hand a test event is sent again.
    settings.post(&retry(&endpoint, &of_tests[0]), json!({})).await.expect(202);
    place.world.settle().await;
    assert_eq!(place.receiver.hooks().len(), sent + 1);
}

#[tokio::test]
async fn an_endpoint_is_sent_at_most_ten_test_events_a_minute() {
    let place = Place::new().await;
    let (ada, endpoint, settings) = place.coach().await;
    let other = ada.endpoint(&format!("{}/other", place.receiver.url()), "identifiers").await;
    place.event("c1").await;
    let real = ada.deliveries(&endpoint).await.remove(0);
    place.world.advance_to_next_minute().await;
    let began = place.world.now().await;
    // A request that is refused for another reason does not count.
    settings.post(&path(&endpoint, "test"), json!({ "type": "none" })).await.refused_for("type");
    let calls = (0..25).map(|_| settings.post(&path(&endpoint, "test"), json!({})).into_future());
    let (accepted, limited): (Vec<Reply>, Vec<Reply>) =
        futures::future::join_all(calls).await.into_iter().partition(|reply| reply.status == 202);
    assert_eq!((accepted.len(), limited.len()), (10, 15));
    let told = limited.into_iter().map(|reply| {
        let limited = reply.refused(429, "rate_limited");
        let seconds: u64 = limited.header("retry-after").unwrap().parse().unwrap();
        assert!(limited.header("ratelimit").unwrap().ends_with(&format!(", \"test-event\";r=0;t={seconds}")));
        assert!(limited.header("ratelimit-policy").unwrap().ends_with(", \"test-event\";q=10;w=60"));
        seconds
    });
    let wait_s = told.max().unwrap();
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    let test = json!({ "id": accepted[0].body["delivery_id"] });
    settings.post(&retry(&endpoint, &test), json!({})).await.refused(429, "rate_limited");
    settings.post(&retry(&endpoint, &real), json!({})).await.expect(202);
    settings.post(&path(&other, "test"), json!({})).await.expect(202);
    assert_eq!(
        place.world.now().await.timestamp() / 60,
        began.timestamp() / 60,
        "the requests have to fit into one minute"
    );
    place.world.advance_s(wait_s).await;
    settings.post(&path(&endpoint, "test"), json!({})).await.expect(202);
    settings.post(&retry(&endpoint, &test), json!({})).await.expect(202);
    place.world.settle().await;
    assert_eq!(place.receiver.hooks().len(), 2 + 10 + 1 + 1 + 2);
}
