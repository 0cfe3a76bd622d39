//! Idempotency of `POST /v1/clients`: derived keys, passwords, and the changes of creations that are abandoned.
//! `partner::clients::create` has the crashes and takeovers of creations with a mail.

use std::collections::BTreeSet;
use std::future::IntoFuture;

use serde_json::{Value, json};

use crate::idempotency::rows::assert_replay_of;
use crate::partner::start_with_key;
use crate::world::{Call, Caller, list, the_one_answer};

const HOUR_S: u64 = 3600;

fn body(email: &str) -> Value {
    json!({ "email": email, "send_welcome": false })
}

fn post(key: &Caller, email: &str) -> Call {
    key.post("/v1/clients", body(email))
}

#[tokio::test]
async fn of_twenty_simultaneous_requests_with_a_derived_key_one_creates() {
    let (world, key) = start_with_key().await;
    let calls = (0..20).map(|_| post(&key, "a@example.com").into_future());
    the_one_answer(&futures::future::join_all(calls).await);
    assert_eq!(world.items("clients", "CLIENT#").await.len(), 1);
}

#[tokio::test]
async fn without_a_header_the_key_is_derived_from_the_address_apart_from_explicit_keys() {
    let (_world, key) = start_with_key().await;
    let derived = post(&key, "a@example.com").await.expect(201);
    assert_replay_of(&post(&key, "a@example.com").await, &derived);
    assert_replay_of(&post(&key, "A@Example.com").await, &derived);
    post(&key, "a@example.com").idempotent("explicit").await.refused(409, "email_taken");
    // A header that looks like an address is still an explicit key.
    let explicit = post(&key, "b@example.com").idempotent("c@example.com").await.expect(201);
    let other = post(&key, "c@example.com").await.expect(201);
    assert!(!other.is_replay());
    assert_replay_of(&post(&key, "b@example.com").idempotent("c@example.com").await, &explicit);
}

#[tokio::test]
async fn a_refusal_under_a_derived_key_counts_for_a_minute() {
    let (world, key) = start_with_key().await;
    let mut wrong = body("a@example.com");
    wrong["height_in"] = json!("tall");
    let refused = key.post("/v1/clients", wrong).await.refused_for("height_in");
    world.advance_s(50).await;
    let replay = post(&key, "a@example.com").await;
    assert_replay_of(&replay, &refused);
    assert_eq!(replay.header("idempotency-payload-mismatch"), Some("true"));
    world.advance_s(11).await;
    let created = post(&key, "a@example.com").await.expect(201);
    assert!(!created.is_replay());
}

#[tokio::test]
async fn under_a_derived_key_a_password_is_replayed_for_an_hour_and_other_answers_for_a_day() {
    let (world, key) = start_with_key().await;
    let with_password = post(&key, "a@example.com").await.expect(201);
    let mailed = json!({ "email": "b@example.com" });
    let without = key.post("/v1/clients", mailed.clone()).await.expect(201);
    world.advance_s(HOUR_S - 60).await;
    assert_replay_of(&post(&key, "a@example.com").await, &with_password);
    world.advance_s(61).await;
    post(&key, "a@example.com").await.refused(409, "email_taken");
    assert_replay_of(&key.post("/v1/clients", mailed.clone()).await, &without);
    world.advance_s(23 * HOUR_S - 120).await;
    assert_replay_of(&key.post("/v1/clients", mailed.clone()).await, &without);
    world.advance_s(121).await;
    key.post("/v1/clients", mailed).await.refused(409, "email_taken");
}

#[tokio::test]
async fn a_body_without_an_address_has_no_derived_key() {
    let (_world, key) = start_with_key().await;
    for _ in 0..2 {
        for bad in [json!({}), json!({ "email": 5 }), json!([])] {
            assert!(!key.post("/v1/clients", bad).await.expect(400).is_replay());
        }
    }
    let recorded = key.post("/v1/clients", json!({})).idempotent("k").await.expect(400);
    assert_replay_of(&key.post("/v1/clients", json!({})).idempotent("k").await, &recorded);
}

/// The relay dies between publishing the change of an abandoned creation and removing it from its list.
#[tokio::test]
async fn changes_with_the_same_id_have_the_same_intake() {
    let (world, key) = start_with_key().await;
    let die = async |email: &str| {
        world.faults(json!({ "function": "clients", "crash_after_commit": 1 })).await;
        key.post("/v1/clients", json!({ "email": email })).idempotent(email).await.expect(500);
        world.settle().await;
    };
    die("first-of-two@example.com").await;
    // Number of calls that the schedule makes before the removal. Its next run is a quarter of an hour later.
    let mut spared_calls = None;
    while spared_calls.is_none() {
        world.advance_s(60).await;
        let calls = list(world.calls("relay").await[0]["calls"].clone());
        let is_scheduled = calls.first().is_some_and(|call| call["operation"] == "Scan");
        spared_calls = calls.iter().position(|call| call["operation"] == "DeleteItem").filter(|_| is_scheduled);
    }
    die("a@example.com").await;
    world.faults(json!({ "function": "relay", "spared_calls": spared_calls, "crash_before_call": 1 })).await;
    while world.remaining_faults().await["crash_before_call"] != 0 {
        world.advance_s(60).await;
    }
    world.faults(json!({ "function": "", "spared_calls": 0 })).await;
    key.post("/v1/clients", json!({ "email": "a@example.com" })).idempotent("a@example.com").await.expect(201);
    world.advance_s(1_800).await;
    let mut emitted: Vec<Value> = world.changes("client.created").await;
    emitted.retain(|fact| fact["client"]["email"] == "a@example.com");
    let ids: BTreeSet<&str> = emitted.iter().map(|fact| fact["id"].as_str().unwrap()).collect();
    let contents: BTreeSet<String> = emitted.iter().map(Value::to_string).collect();
    assert_eq!((emitted.len(), ids.len(), contents.len()), (3, 2, 2), "issued twice, and sent: {emitted:#?}");
    let states = emitted.iter().map(|fact| (fact["occurred_at"].as_str(), fact["intake"]["state"].as_str()));
    assert_eq!(states.max().unwrap().1, Some("sent"), "{emitted:#?}");
}
