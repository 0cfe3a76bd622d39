//! Deliveries by hand: test events and retries. Also the replacement of secrets.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::world::{ATTEMPTS, Answer, Endpoint, list};

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;

impl EndpointScene {
    pub(crate) fn webhook_ids(&self) -> Vec<String> {
        self.receiver.hooks().iter().map(|hook| hook.header("webhook-id").to_owned()).collect()
    }
}

pub(crate) fn path(endpoint: &Endpoint, what: &str) -> String {
    format!("/settings/webhooks/{}/{what}", endpoint.id)
}

pub(crate) fn retry(endpoint: &Endpoint, delivery: &Value) -> String {
    path(endpoint, &format!("deliveries/{}/retry", delivery["id"].as_str().unwrap()))
}

#[tokio::test]
async fn a_test_event_arrives_signed_and_is_in_the_log() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    for (call, expected) in [
        (settings.call("POST", &path(&endpoint, "test")), "new_client"),
        // An event without subscription: an automation's step would send it.
        (settings.post(&path(&endpoint, "test"), json!({ "type": "daily_log_inactivity" })), "daily_log_inactivity"),
    ] {
        let accepted = call.await.expect(202);
        scene.world.settle().await;
        let hook = scene.receiver.hooks().pop().unwrap();
        assert!(hook.verify(&endpoint.secret));
        assert_eq!(hook.header("x-service-event"), expected);
        let delivery = &ada.deliveries(&endpoint).await[0];
        assert_eq!((&delivery["id"], &delivery["status"]), (&accepted.body["delivery_id"], &json!("delivered")));
    }
    settings.post(&path(&endpoint, "test"), json!({ "kind": "x" })).await.refused_for("kind");
}

#[tokio::test]
async fn a_post_that_takes_no_fields_refuses_them() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.event("c1").await;
    let delivery = ada.deliveries(&endpoint).await.remove(0);
    let key = ada.new_key(json!({ "name": "EMR", "scope": "partner" })).await;
    let rotate = format!("/settings/keys/{}/rotate", key.str("id"));
    for post in [rotate, path(&endpoint, "rotate-secret"), retry(&endpoint, &delivery)] {
        settings.post(&post, json!({ "expires_at": null })).await.refused_for("expires_at");
    }
    let listed = settings.get("/settings/keys?status=live").await.expect(200);
    assert_eq!(list(listed.body["keys"].clone()).len(), 1, "no key was rotated: {}", listed.text);
    scene.world.settle().await;
    assert_eq!(scene.webhook_ids().len(), 1, "nothing was sent again");
}

#[tokio::test]
async fn a_retry_is_immediate_with_the_same_id_and_a_new_chain() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.receiver.script((0..ATTEMPTS).map(|_| Answer::status(500)));
    scene.event("c1").await;
    scene.world.advance_s(2 * DAY_S).await;
    let failed = ada.deliveries(&endpoint).await.remove(0);
    assert_eq!(failed["status"], "failed");
    settings.post(&retry(&endpoint, &failed), json!({})).await.expect(202);
    scene.world.settle().await;
    let again = ada.deliveries(&endpoint).await.remove(0);
    assert_eq!((&again["status"], &again["webhook_id"]), (&json!("delivered"), &failed["webhook_id"]));
    assert_eq!(again["attempts"].as_array().unwrap().len(), ATTEMPTS + 1);
    let ids = scene.webhook_ids();
    assert!(ids.iter().all(|id| *id == ids[0]));
    // A delivered event too, with all its attempts anew.
    scene.receiver.otherwise(Answer::status(500));
    settings.post(&retry(&endpoint, &failed), json!({})).await.expect(202);
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), ATTEMPTS + 1 + ATTEMPTS);
    assert_eq!(ada.deliveries(&endpoint).await[0]["status"], "failed");
}

#[tokio::test]
async fn a_delivery_can_be_retried_without_limit_and_its_log_keeps_the_latest_attempts() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.event("c1").await;
    let sent = ada.deliveries(&endpoint).await.remove(0);
    for _ in 0..60 {
        settings.post(&retry(&endpoint, &sent), json!({})).await.expect(202);
        scene.world.settle().await;
    }
    assert_eq!(scene.receiver.hooks().len(), 61);
    scene.receiver.otherwise(Answer::status(418));
    settings.post(&retry(&endpoint, &sent), json!({})).await.expect(202);
    scene.world.settle().await;
    let attempts = ada.deliveries(&endpoint).await[0]["attempts"].as_array().unwrap().clone();
    assert_eq!(attempts.len(), 50 + 1);
    assert!(attempts.windows(2).all(|pair| pair[0]["at"].as_str() <= pair[1]["at"].as_str()));
    assert_eq!(attempts[50]["status_code"], 418);
}

