//! A recovery commits more than once: a repeat after a crash continues it.

use serde_json::{Value, json};

use crate::idempotency::rows::{RECOVER, Scene, row_of};
use crate::world::{Answer, Caller, Fact, LAPSED_S, list};

const HOUR_S: u64 = 3_600;

#[tokio::test]
async fn a_recovery_that_dies_after_a_commit_is_continued_and_sends_nothing_twice() {
    let scene = Scene::start().await;
    let prepared = scene.prepare(row_of(RECOVER)).await;
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
    let (at, _) = scene.failed_delivery().await;
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
