//! Endpoints that fail for days: the mails, the end, and what counts as a success or a failure.

use serde_json::{Value, json};

use crate::delivery::endpoint_states::{DAY_S, EndpointScene, HOUR_S, state};
use crate::settings::webhooks::retry::path;
use crate::world::{Answer, list};

#[tokio::test]
async fn an_endpoint_that_fails_for_five_days_over_three_events_is_switched_off_and_can_be_switched_on_again() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    let status = async || state(&settings, &endpoint).await["status"].clone();
    scene.receiver.otherwise(Answer::status(500));
    scene.event("c1").await;
    scene.world.advance_s(2 * DAY_S).await;
    scene.event("c2").await;
    scene.world.advance_s(3 * DAY_S - 2 * HOUR_S).await;
    scene.event("c3").await;
    scene.world.advance_s(60).await;
    assert_eq!(status().await, "enabled", "two hours too early");
    scene.world.advance_s(4 * HOUR_S + 600).await;
    let off = state(&settings, &endpoint).await;
    assert_eq!(off["status"], "disabled", "at the first attempt after five days");
    assert!(off["disabled_reason"].as_str().unwrap().contains("failed since"));
    let waiting = ada.deliveries(&endpoint).await.into_iter().filter(|delivery| delivery["status"] == "pending");
    assert_eq!(waiting.count(), 0);
    assert_eq!(scene.world.changes("endpoint.disabled").await.len(), 1);
    // The log gives the reason, for the last attempt and for later events.
    let why = format!("not sent: endpoint disabled: {}", off["disabled_reason"].as_str().unwrap());
    let ending = ada.deliveries(&endpoint).await.remove(0);
    let lines = list(ending["attempts"].clone());
    assert_eq!((&ending["status"], &lines[lines.len() - 1]["error"]), (&json!("failed"), &json!(why)));
    assert_eq!(lines[lines.len() - 2]["status_code"], 500);
    scene.event("c4").await;
    let missed = &ada.deliveries(&endpoint).await[0];
    assert_eq!((&missed["status"], &missed["attempts"][0]["error"]), (&json!("failed"), &json!(why)));
    // Switching on by hand restarts the time limit.
    let path = format!("/settings/webhooks/{}", endpoint.id);
    settings.patch(&path, json!({ "enabled": true })).await.expect(200);
    scene.event("c5").await;
    scene.world.advance_s(HOUR_S).await;
    assert_eq!(status().await, "enabled");
}

#[tokio::test]
async fn the_coach_is_mailed_once_after_a_day_of_failing_and_once_when_the_endpoint_is_off() {
    let scene = EndpointScene::new().await;
    let _ = scene.coach().await;
    scene.receiver.otherwise(Answer::status(500));
    for (client, days) in [("c1", 2), ("c2", 2), ("c3", 2)] {
        scene.event(client).await;
        scene.world.advance_s(days * DAY_S).await;
    }
    let mails = scene.world.mail().await;
    let subjects: Vec<&str> = mails.iter().map(|mail| mail["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["Webhooks to 127.0.0.1 fail", "Webhooks to 127.0.0.1 are switched off"]);
    assert!(mails.iter().all(|mail| mail["to"] == "ada@coaches.example" && !mail.to_string().contains("/hook")));
}

#[tokio::test]
async fn a_success_counts_whenever_the_deliverer_dies_and_costs_one_more_request_at_most() {
    let scene = EndpointScene::new().await;
    let _ = scene.coach().await;
    for spared_calls in 0..6 {
        scene.receiver.script([Answer::status(500)]);
        scene.event(&format!("c{spared_calls}")).await;
        assert!(scene.failing_since().await.is_string());
        let before = scene.receiver.hooks().len();
        let crash = json!({ "function": "deliver", "spared_calls": spared_calls, "crash_before_call": 1 });
        scene.world.faults(crash).await;
        scene.world.advance_s(400).await;
        scene.world.clear_faults().await;
        assert!(scene.failing_since().await.is_null(), "after {spared_calls} calls");
        assert!((1..=2).contains(&(scene.receiver.hooks().len() - before)), "after {spared_calls} calls");
    }
}

#[tokio::test]
async fn failures_of_test_events_neither_warn_nor_switch_an_endpoint_off() {
    const DAYS: usize = 7;
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.receiver.otherwise(Answer::status(500));
    for _ in 0..DAYS {
        settings.post(&path(&endpoint, "test"), json!({})).await.expect(202);
        scene.world.advance_s(DAY_S).await;
    }
    let shown = state(&settings, &endpoint).await;
    assert_eq!((&shown["status"], &shown["failing_since"]), (&json!("enabled"), &Value::Null));
    assert!(scene.world.mail().await.is_empty());
}
