//! Attempts in flight during a change: the endpoint that was read before may have another state when they end, and the
//! client may be erased.

use std::time::Duration;

use serde_json::json;

use crate::delivery::endpoint_states::EndpointScene;
use crate::feed::erasure::erased;
use crate::world::{Answer, Fact, list};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;
/// Longer than a cached read of an endpoint stays valid.
const SLOWLY: Duration = Duration::from_millis(2_500);

impl EndpointScene {
    /// Waits until more than `before` requests have reached the receiver.
    async fn until_requests(&self, before: usize) {
        while self.receiver.hooks().len() == before {
            self.world.now().await;
        }
    }
}

/// Returns a scene after `run`, whose receiver holds an answer until the next request. In one of ten scenes both
/// deliveries have the same lane, and the held attempt times out: then `run` begins again with a new scene.
async fn with_two_in_flight(run: impl AsyncFn(&EndpointScene)) -> EndpointScene {
    for _ in 0..6 {
        let scene = EndpointScene::in_real_time().await;
        let (ada, endpoint, _) = scene.coach().await;
        run(&scene).await;
        let deliveries = ada.deliveries(&endpoint).await;
        let mut attempts = deliveries.iter().flat_map(|delivery| list(delivery["attempts"].clone()));
        if attempts.all(|attempt| attempt["status_code"].is_u64()) {
            return scene;
        }
    }
    panic!("the receiver never had two requests at once");
}

#[tokio::test]
async fn an_attempt_in_flight_when_its_endpoint_ends_is_the_last() {
    for (ending, reason) in [
        ("off", "not sent: endpoint disabled"),
        ("deleted", "not sent: endpoint deleted"),
        ("gone", "not sent: endpoint gone"),
    ] {
        let scene = EndpointScene::in_real_time().await;
        let (ada, endpoint, settings) = scene.coach().await;
        let path = format!("/settings/webhooks/{}", endpoint.id);
        scene.receiver.script([Answer::status(500).after(SLOWLY)]);
        scene.receiver.otherwise(Answer::status(410));
        scene.world.publish([Fact::client("ada", "c1")]).await;
        scene.until_requests(0).await;
        match ending {
            "off" => drop(settings.patch(&path, json!({ "enabled": false })).await.expect(200)),
            "deleted" => drop(settings.delete(&path).await.expect(200)),
            _ => scene.event("c2").await,
        }
        scene.world.settle().await;
        if ending == "deleted" {
            let stored = scene.world.delivery_items().await;
            let texts: Vec<String> = stored.iter().map(ToString::to_string).collect();
            assert!(texts.len() == 1 && texts[0].contains("\"failed\"") && texts[0].contains(reason), "{texts:?}");
            continue;
        }
        let deliveries = ada.deliveries(&endpoint).await;
        let slow = deliveries.iter().find(|delivery| delivery["attempts"][0]["status_code"] == 500).unwrap();
        let lines = list(slow["attempts"].clone());
        assert_eq!((&slow["status"], lines.len()), (&json!("failed"), 2), "{ending}: {slow}");
        assert_eq!(lines[1]["error"], reason);
        assert!(slow["next_attempt_at"].is_null());
    }
}

#[tokio::test]
async fn a_slow_success_counts_although_another_attempt_has_failed_meanwhile() {
    let scene = with_two_in_flight(async |scene| {
        let fails = Answer::status(503).header("retry-after", "600");
        scene.receiver.script([Answer::status(204).after_another(SLOWLY), fails]);
        scene.world.publish([Fact::client("ada", "slow")]).await;
        scene.until_requests(0).await;
        scene.world.publish([Fact::client("ada", "fails")]).await;
        scene.world.settle().await;
    })
    .await;
    assert_eq!(scene.receiver.hooks().len(), 2);
    assert!(scene.failing_since().await.is_null());
    // The retry succeeds by itself.
    scene.world.advance_s(DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), 3);
}

#[tokio::test]
async fn a_slow_failure_counts_although_another_attempt_has_succeeded_meanwhile() {
    let scene = with_two_in_flight(async |scene| {
        scene.receiver.script([Answer::status(500), Answer::status(500).after_another(SLOWLY), Answer::status(204)]);
        scene.event("fails").await;
        let since = scene.failing_since().await;
        assert!(since.is_string());
        // Its retry fails slowly, while another event succeeds.
        let retried = scene.world.advance_s(10);
        let taken = async {
            scene.until_requests(1).await;
            scene.world.publish([Fact::client("ada", "taken")]).await;
        };
        futures::future::join(retried, taken).await;
        scene.world.settle().await;
        assert_ne!(scene.failing_since().await, since);
    })
    .await;
    assert_eq!(scene.receiver.hooks().len(), 3);
    assert!(scene.failing_since().await.is_string());
}

#[tokio::test]
async fn the_log_names_the_sent_event_of_a_client_erased_meanwhile_and_nothing_else() {
    for (status, ending) in [(200, "delivered"), (500, "failed")] {
        let scene = EndpointScene::in_real_time().await;
        let (ada, endpoint, _) = scene.coach().await;
        scene.receiver.script([Answer::status(status).body("Hello Gwendolyn").after(SLOWLY)]);
        scene.world.publish([Fact::client("ada", "c1")]).await;
        scene.until_requests(0).await;
        scene.world.publish([erased("c1")]).await;
        scene.world.advance_s(DAY_S).await;
        assert_eq!(scene.receiver.hooks().len(), 1, "it is the last");
        let delivery = ada.deliveries(&endpoint).await.remove(0);
        let lines = list(delivery["attempts"].clone());
        assert_eq!((&delivery["status"], &lines[0]["status_code"]), (&json!(ending), &json!(status)), "{delivery}");
        assert!(lines[0]["duration_ms"].as_u64() >= Some(2_000) && lines[0]["response_excerpt"].is_null());
        let errors: Vec<_> = lines[1..].iter().map(|line| line["error"].as_str().unwrap()).collect();
        let expected = if status == 200 { vec![] } else { vec!["not sent: client erased"] };
        assert_eq!(errors, expected);
    }
}
