//! Faults: crashes, refusals, lost answers and duplicates leave no work half done and no event unsent.

use std::collections::BTreeSet;
use std::future::IntoFuture;

use chrono::NaiveDate;
use serde_json::{Value, json};

use crate::world::sweep::daily_log;
use crate::world::{Answer, Caller, Fact, Receiver, World};

/// Longer than a visibility time-out, the longest wait of a stream's retries and a run of the schedule together.
const RECOVERED_S: u64 = 20 * 60;

fn create(key: &Caller, email: &str) -> crate::world::Call {
    key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).idempotent(email)
}

/// Asserts that exactly these addresses have a client, each with its intake and seat.
async fn assert_clients(world: &World, key: &Caller, emails: &[&str]) {
    let addresses: BTreeSet<String> = world
        .items("clients", "EMAIL#")
        .await
        .iter()
        .map(|item| item["pk"]["S"].as_str().unwrap().trim_start_matches("EMAIL#").to_owned())
        .collect();
    assert_eq!(addresses, emails.iter().map(|email| (*email).to_owned()).collect());
    for kind in ["CLIENT#", "INTAKE#"] {
        assert_eq!(world.items("clients", kind).await.len(), emails.len(), "{kind}");
    }
    assert_eq!(key.get("/v1/ping").await.expect(200).body["active_clients"], emails.len());
}

/// Asserts the number of distinct events at the receiver and of clients on the bus.
async fn assert_emitted_counts(world: &World, receiver: &Receiver, events: usize) {
    let ids: BTreeSet<String> = receiver.hooks().iter().map(|hook| hook.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), events);
    let facts: BTreeSet<String> =
        world.changes("client.created").await.iter().map(|fact| fact["client"]["client_id"].to_string()).collect();
    assert_eq!(facts.len(), events);
    assert!(world.table("outbox").await.is_empty(), "published entries are deleted");
}

/// A caller with a coach's key, and the receiver of the coach's `new_client` events.
async fn world_with_receiver() -> (World, Receiver, Caller) {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    ada.endpoint(&receiver.url(), "identifiers").await;
    let key = ada.partner_key().await;
    (world, receiver, key)
}

#[tokio::test]
async fn a_kill_during_many_creations_leaves_each_complete_or_absent() {
    let (world, receiver, key) = world_with_receiver().await;
    let emails: Vec<String> = (0..10).map(|number| format!("c{number}@example.com")).collect();
    let mut calls = tokio::task::JoinSet::new();
    for email in &emails {
        let call = create(&key, email);
        // A call whose connection breaks panics, in its own task.
        calls.spawn(async move { call.await.status });
    }
    // By now some calls have been answered and some are in flight.
    calls.join_next().await;
    world.kill_and_restart().await;
    while calls.join_next().await.is_some() {}
    world.advance_s(61).await;
    for email in &emails {
        create(&key, email).await.expect(201);
    }
    world.advance_s(RECOVERED_S).await;
    let emails: Vec<&str> = emails.iter().map(String::as_str).collect();
    assert_clients(&world, &key, &emails).await;
    assert_emitted_counts(&world, &receiver, 10).await;
}

#[tokio::test]
async fn a_duplicated_waiting_fact_is_retried_once_at_a_time() {
    let world = World::start().await;
    world.coach("ada").await;
    world.faults(json!({ "duplicate_messages": true })).await;
    world.apply(["c1", "c2"].map(|client| daily_log(client, NaiveDate::from_ymd_opt(2026, 1, 2).unwrap()))).await;
    // If each retry doubled, there would be 32 messages by now.
    world.advance_s(90).await;
    assert!(world.calls("ingest").await.len() <= 40);
    world.apply([Fact::client("ada", "c1")]).await;
    world.advance_s(1_000).await;
    let set_aside = world.set_aside().await;
    assert!((1..=2).contains(&set_aside.len()), "each copy of the last message: {set_aside:?}");
    assert!(set_aside.iter().all(|aside| aside["reason"] == "client_id c2 has not been seen"));
    let logs = world.coach("ada").await.partner_key().await.get("/v1/clients/c1/daily-logs").await.expect(200);
    assert_eq!(logs.body["count"], 1);
}

#[tokio::test]
async fn a_storm_of_faults_during_creations_leaves_each_complete_or_absent() {
    let (world, receiver, key) = world_with_receiver().await;
    let emails: Vec<String> = (0..30).map(|number| format!("c{number}@example.com")).collect();
    // The faults meet the requests at arbitrary calls.
    let storm = async {
        for _ in 0..25 {
            world.faults(json!({ "store_conflicts": 2, "store_failures": 2, "store_lost_answers": 2 })).await;
        }
    };
    let creations = futures::future::join_all(emails.iter().map(|email| create(&key, email).into_future()));
    let (replies, ()) = futures::future::join(creations, storm).await;
    world.faults(json!({ "store_conflicts": 0, "store_failures": 0, "store_lost_answers": 0 })).await;
    for reply in replies.into_iter().filter(|reply| reply.status != 201) {
        reply.refused(500, "internal");
    }
    world.advance_s(61).await;
    for email in &emails {
        create(&key, email).await.expect(201);
    }
    world.advance_s(RECOVERED_S).await;
    let emails: Vec<&str> = emails.iter().map(String::as_str).collect();
    assert_clients(&world, &key, &emails).await;
    assert_emitted_counts(&world, &receiver, emails.len()).await;
}

#[tokio::test]
async fn store_faults_lose_no_fact() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for fault in ["store_conflicts", "store_failures", "store_lost_answers"] {
        world.faults(json!({ fault: 25 })).await;
        world.apply([Fact::client("ada", fault).with("backfill", true)]).await;
        world.advance_s(600).await;
        world.faults(json!({ fault: 0 })).await;
    }
    world.advance_s(RECOVERED_S).await;
    assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], 3);
    assert_eq!(key.get("/v1/ping").await.expect(200).body["active_clients"], 3);
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_retry_chain_survives_an_outage_of_the_store() {
    const OUTAGE_S: u64 = 40 * 60;
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    receiver.script([Answer::status(500)]);
    world.apply([Fact::client("ada", "c1")]).await;
    world.faults(json!({ "function": "deliver", "store_failures": 1_000_000 })).await;
    world.apply([Fact::client("ada", "c2")]).await;
    world.advance_s(OUTAGE_S).await;
    assert_eq!(receiver.hooks().len(), 1);
    world.faults(json!({ "function": "", "store_failures": 0 })).await;
    world.advance_s(RECOVERED_S).await;
    assert_eq!(receiver.hooks().len(), 3, "a first attempt and a second one");
    for delivery in ada.deliveries(&endpoint).await {
        assert_eq!(delivery["status"], "delivered", "{delivery}");
    }
}
