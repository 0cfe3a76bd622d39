//! Limits on deliveries by hand: one recovery of an endpoint at a time, an event once an hour, ten test events a
//! minute.

use std::collections::BTreeSet;
use std::future::IntoFuture;

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::settings::webhooks::retry::{path, retry};
use crate::world::{Answer, Caller, Endpoint, Reply};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;

/// Switches an endpoint off and on again.
async fn off_and_on(settings: &Caller, endpoint: &Endpoint) {
    let at = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
}

/// Recovers all failed deliveries.
async fn recover(settings: &Caller, endpoint: &Endpoint) -> Reply {
    settings.post(&path(endpoint, "recover"), json!({ "since": "2026-01-01T00:00:00Z" })).await
}

/// The wait in seconds that a refused recovery names.
#[track_caller]
fn ends_in_s(running: Reply) -> u64 {
    let running = running.refused(409, "recovery_running");
    let seconds: u64 = running.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    seconds
}

#[tokio::test]
async fn of_simultaneous_recoveries_one_runs_and_sends_each_event_once() {
    const FAILED: usize = 40;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.fail(&settings, &endpoint, FAILED).await;
    scene.hold_jobs().await;
    let calls = (0..4).map(|_| recover(&settings, &endpoint));
    let (recovered, running): (Vec<Reply>, Vec<Reply>) =
        futures::future::join_all(calls).await.into_iter().partition(|reply| reply.status == 202);
    assert_eq!((recovered.len(), running.len()), (1, 3));
    assert_eq!(recovered[0].body["deliveries"], FAILED);
    for reply in running {
        ends_in_s(reply);
    }
    scene.release_jobs().await;
    assert_eq!(scene.receiver.hooks().len(), FAILED);
    // The first delivery sent again ends all others: the same call starts none of them twice.
    scene.fail(&settings, &endpoint, FAILED).await;
    scene.receiver.otherwise(Answer::status(410));
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], FAILED);
}

#[tokio::test]
async fn a_recovery_runs_until_its_job_has_ended_and_blocks_its_endpoint_alone() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let other = ada.endpoint(&format!("{}/other", scene.receiver.url()), "identifiers").await;
    scene.fail(&settings, &other, 1).await;
    scene.fail(&settings, &endpoint, 1).await;
    scene.hold_jobs().await;
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], 1);
    ends_in_s(recover(&settings, &endpoint).await);
    assert_eq!(recover(&settings, &other).await.expect(202).body["deliveries"], 1);
    scene.release_jobs().await;
    // The job has ended, though its delivery waits for another attempt.
    scene.receiver.otherwise(Answer::status(500));
    for _ in 0..2 {
        scene.fail(&settings, &endpoint, 1).await;
        assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], 1);
        scene.world.settle().await;
    }
    // Nothing is found, so nothing runs.
    for _ in 0..2 {
        assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], 0);
    }
}

#[tokio::test]
async fn a_recovery_that_is_held_up_blocks_the_next_for_a_minute_at_most_and_sends_nothing_twice() {
    const FAILED: usize = 40;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.fail(&settings, &endpoint, FAILED).await;
    scene.hold_jobs().await;
    recover(&settings, &endpoint).await.expect(202);
    let wait_s = ends_in_s(recover(&settings, &endpoint).await);
    scene.world.advance_s(wait_s).await;
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], FAILED);
    ends_in_s(recover(&settings, &endpoint).await);
    scene.release_jobs().await;
    let ids = scene.webhook_ids();
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (FAILED, FAILED));
    assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], 0);
}

