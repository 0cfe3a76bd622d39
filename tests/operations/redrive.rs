//! Dead letters that are moved back once the fault is mended: the work is done once.

use serde_json::json;

use crate::world::{Fact, Receiver, World};

const HOUR_S: u64 = 3_600;
/// Longer than an order is received before it becomes a dead letter.
const ORDER_LIFETIME_S: u64 = 26 * HOUR_S;
/// Longest time after which a failed message is received again.
const LONGEST_WAIT_S: u64 = 90;
const ENCRYPTION: &str = "EncryptionSecret";

impl World {
    /// Moves dead letters to a queue, as `aws sqs start-message-move-task` does. Returns their number.
    async fn redrive(&self, dead_letters: &str, to: &str) -> usize {
        let messages = self.receive_all(dead_letters).await;
        for message in &messages {
            self.send_like(to, message).await;
        }
        self.settle().await;
        messages.len()
    }
}

#[tokio::test]
async fn a_delivery_without_a_possible_attempt_is_made_after_a_redrive() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    // A fault of ours: the key that sealed the endpoint's secret is gone.
    let ring = world.secret(ENCRYPTION).await;
    world.put_secret(ENCRYPTION, &json!({ "current": "2", "2": "x".repeat(64) })).await;
    world.kill_and_restart().await;
    world.apply([Fact::client("ada", "c1")]).await;
    world.advance_s(ORDER_LIFETIME_S).await;
    assert!(receiver.hooks().is_empty());
    let mut mended = ring;
    mended["2"] = "x".repeat(64).into();
    world.put_secret(ENCRYPTION, &mended).await;
    world.kill_and_restart().await;
    // The first order, and the copy that the relay sent when the delivery was overdue.
    assert_eq!(world.redrive("deliveries-dlq.fifo", "deliveries.fifo").await, 2);
    // A third order, sent a day after the copy, fails at the head of the lane and keeps the others waiting until its
    // turn.
    world.advance_s(LONGEST_WAIT_S).await;
    let hooks = receiver.hooks();
    assert!(hooks.len() == 1 && hooks[0].is_signed_with(&endpoint.secret));
    assert_eq!(ada.deliveries(&endpoint).await[0]["status"], "delivered");
    world.advance_s(HOUR_S).await;
    assert_eq!(receiver.hooks().len(), 1);
}

#[tokio::test]
async fn a_fact_that_could_not_be_stored_is_stored_after_a_redrive() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    ada.endpoint(&receiver.url(), "identifiers").await;
    let key = ada.partner_key().await;
    world.apply([Fact::client("ada", "c1")]).await;
    // A fault of ours: the client's record is unreadable.
    let good = world.take_item("clients", "CLIENT#c1").await;
    let mut bad = good.clone();
    bad["created_at"]["S"] = "in May".into();
    world.put_item("clients", &bad).await;
    world.apply([Fact::client("ada", "c1").with("full_name", "New Name")]).await;
    world.advance_s(HOUR_S).await;
    world.put_item("clients", &good).await;
    assert_eq!(world.redrive("application-feed-dlq", "application-feed").await, 1);
    assert_eq!(key.get("/v1/clients/c1").await.expect(200).body["full_name"], "New Name");
    assert_eq!(receiver.hooks().len(), 1, "one new_client event");
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn a_redriven_check_in_lacks_its_scores_and_has_to_be_submitted_again() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let submitted = crate::webhooks::automations::check_in("k1", 1, json!({ "sleep": 1 }), json!({}));
    world.apply([submitted.clone()]).await;
    world.advance_s(HOUR_S).await;
    world.apply([Fact::client("ada", "c1")]).await;
    assert_eq!(world.redrive("application-feed-dlq", "application-feed").await, 1);
    let again = world.set_aside().await;
    assert!(again.len() == 1 && again[0]["reason"].as_str().unwrap().contains("scores"), "{again:?}");
    world.apply([submitted]).await;
    assert_eq!(key.get("/v1/clients/c1/check-ins").await.expect(200).body["count"], 1);
}