#[tokio::test]
async fn an_event_can_be_retried_for_30_days_and_is_stored_until_its_chain_ends() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, _) = scene.coach().await;
    scene.event("c1").await;
    let sent = ada.deliveries(&endpoint).await.remove(0);
    scene.receiver.otherwise(Answer::status(500));
    scene.world.down_for(TimeDelta::days(30) - TimeDelta::hours(1)).await;
    let settings = ada.settings().await;
    settings.post(&retry(&endpoint, &sent), json!({})).await.expect(202);
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), 1 + ATTEMPTS);
    assert_eq!(ada.deliveries(&endpoint).await[0]["status"], "failed");
    settings.post(&retry(&endpoint, &sent), json!({})).await.refused(404, "not_found");
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    let recovered = settings.post(&path(&endpoint, "recover"), since).await.expect(202);
    assert_eq!(recovered.body["deliveries"], 0);
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(ada.deliveries(&endpoint).await, [] as [Value; 0]);
    assert_eq!(scene.receiver.hooks().len(), 1 + ATTEMPTS);
}

#[tokio::test]
async fn a_delivery_never_has_two_chains() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.receiver.otherwise(Answer::status(500));
    scene.world.faults(json!({ "duplicate_messages": true })).await;
    scene.event("c1").await;
    let waiting = ada.deliveries(&endpoint).await.remove(0);
    let calls =
        (0..8).map(|_| std::future::IntoFuture::into_future(settings.post(&retry(&endpoint, &waiting), json!({}))));
    let accepted = futures::future::join_all(calls).await.iter().filter(|reply| reply.status == 202).count();
    assert!(accepted >= 1);
    scene.world.settle().await;
    let after_retries = scene.receiver.hooks().len();
    assert!(after_retries <= 1 + accepted, "{after_retries} after {accepted}");
    scene.world.advance_s(2 * DAY_S).await;
    assert_eq!(scene.receiver.hooks().len(), after_retries + 8, "only the last chain continues");
    assert!(scene.world.take_messages("deliveries-dlq.fifo").await.is_empty());
}

#[tokio::test]
async fn an_accepted_retry_is_made_after_any_crash() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, settings) = scene.coach().await;
    scene.event("c1").await;
    let delivered = ada.deliveries(&endpoint).await.remove(0);
    scene.world.faults(json!({ "crash_after_commit": 1, "function": "settings" })).await;
    settings.post(&retry(&endpoint, &delivered), json!({})).await.expect(500);
    scene.world.kill_and_restart().await;
    scene.world.advance_s(HOUR_S).await;
    let ids = scene.webhook_ids();
    // The stack may have died within the attempt, which is then made again.
    assert!((2..=3).contains(&ids.len()) && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(ada.deliveries(&endpoint).await[0]["status"], "delivered");
}

#[tokio::test]
async fn a_replaced_secret_keeps_signing_for_24_hours_beside_the_new_one() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let rotated = settings.post(&path(&endpoint, "rotate-secret"), json!({})).await.expect(200);
    let new = rotated.str("secret").to_owned();
    assert_ne!(new, endpoint.secret);
    let signed = async |client: &str| {
        scene.event(client).await;
        let hook = scene.receiver.hooks().pop().unwrap();
        (hook.is_signed_with(&endpoint.secret), hook.is_signed_with(&new))
    };
    assert_eq!(signed("c1").await, (true, true));
    scene.world.advance_s(DAY_S - 60).await;
    assert_eq!(signed("c2").await, (true, true));
    scene.world.advance_s(120).await;
    assert_eq!(signed("c3").await, (false, true));
    for _ in 0..9 {
        settings.post(&path(&endpoint, "rotate-secret"), json!({})).await.expect(200);
    }
    settings.post(&path(&endpoint, "rotate-secret"), json!({})).await.refused(409, "secret_limit_reached");
    scene.event("c4").await;
    let signatures = scene.receiver.hooks().pop().unwrap().header("webhook-signature").split(' ').count();
    assert_eq!(signatures, 10);
}