#[tokio::test]
async fn toggling_and_recovering_in_a_loop_sends_an_event_once_an_hour_and_a_test_never() {
    const EVENTS: usize = 3;
    const TESTS: usize = 2;
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.receiver.otherwise(Answer::status(500));
    for number in 0..EVENTS {
        scene.event(&format!("c{number}")).await;
    }
    for _ in 0..TESTS {
        settings.post(&path(&endpoint, "test"), json!({})).await.expect(202);
    }
    scene.world.settle().await;
    let mut sent = EVENTS + TESTS;
    assert_eq!(scene.receiver.hooks().len(), sent);
    off_and_on(&settings, &endpoint).await;
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), sent, "switching off and on sends nothing");
    for recovered in [EVENTS, 0, 0, 0] {
        assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], recovered);
        scene.world.settle().await;
        sent += recovered;
        off_and_on(&settings, &endpoint).await;
        scene.world.advance_s(10 * 60).await;
        assert_eq!(scene.receiver.hooks().len(), sent);
    }
    // All but one succeed when they are sent again. A delivery that succeeded is not sent once more.
    scene.world.advance_s(HOUR_S - 4 * 600).await;
    scene.receiver.script((1..EVENTS).map(|_| Answer::status(204)));
    for (recovered, pause_s) in [(EVENTS, HOUR_S), (1, HOUR_S), (1, 0)] {
        assert_eq!(recover(&settings, &endpoint).await.expect(202).body["deliveries"], recovered);
        scene.world.settle().await;
        sent += recovered;
        off_and_on(&settings, &endpoint).await;
        assert_eq!(scene.receiver.hooks().len(), sent);
        scene.world.advance_s(pause_s).await;
    }
    let of_tests: Vec<Value> = ada
        .deliveries(&endpoint)
        .await
        .into_iter()
        .filter(|line| line["attempts"].as_array().unwrap().len() == 2)
        .collect();
    assert_eq!(of_tests.len(), TESTS, "one attempt, and a line that the endpoint was switched off");
    assert!(of_tests.iter().all(|line| line["status"] == "failed"));
    // A test event can be retried by hand.
    settings.post(&retry(&endpoint, &of_tests[0]), json!({})).await.expect(202);
    scene.world.settle().await;
    assert_eq!(scene.receiver.hooks().len(), sent + 1);
}

#[tokio::test]
async fn an_endpoint_is_sent_at_most_ten_test_events_a_minute() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let other = ada.endpoint(&format!("{}/other", scene.receiver.url()), "identifiers").await;
    scene.event("c1").await;
    let real = ada.deliveries(&endpoint).await.remove(0);
    scene.world.advance_to_next_minute().await;
    let began = scene.world.now().await;
    // A request that is refused for another reason does not count.
    settings.post(&path(&endpoint, "test"), json!({ "type": "none" })).await.refused_for("type");
    let calls = (0..25).map(|_| settings.post(&path(&endpoint, "test"), json!({})).into_future());
    let (accepted, limited): (Vec<Reply>, Vec<Reply>) =
        futures::future::join_all(calls).await.into_iter().partition(|reply| reply.status == 202);
    assert_eq!((accepted.len(), limited.len()), (10, 15));
    let waits = limited.into_iter().map(|reply| {
        let limited = reply.refused(429, "rate_limited");
        let seconds: u64 = limited.header("retry-after").unwrap().parse().unwrap();
        assert!(limited.header("ratelimit").unwrap().ends_with(&format!(", \"test-event\";r=0;t={seconds}")));
        assert!(limited.header("ratelimit-policy").unwrap().ends_with(", \"test-event\";q=10;w=60"));
        seconds
    });
    let wait_s = waits.max().unwrap();
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    let test = json!({ "id": accepted[0].body["delivery_id"] });
    settings.post(&retry(&endpoint, &test), json!({})).await.refused(429, "rate_limited");
    settings.post(&retry(&endpoint, &real), json!({})).await.expect(202);
    settings.post(&path(&other, "test"), json!({})).await.expect(202);
    assert_eq!(
        scene.world.now().await.timestamp() / 60,
        began.timestamp() / 60,
        "the requests have to fit into one minute"
    );
    scene.world.advance_s(wait_s).await;
    settings.post(&path(&endpoint, "test"), json!({})).await.expect(202);
    settings.post(&retry(&endpoint, &test), json!({})).await.expect(202);
    scene.world.settle().await;
    assert_eq!(scene.receiver.hooks().len(), 2 + 10 + 1 + 1 + 2);
}

/// A retry stalls before its commit, and another retry of the delivery is faster.
#[tokio::test]
async fn a_retry_of_a_test_event_that_loses_a_race_counts_once() {
    const LIMIT: usize = 10;
    /// The request's count, the workspace, the endpoint, the delivery, and the count of the test event.
    const BEFORE_THE_COMMIT: usize = 5;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.world.advance_to_next_minute().await;
    let send = || settings.post(&path(&endpoint, "test"), json!({}));
    let test = json!({ "id": send().await.expect(202).body["delivery_id"] });
    scene.world.settle().await;
    let stall = json!({ "function": "settings", "spared_calls": BEFORE_THE_COMMIT, "stalled_calls": 1 });
    scene.world.faults(stall).await;
    let slow = tokio::spawn(settings.post(&retry(&endpoint, &test), json!({})).into_future());
    scene.world.until_stalled().await;
    settings.post(&retry(&endpoint, &test), json!({})).await.expect(202);
    scene.world.faults(json!({ "stalled_calls": 0, "function": "" })).await;
    slow.await.unwrap().expect(202);
    for _ in 3..LIMIT {
        send().await.expect(202);
    }
    send().await.refused(429, "rate_limited");
}
