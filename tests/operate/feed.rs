//! `operate feed`: what waits in the outbox and in the queues.

use serde_json::json;

use crate::operate::{operate, operate_as};
use crate::world::{Fact, Receiver, World, members, time};

const QUEUES: [&str; 6] = [
    "application-feed",
    "application-feed-dlq",
    "deliveries-dlq.fifo",
    "deliveries.fifo",
    "delivery-retries",
    "sweep-shards",
];

#[tokio::test]
async fn an_idle_stack_has_nothing_unsent_and_shows_every_queue() {
    let world = World::start().await;
    world.coach("ada").await;
    let feed = operate_as(&world, "OperatorReadPolicy", &["feed"]).await;
    assert_eq!(feed.code, 0, "{}", feed.stdout);
    assert_eq!(members(&feed.json), ["lag_s", "oldest_unsent_at", "queues", "unsent"]);
    assert_eq!((&feed.json["unsent"], &feed.json["lag_s"]), (&json!(0), &json!(0)));
    assert!(feed.json["oldest_unsent_at"].is_null());
    // A sandbox has one more.
    let queues = members(&feed.json["queues"]);
    assert!(QUEUES.iter().all(|name| queues.contains(name)), "{queues:?}");
    for queue in QUEUES {
        assert_eq!(feed.json["queues"][queue], json!({ "visible": 0, "in_flight": 0, "delayed": 0 }), "{queue}");
    }
}

#[tokio::test]
async fn an_entry_that_the_relay_did_not_send_is_unsent_since_its_time() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    world.coach("ada").await.endpoint(&receiver.url(), "identifiers").await;
    let before = world.now().await;
    // The relay dies with each entry.
    world.faults(json!({ "function": "relay", "crash_before_call": 1_000 })).await;
    world.publish([Fact::client("ada", "c1")]).await;
    crate::world::until("an entry", async || !world.items("outbox", "").await.is_empty()).await;
    let feed = operate(&world, &["feed"]).await.json;
    assert_eq!(feed["unsent"], world.items("outbox", "").await.len(), "{feed}");
    assert!(time(&feed["oldest_unsent_at"]) >= before - chrono::TimeDelta::seconds(1), "{feed}");
    assert!(feed["lag_s"].as_i64().unwrap() < 600, "{feed}");
    world.clear_faults().await;
}

#[tokio::test]
async fn messages_are_counted_by_queue_and_state() {
    let world = World::start().await;
    world.send_together("application-feed-dlq", &["{}".to_owned(), "[]".to_owned()], 0).await;
    world.send_together("application-feed-dlq", &["{}".to_owned()], 600).await;
    let feed = operate(&world, &["feed"]).await.json;
    assert_eq!(feed["queues"]["application-feed-dlq"], json!({ "visible": 2, "in_flight": 0, "delayed": 1 }));
}

#[tokio::test]
async fn a_sandbox_shows_the_queue_of_its_removals_too() {
    let world = World::start_with_parameters(&[("Mode", "test")]).await;
    let feed = operate_as(&world, "OperatorReadPolicy", &["feed"]).await;
    assert_eq!(feed.json["queues"]["wipes"], json!({ "visible": 0, "in_flight": 0, "delayed": 0 }), "{}", feed.stdout);
}
