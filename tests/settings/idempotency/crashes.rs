//! POSTs of the settings under an idempotency key that die or meet a fault at each of their calls in turn. Each takes
//! effect once, and a repeat learns its result.

use serde_json::{Value, json};

use crate::settings::idempotency::{Counts, RECOVER, Scene, effect, posts};
use crate::world::{Answer, Caller, Fact, LAPSED_S, SDK_ATTEMPTS, list};

const HOUR_S: u64 = 3_600;
/// The count, the workspace, the claim.
const CALLS_TO_CLAIM: usize = 3;
/// More than any request makes.
const MOST_CALLS: usize = 16;

/// Plays each route in a scene of its own. The scenes run in parallel, since they mostly wait.
async fn for_all_posts(play: impl AsyncFn(Scene, &'static str)) {
    futures::future::join_all(posts().into_iter().map(async |path| play(Scene::start().await, path).await)).await;
}

/// A fault meets a request at each of its calls in turn, until none is left. Returns the number of its calls.
async fn fault_at_each_call(scene: &Scene, path: &'static str, fault: &str, times: usize) -> usize {
    for spared_calls in 0..MOST_CALLS {
        let prepared = scene.prepare(path).await;
        scene.world.faults(json!({ "function": "settings", "spared_calls": spared_calls, fault: times })).await;
        let reply = prepared.send().await;
        let met = scene.world.remaining_faults().await[fault].as_u64() != Some(times as u64);
        scene.world.clear_faults().await;
        let reply = if reply.status < 300 { reply } else { scene.world.answered(async || prepared.send().await).await };
        scene.assert_done_once(&prepared, &reply).await;
        if !met {
            return spared_calls;
        }
    }
    panic!("POST {path} makes more than {MOST_CALLS} calls");
}

#[tokio::test]
async fn a_post_that_dies_before_any_of_its_calls_takes_effect_once() {
    for_all_posts(async |scene, path| {
        let calls = fault_at_each_call(&scene, path, "crash_before_call", 1).await;
        assert!(calls > CALLS_TO_CLAIM, "{path}: {calls}");
    })
    .await;
}

#[tokio::test]
async fn a_post_that_dies_after_its_commit_is_replayed_at_once() {
    let scene = Scene::start().await;
    for path in posts().into_iter().filter(|path| *path != RECOVER) {
        let prepared = scene.prepare(path).await;
        scene.world.faults(json!({ "function": "settings", "crash_after_commit": 1 })).await;
        prepared.send().await.expect(500);
        scene.world.clear_faults().await;
        let replay = prepared.send().await;
        assert!(replay.is_replay(), "{path}: {}", replay.text);
        scene.assert_done_once(&prepared, &replay).await;
    }
}

#[tokio::test]
async fn a_recovery_that_dies_after_a_commit_is_continued_and_sends_nothing_twice() {
    let scene = Scene::start().await;
    let prepared = scene.prepare(RECOVER).await;
    scene.world.faults(json!({ "function": "settings", "crash_after_commit": 1 })).await;
    prepared.send().await.expect(500);
    scene.world.clear_faults().await;
    prepared.send().await.refused(409, "idempotency_in_progress");
    scene.world.advance_s(LAPSED_S).await;
    let continued = prepared.send().await.expect(202);
    assert_eq!((&continued.body, continued.is_replay()), (&json!({ "deliveries": 0 }), false));
    scene.assert_done_once(&prepared, &continued).await;
}

#[tokio::test]
async fn a_recovery_that_dies_is_continued_as_it_began_however_late_its_repeat_comes() {
    let scene = Scene::start().await;
    let (endpoint, _) = scene.failed_delivery().await;
    let at = format!("/settings/webhooks/{endpoint}");
    let recover = async |settings: &Caller| {
        let body = json!({ "since": "2026-01-01T00:00:00Z" });
        settings.post(&format!("{at}/recover"), body).idempotent("one").await
    };
    scene.world.faults(json!({ "function": "settings", "crash_after_commit": 1 })).await;
    recover(&scene.settings).await.expect(500);
    scene.world.clear_faults().await;
    let line =
        async |settings: &Caller| settings.get("/settings/audit?limit=1").await.expect(200).body["data"][0].clone();
    let begun = line(&scene.settings).await;
    assert_eq!((&begun["action"], &begun["detail"]["deliveries"]), (&json!("deliveries.recovered"), &Value::Null));
    // The event fails once more, and another one for the first time.
    scene.receiver.otherwise(Answer::status(500));
    scene.world.settle().await;
    scene.world.apply([Fact::client("ada", "later")]).await;
    for enabled in [false, true] {
        scene.settings.patch(&at, json!({ "enabled": enabled })).await.expect(200);
    }
    scene.receiver.otherwise(Answer::status(204));
    scene.world.advance_s(2 * HOUR_S).await;
    let settings = scene.world.coach("ada").await.settings().await;
    let sent = scene.receiver.hooks().len();
    assert_eq!(recover(&settings).await.expect(202).body, json!({ "deliveries": 0 }));
    scene.world.settle().await;
    assert_eq!(scene.receiver.hooks().len(), sent, "a repeat sends nothing that failed after the first request");
    let ended = list(settings.get("/settings/audit").await.expect(200).body["data"].clone());
    let recoveries: Vec<&Value> = ended.iter().filter(|line| line["action"] == "deliveries.recovered").collect();
    assert_eq!((recoveries.len(), &recoveries[0]["at"]), (1, &begun["at"]));
    assert_eq!(recoveries[0]["detail"]["deliveries"], 0);
}

/// A fault meets each call of each POST. The repeat finds or repairs what the SDK does not absorb.
async fn fault_at_each_call_of_all_posts(fault: &'static str, times: usize) {
    for_all_posts(async |scene, path| {
        fault_at_each_call(&scene, path, fault, times).await;
    })
    .await;
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_takes_effect_once() {
    fault_at_each_call_of_all_posts("store_lost_answers", 1).await;
}

#[tokio::test]
async fn a_call_whose_answers_are_all_lost_takes_effect_once() {
    fault_at_each_call_of_all_posts("store_lost_answers", SDK_ATTEMPTS).await;
}

#[tokio::test]
async fn a_call_that_is_refused_takes_effect_once() {
    fault_at_each_call_of_all_posts("store_failures", 1).await;
}

#[tokio::test]
async fn a_call_that_is_refused_in_all_its_tries_takes_effect_once() {
    fault_at_each_call_of_all_posts("store_failures", SDK_ATTEMPTS).await;
}

#[tokio::test]
async fn a_post_in_flight_refuses_its_repeat_and_changes_nothing_once_it_has_lost_its_claim() {
    let scene = Scene::start().await;
    for path in posts() {
        let prepared = scene.prepare(path).await;
        scene.world.faults(json!({ "function": "settings", "spared_calls": CALLS_TO_CLAIM, "stalled_calls": 1 })).await;
        let stalled = tokio::spawn({
            let call = prepared.call.clone();
            async move { call.await }
        });
        scene.world.until_stalled().await;
        let busy = prepared.send().await.refused(409, "idempotency_in_progress");
        assert_eq!(busy.header("retry-after"), Some("5"));
        let other = prepared.call.clone().json(&json!({ "name": "Other" }));
        other.await.refused(409, "idempotency_payload_mismatch");
        assert_eq!(scene.effect_since(prepared.before).await, Counts::default(), "{path}");
        scene.world.advance_s(LAPSED_S).await;
        let reply = prepared.send().await;
        scene.world.clear_faults().await;
        let late = stalled.await.unwrap();
        assert!(late.status >= 400 || late.is_replay(), "{path}: {}", late.text);
        scene.assert_done_once(&prepared, &reply).await;
        assert_eq!(scene.effect_since(prepared.before).await, effect(path), "{path}");
    }
}
