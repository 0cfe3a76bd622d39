//! How an endpoint's deliveries go: `failing_since`, `disabled_reason_code`, and the counts of the last 24 hours.

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::settings::webhooks::activity::begin_hour;
use crate::settings::webhooks::retry::path;
use crate::world::{Answer, Caller, Endpoint, Fact, time};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;

/// The endpoint as it is read, which is as it is listed.
async fn state(settings: &Caller, endpoint: &Endpoint) -> Value {
    let read = settings.get(&format!("/settings/webhooks/{}", endpoint.id)).await.expect(200).body;
    let listed = settings.get("/settings/webhooks").await.expect(200).body["endpoints"].clone();
    assert!(listed.as_array().unwrap().contains(&read), "{read} in {listed}");
    read
}

fn counts(delivered: usize, failed: usize, pending: usize) -> Value {
    json!({ "delivered": delivered, "failed": failed, "pending": pending })
}

#[tokio::test]
async fn an_endpoint_counts_what_ended_in_the_last_24_hours_and_what_waits() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let other = ada.endpoint(&format!("{}/other", scene.receiver.url()), "identifiers").await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    begin_hour(&scene.world).await;
    assert_eq!(state(&settings, &endpoint).await["last_24h"], counts(0, 0, 0));
    // The first is delivered, the second waits. A late event counts when it comes.
    let long_ago = scene.world.timestamp_in(-7 * 24 * 3_600).await;
    scene
        .world
        .apply([Fact::client("ada", "c1").with("occurred_at", long_ago.clone()).with("created_at", long_ago)])
        .await;
    scene.receiver.otherwise(Answer::status(500));
    scene.event("c2").await;
    assert_eq!(state(&settings, &endpoint).await["last_24h"], counts(1, 0, 1));
    assert_eq!(state(&settings, &other).await["last_24h"], counts(1, 0, 1));
    settings.post(&path(&endpoint, "test"), json!({})).await.expect(202);
    scene.world.settle().await;
    assert_eq!(state(&settings, &endpoint).await["last_24h"], counts(1, 0, 2), "a test counts");
    let off = settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    assert_eq!(off.body["last_24h"], counts(1, 2, 0), "what waited has ended");
    scene.event("missed").await;
    assert_eq!(state(&settings, &endpoint).await["last_24h"], counts(1, 3, 0), "what is not sent has failed");
    scene.world.advance_s(23 * HOUR_S).await;
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    scene.receiver.otherwise(Answer::status(204));
    scene.event("c3").await;
    assert_eq!(state(&settings, &endpoint).await["last_24h"], counts(2, 3, 0));
    scene.world.advance_s(HOUR_S).await;
    assert_eq!(state(&settings, &endpoint).await["last_24h"], counts(1, 0, 0));
    assert_eq!(state(&settings, &other).await["last_24h"], counts(1, 0, 2), "what waits counts, however old it is");
    let rotated = settings.post(&path(&endpoint, "rotate-secret"), json!({})).await.expect(200);
    assert_eq!(rotated.body["last_24h"], counts(1, 0, 0));
    assert_eq!(settings.delete(&at).await.expect(200).body["last_24h"], counts(1, 0, 0));
}

#[tokio::test]
async fn an_endpoint_names_the_start_of_its_failures_and_why_it_is_disabled() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let at = format!("/settings/webhooks/{}", endpoint.id);
    let shown = async || {
        let state = state(&settings, &endpoint).await;
        (
            state["status"].as_str().unwrap().to_owned(),
            state["disabled_reason_code"].clone(),
            state["failing_since"].clone(),
        )
    };
    assert_eq!(shown().await, ("enabled".to_owned(), Value::Null, Value::Null));
    scene.receiver.otherwise(Answer::status(500));
    let began = scene.world.now().await;
    scene.event("c1").await;
    let failing_since = shown().await.2;
    let lag = time(&failing_since) - began;
    assert!(lag >= chrono::TimeDelta::seconds(-1) && lag <= chrono::TimeDelta::minutes(1), "{failing_since}");
    assert_eq!(failing_since, scene.failing_since().await);
    // A success ends the failures.
    scene.receiver.otherwise(Answer::status(204));
    scene.world.advance_s(10).await;
    assert_eq!(shown().await, ("enabled".to_owned(), Value::Null, Value::Null));
    let off = settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    assert_eq!(off.body["disabled_reason_code"], "by_hand");
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    scene.receiver.otherwise(Answer::status(500));
    for number in 2..8 {
        scene.event(&format!("c{number}")).await;
        scene.world.advance_s(DAY_S).await;
    }
    let state = settings.get(&at).await.expect(200).body;
    assert_eq!((&state["status"], &state["disabled_reason_code"]), (&json!("disabled"), &json!("failing")));
    let [failing_since, disabled_at] = ["failing_since", "disabled_at"].map(|name| time(&state[name]));
    assert!(disabled_at - failing_since >= chrono::TimeDelta::days(5), "{state}");
    let on = settings.patch(&at, json!({ "enabled": true })).await.expect(200).body;
    assert_eq!((&on["disabled_reason_code"], &on["failing_since"]), (&Value::Null, &Value::Null));
    scene.receiver.otherwise(Answer::status(410));
    scene.event("gone").await;
    let gone = settings.get(&at).await.expect(200).body;
    assert_eq!((&gone["status"], &gone["disabled_reason_code"]), (&json!("gone"), &json!("gone")));
}
