//! Quotas of a UTC day: facts and events of a workspace are counted exactly, whatever comes at once.

use std::future::IntoFuture;

use chrono::{DateTime, TimeDelta, Utc};
use domain::mode::Mode;
use futures::StreamExt;
use serde_json::{Value, json};

use crate::sandbox::{EVALUATE, EVENTS, FACTS, start, visitor};
use crate::world::{Call, Caller, Coach, Reply, World, list};

const FACTS_PER_DAY: usize = 1_000;
const EVENTS_PER_DAY: usize = 500;
/// Requests at once.
const AT_ONCE: usize = 30;
/// Most facts of a request.
const BATCH: usize = 20;

/// A request with so many facts, which are refused at little cost, and count nevertheless.
fn facts(key: &Caller, count: usize) -> Call {
    let fact = json!({ "type": "none.such", "detail": {} });
    key.post(FACTS, json!({ "facts": vec![fact; count] }))
}

fn event(key: &Caller) -> Call {
    key.post(EVENTS, json!({ "type": "new_client" }))
}

/// Sends requests, some at once.
async fn send_all(calls: impl IntoIterator<Item = Call>) -> Vec<Reply> {
    let calls = calls.into_iter().map(IntoFuture::into_future);
    futures::stream::iter(calls).buffer_unordered(AT_ONCE).collect().await
}

/// Asserts a refusal until midnight (UTC). Returns the seconds that it says.
#[track_caller]
fn assert_used_up(reply: &Reply, things: &str, limit: usize, now: DateTime<Utc>) -> u64 {
    let refused = reply.clone().refused(429, "test_quota");
    assert!(refused.error().contains(&format!("{limit} {things}")), "{}", refused.text);
    let left = (now.date_naive() + TimeDelta::days(1)).and_hms_opt(0, 0, 0).unwrap().and_utc() - now;
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    let difference = left.num_seconds().abs_diff(i64::try_from(seconds).unwrap());
    assert!(difference <= 1, "{seconds} s, and {left} are left");
    // The minute of the key is another limit.
    assert!(refused.header("ratelimit").unwrap().contains("\"default\""), "{refused:?}");
    seconds
}

fn count(replies: &[Reply], status: u16) -> usize {
    replies.iter().filter(|reply| reply.status == status).count()
}

/// Stops the stack until minutes before midnight. A start on a busy machine takes seconds.
async fn until_before_midnight(world: &World) {
    let now = world.now().await;
    let midnight = (now.date_naive() + TimeDelta::days(1)).and_hms_opt(0, 0, 0).unwrap().and_utc();
    let before = midnight - TimeDelta::minutes(3);
    if now < before {
        world.down_until(before).await;
    }
}

/// A key of each scope, which have a minute each and the workspace's day together.
async fn both_keys(coach: &Coach<'_>) -> [Caller; 2] {
    [coach.partner_key().await, coach.crm_key().await]
}

#[tokio::test]
async fn of_batches_at_once_those_within_a_thousand_facts_a_day_are_taken_and_no_other() {
    let world = start(Mode::Test).await;
    let [partner, crm] = both_keys(&visitor(&world, "ada")).await;
    let other = visitor(&world, "bob").partner_key().await;
    let keys = [&partner, &crm];
    // 60 batches of 19: 52 fit, and 12 facts are left.
    let replies = send_all((0..60).map(|number| facts(keys[number % 2], 19))).await;
    assert_eq!((count(&replies, 200), count(&replies, 429)), (52, 8));
    let now = world.now().await;
    for refused in replies.iter().filter(|reply| reply.status == 429) {
        assert_used_up(refused, "facts", FACTS_PER_DAY, now);
    }
    for reply in replies.iter().filter(|reply| reply.status == 200) {
        assert_eq!(list(reply.body["data"].clone()).len(), 19);
    }
    // A batch that would cross the limit is refused whole, and takes nothing from those that fit.
    assert_used_up(&facts(&partner, 13).await, "facts", FACTS_PER_DAY, now);
    let replies = send_all((0..20).map(|number| facts(keys[number % 2], 5))).await;
    assert_eq!((count(&replies, 200), count(&replies, 429)), (2, 18));
    let replies = send_all((0..6).map(|_| facts(&crm, 1))).await;
    assert_eq!((count(&replies, 200), count(&replies, 429)), (2, 4));
    // Nothing else is used up, and no other workspace.
    event(&partner).await.expect(202);
    partner.post(EVALUATE, json!({})).await.expect(200);
    facts(&other, BATCH).await.expect(200);
    // The day ends at midnight, and not before.
    until_before_midnight(&world).await;
    let refused = facts(&crm, 1).await;
    let seconds = assert_used_up(&refused, "facts", FACTS_PER_DAY, world.now().await);
    world.advance_s(seconds).await;
    let replies = send_all((0..51).map(|number| facts(keys[number % 2], BATCH))).await;
    assert_eq!((count(&replies, 200), count(&replies, 429)), (50, 1));
}

