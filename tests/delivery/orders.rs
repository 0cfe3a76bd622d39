//! A delivery that waits has an order in a queue, whatever dies and whatever becomes of its endpoint. An order that is
//! lost all the same is found within an hour.

use std::time::Duration;

use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::world::{Answer, Caller, Endpoint, Fact, rendered, until};

const HOUR_S: u64 = 3_600;
/// The relay's calls before it stores a delivery: it looks for an erasure and reads the endpoints.
const CALLS_BEFORE: u32 = 2;
/// The calls that it makes at once then: it stores the delivery, and reads whether a key may read events.
const CALLS_AT_ONCE: u32 = 2;

impl EndpointScene {
    /// A delivery whose first attempt failed. Its next order is lost.
    async fn delivery_without_order(&self) -> Value {
        self.receiver.script([Answer::status(500)]);
        self.event("c1").await;
        self.world.purge("delivery-retries").await;
        let mut deliveries = self.world.delivery_items().await;
        assert_eq!((deliveries.len(), &deliveries[0]["status"]["S"]), (1, &json!("pending")));
        deliveries.remove(0)
    }

    async fn statuses(&self) -> Vec<String> {
        let deliveries = self.world.delivery_items().await.into_iter();
        deliveries.map(|delivery| delivery["status"]["S"].as_str().unwrap().to_owned()).collect()
    }

    /// The orders that the relay found missing.
    fn missing(&self) -> usize {
        let log = self.world.log();
        log.lines().filter(|line| line.contains("re-enqueued an overdue delivery")).count()
    }
}

/// A coach's request that ends what an endpoint wants.
#[derive(Debug, Clone, Copy)]
enum End {
    Pause,
    Unsubscribe,
    Delete,
}

impl End {
    async fn request(self, settings: &Caller, endpoint: &Endpoint) {
        let path = format!("/settings/webhooks/{}", endpoint.id);
        match self {
            Self::Pause => settings.patch(&path, json!({ "enabled": false })).await.expect(200),
            Self::Unsubscribe => settings.patch(&path, json!({ "events": [] })).await.expect(200),
            Self::Delete => settings.delete(&path).await.expect(200),
        };
    }
}

/// The relay has read the endpoints when one of them ends. Then it stores the delivery, and dies before it sends the
/// order.
async fn die_beside(scene: &EndpointScene, end: impl AsyncFnOnce()) {
    let stall = json!({ "function": "relay", "spared_calls": CALLS_BEFORE, "stalled_calls": CALLS_AT_ONCE });
    scene.world.faults(stall).await;
    scene.world.publish([Fact::client("ada", "c1")]).await;
    scene.world.until_stalled().await;
    end().await;
    scene.world.faults(json!({ "spared_calls": 0, "crash_before_call": 1, "stalled_calls": 0 })).await;
    scene.world.settle().await;
    assert_eq!(scene.world.remaining_faults().await["crash_before_call"], 0, "the relay died");
    assert!(scene.world.items("outbox", "").await.is_empty());
}

#[tokio::test]
async fn a_relay_that_dies_while_an_endpoint_ends_leaves_no_delivery_without_an_order() {
    for (end, expected) in [(End::Pause, "failed"), (End::Unsubscribe, "delivered"), (End::Delete, "failed")] {
        let scene = EndpointScene::new().await;
        let (_, endpoint, settings) = scene.coach().await;
        die_beside(&scene, async || end.request(&settings, &endpoint).await).await;
        assert_eq!(scene.statuses().await, [expected], "{end:?}");
        assert_eq!(scene.receiver.hooks().len(), usize::from(expected == "delivered"), "{end:?}");
    }
}

#[tokio::test]
async fn a_relay_that_dies_while_a_receiver_answers_410_leaves_no_delivery_without_an_order() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.receiver.script([Answer::status(410).after(Duration::from_secs(2))]);
    scene.world.publish([Fact::client("ada", "c0")]).await;
    until("the request of the first event", async || scene.receiver.hooks().len() == 1).await;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    let is_gone = async || settings.get(&path).await.expect(200).body["status"] == "gone";
    die_beside(&scene, async || until("the end of the endpoint", is_gone).await).await;
    assert_eq!(scene.statuses().await, ["failed", "failed"]);
    assert_eq!(scene.receiver.hooks().len(), 1);
}

/// The delivery began to wait at a time that the deliverer's clock has yet to reach.
#[tokio::test]
async fn the_order_of_an_endpoint_that_is_off_ends_its_delivery_whatever_the_clocks_say() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    scene.receiver.otherwise(Answer::status(500));
    scene.event("c1").await;
    let mut delivery = scene.world.delivery_items().await.remove(0);
    let ahead = (scene.world.now().await + chrono::TimeDelta::hours(2)).timestamp_millis();
    delivery["waits_since"] = json!({ "N": ahead.to_string() });
    scene.world.put_item("deliveries", &delivery).await;
    End::Pause.request(&settings, &endpoint).await;
    scene.world.advance_s(60).await;
    assert_eq!(scene.statuses().await, ["failed"]);
}

#[tokio::test]
async fn an_order_that_is_lost_is_found_within_an_hour_of_its_due_time() {
    let scene = EndpointScene::new().await;
    scene.coach().await;
    scene.delivery_without_order().await;
    scene.world.advance_s(HOUR_S).await;
    assert_eq!(scene.statuses().await, ["delivered"]);
    assert_eq!((scene.receiver.hooks().len(), scene.missing()), (2, 1));
}

#[tokio::test]
async fn a_lost_order_of_an_endpoint_that_is_off_is_found_too() {
    let scene = EndpointScene::new().await;
    let (_, endpoint, settings) = scene.coach().await;
    let delivery = scene.delivery_without_order().await;
    End::Delete.request(&settings, &endpoint).await;
    // As if the deletion had not seen it.
    scene.world.put_item("deliveries", &delivery).await;
    scene.world.advance_s(HOUR_S).await;
    assert_eq!(scene.statuses().await, ["failed"]);
    assert_eq!((scene.receiver.hooks().len(), scene.missing()), (1, 1));
}

/// An order that is late looks like one that is lost.
#[tokio::test]
async fn an_order_that_is_sent_again_although_it_was_late_causes_no_second_request() {
    let scene = EndpointScene::new().await;
    scene.coach().await;
    scene.receiver.script([Answer::status(503).header("retry-after", "3600")]);
    scene.event("c1").await;
    let mut delivery = scene.world.delivery_items().await.remove(0);
    let long_ago = rendered(scene.world.now().await - chrono::TimeDelta::hours(1));
    delivery["next_attempt_at"] = json!({ "S": long_ago });
    scene.world.put_item("deliveries", &delivery).await;
    scene.world.advance_s(2 * HOUR_S).await;
    assert_eq!(scene.statuses().await, ["delivered"]);
    assert_eq!((scene.receiver.hooks().len(), scene.missing()), (2, 1));
}

#[tokio::test]
async fn orders_that_wait_for_a_receiver_are_not_missing() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, _) = scene.coach().await;
    scene.receiver.otherwise(Answer::silence());
    for number in 0..4 {
        scene.event(&format!("c{number}")).await;
    }
    scene.world.advance_s(6 * HOUR_S).await;
    assert_eq!(scene.missing(), 0);
    assert!(ada.deliveries(&endpoint).await.iter().all(|delivery| delivery["status"] == "pending"));
}
