//! CRM writes that die or meet a fault at each of their calls in turn. Each write is done once and emitted once, and a
//! repeat of the request returns its result.

use serde_json::{Value, json};

use crate::crm::idempotency::{CrmScene, WRITES, Write};
use crate::world::{LAPSED_S, Reply, SDK_ATTEMPTS};

/// The key, the claim, the transaction.
const FEWEST_CALLS: usize = 3;
/// More than any write makes, retries included.
const MOST_CALLS: usize = 40;
/// More than the calls of a request, repeats included.
const MANY_FAULTS: usize = 40;

/// Plays each write in a scene of its own. The scenes run in parallel, since they mostly wait.
async fn for_all_writes(play: impl AsyncFn(CrmScene, Write)) {
    futures::future::join_all(WRITES.map(async |write| play(CrmScene::start().await, write).await)).await;
}

async fn faults(scene: &CrmScene, write: Write, spared_calls: usize, fault: &str, times: usize) {
    scene.world.faults(json!({ "function": write.function(), "spared_calls": spared_calls, fault: times })).await;
}

/// A fault meets a request at each of its calls in turn, until none is left. Checks the answer under the fault and the
/// answer of the repeat.
async fn fault_at_each_call(
    scene: &CrmScene,
    write: Write,
    fault: &str,
    times: usize,
    check_answer: impl Fn(&Reply),
) -> usize {
    for spared_calls in 0..MOST_CALLS {
        let prepared = scene.prepare(write).await;
        faults(scene, write, spared_calls, fault, times).await;
        let reply = prepared.send().await;
        let met = scene.world.remaining_faults().await[fault].as_u64() != Some(times as u64);
        scene.world.clear_faults().await;
        if !met {
            scene.assert_done_once(&prepared, &reply).await;
            return spared_calls;
        }
        if reply.status >= 300 {
            check_answer(&reply);
            let found = scene.world.answered(async || prepared.send().await).await;
            scene.assert_done_once(&prepared, &found).await;
        } else {
            scene.assert_done_once(&prepared, &reply).await;
        }
    }
    panic!("{write:?} makes more than {MOST_CALLS} calls");
}

#[tokio::test]
async fn a_write_that_dies_before_any_of_its_calls_is_completed_by_the_retry() {
    for_all_writes(async |scene, write| {
        let points =
            fault_at_each_call(&scene, write, "crash_before_call", 1, |reply| assert_eq!(reply.status, 500)).await;
        assert!(points >= FEWEST_CALLS, "{write:?}: {points}");
    })
    .await;
}

#[tokio::test]
async fn a_write_that_dies_after_its_commit_is_replayed_at_once() {
    for_all_writes(async |scene, write| {
        let prepared = scene.prepare(write).await;
        faults(&scene, write, 0, "crash_after_commit", 1).await;
        prepared.send().await.expect(500);
        scene.world.clear_faults().await;
        let replay = prepared.send().await;
        assert!(replay.is_replay(), "{}", replay.text);
        scene.assert_done_once(&prepared, &replay).await;
    })
    .await;
}

#[tokio::test]
async fn a_single_lost_or_refused_call_is_absorbed() {
    for_all_writes(async |scene, write| {
        for fault in ["store_lost_answers", "store_failures"] {
            fault_at_each_call(&scene, write, fault, 1, |reply| panic!("{write:?} {fault}: {}", reply.text)).await;
        }
    })
    .await;
}

/// Asserts a 503: the write may be done or not.
fn assert_unconfirmed(reply: &Reply) {
    let reply = reply.clone().refused(503, "unconfirmed");
    assert_eq!(reply.header("retry-after"), Some("5"));
    assert!(!reply.is_replay());
}

#[tokio::test]
async fn if_the_store_does_not_answer_the_retry_finds_the_result() {
    for_all_writes(async |scene, write| {
        for fault in ["store_lost_answers", "store_failures"] {
            fault_at_each_call(&scene, write, fault, SDK_ATTEMPTS, assert_unconfirmed).await;
        }
    })
    .await;
}

/// A fault lasts as long as the request: the repeat finds out whether the write was done.
async fn assert_retry_finds_result(scene: &CrmScene, write: Write, spared_calls: usize, fault: &str) {
    let prepared = scene.prepare(write).await;
    faults(scene, write, spared_calls, fault, MANY_FAULTS).await;
    assert_unconfirmed(&prepared.send().await);
    scene.world.clear_faults().await;
    let found = scene.world.answered(async || prepared.send().await).await;
    scene.assert_done_once(&prepared, &found).await;
}

#[tokio::test]
async fn if_the_store_stays_unavailable_the_claim_lapses() {
    for_all_writes(async |scene, write| {
        for spared_calls in 0..FEWEST_CALLS {
            assert_retry_finds_result(&scene, write, spared_calls, "store_lost_answers").await;
        }
    })
    .await;
}

#[tokio::test]
async fn conflicts_are_retried_and_then_answered_as_unconfirmed() {
    for_all_writes(async |scene, write| {
        let prepared = scene.prepare(write).await;
        faults(&scene, write, 0, "store_conflicts", 4).await;
        let reply = prepared.send().await;
        scene.world.clear_faults().await;
        scene.assert_done_once(&prepared, &reply).await;
        assert_retry_finds_result(&scene, write, FEWEST_CALLS - 1, "store_conflicts").await;
    })
    .await;
}

#[tokio::test]
async fn a_write_in_flight_refuses_its_repeat_and_another_payload() {
    let scene = CrmScene::start().await;
    let prepared = scene.prepare(Write::CreateContact).await;
    faults(&scene, Write::CreateContact, FEWEST_CALLS, "stalled_calls", 1).await;
    let stalled = tokio::spawn({
        let call = prepared.call.clone();
        async move { call.await }
    });
    scene.world.until_stalled().await;
    let busy = prepared.send().await.refused(409, "idempotency_in_progress");
    assert_eq!(busy.header("retry-after"), Some("5"));
    let other = prepared.call.clone().json(&json!({ "name": "Other", "email": "other@example.com" }));
    other.await.refused(409, "idempotency_payload_mismatch");
    // A repeat takes over once the lease has lapsed. The first request can no longer change anything.
    scene.world.advance_s(LAPSED_S).await;
    let reply = prepared.send().await;
    scene.assert_done_once(&prepared, &reply).await;
    scene.world.clear_faults().await;
    let late = stalled.await.unwrap();
    assert_ne!(late.status, 201, "{}", late.text);
    scene.assert_done_once(&prepared, &reply).await;
    let contacts: Vec<Value> = scene.world.items("crm", "COACH#").await;
    let made = contacts.iter().filter(|item| item["email"]["S"].as_str().is_some_and(|email| email.starts_with('c')));
    assert_eq!(made.count(), 1);
}