#[tokio::test]
async fn of_events_at_once_five_hundred_a_day_are_emitted_and_no_other() {
    let world = start(Mode::Test).await;
    let [partner, crm] = both_keys(&visitor(&world, "ada")).await;
    let other = visitor(&world, "bob").partner_key().await;
    let keys = [&partner, &crm];
    world.advance_to_next_minute().await;
    let began = world.now().await;
    let replies = send_all((0..520).map(|number| event(keys[number % 2]))).await;
    assert_eq!(world.now().await.timestamp() / 60, began.timestamp() / 60, "a key has 300 requests a minute");
    assert_eq!((count(&replies, 202), count(&replies, 429)), (EVENTS_PER_DAY, 20));
    let now = world.now().await;
    for refused in replies.iter().filter(|reply| reply.status == 429) {
        assert_used_up(refused, "events", EVENTS_PER_DAY, now);
    }
    facts(&partner, BATCH).await.expect(200);
    event(&other).await.expect(202);
    until_before_midnight(&world).await;
    let seconds = assert_used_up(&event(&crm).await, "events", EVENTS_PER_DAY, world.now().await);
    world.advance_s(seconds).await;
    event(&crm).await.expect(202);
}

#[tokio::test]
async fn a_bad_request_counts_nothing_and_a_replay_nothing_more() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let counted = async || {
        let items = world.items("workspaces", "COACH#ada").await;
        let day = items.into_iter().find(|item| item["sk"]["S"].as_str().unwrap().starts_with("SANDBOX#"));
        let day = day.unwrap_or_default();
        [day["facts"]["N"].clone(), day["events"]["N"].clone()]
    };
    key.post(FACTS, json!({ "facts": [] })).await.expect(400);
    key.post(EVENTS, json!({ "type": "new_moon" })).await.expect(400);
    key.post(EVENTS, json!({ "type": "new_client", "client_id": "nobody" })).await.expect(404);
    assert_eq!(counted().await, [Value::Null, Value::Null]);
    for _ in 0..2 {
        facts(&key, 3).idempotent("facts").await.expect(200);
        event(&key).idempotent("event").await.expect(202);
    }
    assert_eq!(counted().await, [json!("3"), json!("1")]);
}

#[tokio::test]
async fn a_request_that_was_refused_for_the_day_is_taken_after_midnight_under_its_idempotency_key() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let replies = send_all((0..50).map(|_| facts(&key, BATCH))).await;
    assert_eq!(count(&replies, 200), 50);
    let again = || facts(&key, BATCH).idempotent("tomorrow");
    for _ in 0..2 {
        assert_used_up(&again().await, "facts", FACTS_PER_DAY, world.now().await);
    }
    until_before_midnight(&world).await;
    world.advance_s(600).await;
    let taken = again().await.expect(200);
    assert!(!taken.is_replay());
    assert!(again().await.expect(200).is_replay());
}

#[tokio::test]
async fn a_lost_answer_of_the_store_refuses_nobody_early() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let replies = send_all((0..49).map(|_| facts(&key, BATCH))).await;
    assert_eq!(count(&replies, 200), 49);
    // The check of the key is the first call.
    world.faults(json!({ "function": "sandbox", "spared_calls": 1, "store_lost_answers": 1 })).await;
    let reply = facts(&key, 1).await;
    world.clear_faults().await;
    assert!([200, 429].contains(&reply.status), "{}", reply.text);
    let left = send_all((0..25).map(|_| facts(&key, 1))).await;
    assert!(count(&left, 200) >= 18, "a count may be doubled, and no more");
}
