//! Writes that die, stall or meet a fault at each of their calls in turn. Each takes effect once, and a repeat of the
//! request learns its result.

use std::future::IntoFuture;

use serde_json::json;

use crate::idempotency::rows::{CREATE, ROWS, Row, Scene};
use crate::world::{LAPSED_S, Reply, SDK_ATTEMPTS, list};

/// The key or the session, and the claim.
const CALLS_TO_CLAIM: usize = 3;
/// More than any write makes, retries included.
const MOST_CALLS: usize = 40;
/// More than the calls of a request, repeats included.
const MANY_FAULTS: usize = 40;
/// Rows that share a world.
const ROWS_OF_A_SCENE: usize = 2;

/// Plays each row. The scenes run in parallel, since they mostly wait. Creations of clients meet the same faults in
/// `partner::clients::create::crashes`, which also opens what they mail and answer.
async fn for_all_rows(play: impl AsyncFn(&Scene, &'static Row)) {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| row.route != CREATE).collect();
    let plays = rows.chunks(ROWS_OF_A_SCENE).map(async |rows| {
        let scene = Scene::start().await;
        for row in rows {
            play(&scene, row).await;
        }
    });
    futures::future::join_all(plays).await;
}

async fn faults(scene: &Scene, row: &Row, spared_calls: usize, fault: &str, times: usize) {
    scene.world.faults(json!({ "function": row.function(), "spared_calls": spared_calls, fault: times })).await;
}

/// A fault meets a request at each of its calls in turn, until none is left. Checks the answer under the fault and the
/// answer of the repeat. Returns the number of calls.
async fn fault_at_each_call(
    scene: &Scene,
    row: &'static Row,
    fault: &str,
    times: usize,
    check_answer: impl Fn(&Reply),
) -> usize {
    for spared_calls in 0..MOST_CALLS {
        let prepared = scene.prepare(row).await;
        faults(scene, row, spared_calls, fault, times).await;
        let reply = prepared.send().await;
        let met = scene.world.remaining_faults().await[fault].as_u64() != Some(times as u64);
        scene.world.clear_faults().await;
        let reply = if reply.status < 300 {
            reply
        } else {
            check_answer(&reply);
            scene.world.answered(async || prepared.send().await).await
        };
        scene.assert_done_once(&prepared, &reply).await;
        if !met {
            return spared_calls;
        }
    }
    panic!("{} makes more than {MOST_CALLS} calls", row.route);
}

#[tokio::test]
async fn a_write_that_dies_before_any_of_its_calls_is_completed_by_the_repeat() {
    for_all_rows(async |scene, row| {
        let died = |reply: &Reply| assert_eq!(reply.status, 500, "{}: {}", row.route, reply.text);
        let calls = fault_at_each_call(scene, row, "crash_before_call", 1, died).await;
        assert!(calls >= row.fewest_calls(), "{}: {calls}", row.route);
    })
    .await;
}

#[tokio::test]
async fn a_write_that_dies_after_its_commit_is_replayed_at_once_or_continued_from_its_stage() {
    let scene = Scene::start().await;
    for row in ROWS {
        let prepared = scene.prepare(row).await;
        faults(&scene, row, 0, "crash_after_commit", 1).await;
        prepared.send().await.expect(500);
        scene.world.clear_faults().await;
        let mut repeat = prepared.send().await;
        if row.has_stages {
            repeat.assert_in_progress();
            scene.world.advance_s(LAPSED_S).await;
            repeat = prepared.send().await;
        }
        assert_eq!(repeat.is_replay(), !row.has_stages, "{}: {}", row.route, repeat.text);
        scene.assert_done_once(&prepared, &repeat).await;
    }
}

#[tokio::test]
async fn a_single_lost_or_refused_call_is_absorbed() {
    for_all_rows(async |scene, row| {
        for fault in ["store_lost_answers", "store_failures"] {
            let absorbed = |reply: &Reply| panic!("{} {fault}: {}", row.route, reply.text);
            fault_at_each_call(scene, row, fault, 1, absorbed).await;
        }
    })
    .await;
}

#[tokio::test]
async fn if_the_store_does_not_answer_the_repeat_finds_the_result() {
    for_all_rows(async |scene, row| {
        for fault in ["store_lost_answers", "store_failures"] {
            fault_at_each_call(scene, row, fault, SDK_ATTEMPTS, |reply| row.assert_unanswered(reply)).await;
        }
    })
    .await;
}

/// A fault lasts as long as the request: the repeat finds out whether the write was done.
async fn assert_repeat_finds_result(scene: &Scene, row: &'static Row, spared_calls: usize, fault: &str) {
    let prepared = scene.prepare(row).await;
    faults(scene, row, spared_calls, fault, MANY_FAULTS).await;
    row.assert_unanswered(&prepared.send().await);
    scene.world.clear_faults().await;
    let found = scene.world.answered(async || prepared.send().await).await;
    scene.assert_done_once(&prepared, &found).await;
}

#[tokio::test]
async fn if_the_store_stays_unavailable_the_claim_lapses() {
    for_all_rows(async |scene, row| {
        for spared_calls in 0..CALLS_TO_CLAIM {
            assert_repeat_finds_result(scene, row, spared_calls, "store_lost_answers").await;
        }
    })
    .await;
}

#[tokio::test]
async fn conflicts_are_retried_and_then_answered_as_unanswered() {
    for_all_rows(async |scene, row| {
        let prepared = scene.prepare(row).await;
        faults(scene, row, 0, "store_conflicts", 4).await;
        let reply = prepared.send().await;
        scene.world.clear_faults().await;
        scene.assert_done_once(&prepared, &reply).await;
        assert_repeat_finds_result(scene, row, CALLS_TO_CLAIM - 1, "store_conflicts").await;
    })
    .await;
}

/// Calls of a request before its first transaction, or before the work of a row that has none.
async fn calls_to_transaction(scene: &Scene, row: &'static Row) -> usize {
    let prepared = scene.prepare(row).await;
    assert!(prepared.send().await.status < 300);
    let calls = list(scene.world.calls(row.function()).await[0]["calls"].clone());
    let transaction = calls.iter().position(|call| call["operation"] == "TransactWriteItems");
    transaction.unwrap_or(CALLS_TO_CLAIM)
}

#[tokio::test]
async fn a_write_in_flight_refuses_its_repeat_and_changes_nothing_once_it_has_lost_its_claim() {
    let scene = Scene::start().await;
    for row in ROWS {
        let spared_calls = calls_to_transaction(&scene, row).await;
        let prepared = scene.prepare(row).await;
        faults(&scene, row, spared_calls, "stalled_calls", 1).await;
        let stalled = tokio::spawn(prepared.call.clone().into_future());
        scene.world.until_stalled().await;
        prepared.send().await.assert_in_progress();
        let other = prepared.send_body(&json!({ "name": "Other", "email": "other@example.com" }).to_string()).await;
        if row.is_partner() {
            other.assert_in_progress();
        } else {
            other.refused(409, "idempotency_payload_mismatch");
        }
        scene.assert_no_effect(&prepared).await;
        // A repeat takes over once the lease has lapsed. The first request can no longer change anything.
        scene.world.advance_s(LAPSED_S).await;
        let reply = prepared.send().await;
        scene.assert_done_once(&prepared, &reply).await;
        scene.world.clear_faults().await;
        let late = stalled.await.unwrap();
        assert!(late.status >= 400 || late.is_replay(), "{}: {}", row.route, late.text);
        scene.assert_done_once(&prepared, &reply).await;
    }
}

#[tokio::test]
async fn an_idempotency_key_of_unconfirmed_work_accepts_its_payload_only() {
    let scene = Scene::start().await;
    let world = &scene.world;
    let body = |name: &str, key: &str| json!({ "name": name, "email": format!("{key}@example.com") });
    let send = async |name: &str, key: &str| scene.crm.post("/v1/crm/contacts", body(name, key)).idempotent(key).await;
    let mut unconfirmed = 0;
    for spared_calls in 0..6 {
        let key = format!("key-{spared_calls}");
        let claims = world.table("idempotency").await.len();
        world
            .faults(json!({ "function": "crm-contacts", "spared_calls": spared_calls, "store_conflicts": 1_000 }))
            .await;
        let first = send("Lee", &key).await;
        world.clear_faults().await;
        if first.status == 201 || world.table("idempotency").await.len() == claims {
            continue;
        }
        first.refused(503, "unconfirmed");
        unconfirmed += 1;
        send("Kim", &key).await.refused(409, "idempotency_payload_mismatch");
        world.advance_s(LAPSED_S).await;
        send("Kim", &key).await.refused(409, "idempotency_payload_mismatch");
        assert_eq!(send("Lee", &key).await.expect(201).body["contact"]["name"], "Lee");
    }
    assert!(unconfirmed > 0);
}
