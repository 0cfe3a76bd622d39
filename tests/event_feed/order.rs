//! The feed has each event once, in one order, whatever dies meanwhile: the relay at each of its calls, the whole
//! stack, answers of the store.

use std::collections::BTreeSet;

use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::{follow, ids, message, reader, whole_feed};
use crate::world::{Caller, Fact, World};

/// Longer than the schedule needs to publish what the stream did not.
const PUBLISHED_S: u64 = 40 * 60;

/// Checks that a feed has these events, each once.
async fn assert_feed(key: &Caller, expected: usize, when: &str) {
    let got = ids(&whole_feed(key).await);
    let unique: BTreeSet<&String> = got.iter().collect();
    assert_eq!((got.len(), unique.len()), (expected, expected), "{when}");
}

#[tokio::test]
async fn a_relay_that_dies_at_any_call_or_loses_any_answer_stores_each_event_once() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let mut events = 1;
    for fault in ["crash_before_call", "store_lost_answers", "store_failures"] {
        for spared_calls in 0..8 {
            let mut plan = json!({ "function": "relay", "spared_calls": spared_calls });
            // The SDK repeats a call whose answer is lost; a crash is final.
            plan[fault] = json!(if fault == "store_failures" { 4 } else { 1 });
            world.faults(plan).await;
            let at = world.timestamp_in(0).await;
            world.publish([message("c1", events, &at), message("c1", events + 1, &at)]).await;
            events += 2;
            world.settle().await;
            world.clear_faults().await;
            assert_feed(&key, events as usize, &format!("{fault} after {spared_calls} calls")).await;
        }
    }
}

#[tokio::test]
async fn a_grade_drop_that_is_emitted_twice_is_in_the_feed_once() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "identifiers").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let check_in = |day: u32, grades: Value| {
        let detail = json!({
            "client_id": "c1", "check_in_id": format!("k{day}"), "submitted_at": format!("2026-05-{day:02}T07:00:00Z"),
            "scores": {}, "grades": grades,
        });
        crate::world::fact("check_in.submitted", detail)
    };
    // Each late check-in reveals that the third is a drop, in another system. The relay dies once meanwhile.
    world.apply([check_in(3, json!({ "sleep": 2, "gut": 2 }))]).await;
    world.faults(json!({ "function": "relay", "spared_calls": 6, "crash_before_call": 1 })).await;
    world.apply([check_in(1, json!({ "sleep": 3 }))]).await;
    world.clear_faults().await;
    world.advance_s(PUBLISHED_S).await;
    world.apply([check_in(2, json!({ "gut": 3 }))]).await;
    let drops = whole_feed(&key).await.into_iter().filter(|event| event["type"] == "system_grade_drop");
    assert_eq!(drops.count(), 1);
}

#[tokio::test]
async fn readers_of_a_busy_feed_get_every_event_once_in_one_order_while_relays_and_the_stack_die() {
    const ROUNDS: u64 = 6;
    const CLIENTS: u64 = 8;
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let keys = [reader(&ada, "identifiers").await, reader(&ada, "contact_details").await];
    let writer = ada.partner_key().await;
    let (mut got, mut cursors) = ([Vec::new(), Vec::new()], [String::new(), String::new()]);
    for round in 0..ROUNDS {
        let plan = json!({
            "function": "relay", "spared_calls": 5 * round, "crash_before_call": 1, "store_lost_answers": round % 3,
            "duplicate_messages": round % 2 == 0,
        });
        world.faults(plan).await;
        let created = (0..CLIENTS).map(|number| {
            let body = json!({ "email": format!("r{round}n{number}@example.com"), "send_welcome": false });
            let writer = &writer;
            async move { writer.post("/v1/clients", body).await.expect(201) }
        });
        let facts = (0..CLIENTS).map(|number| Fact::client("ada", &format!("r{round}n{number}")));
        let read = async {
            for _ in 0..4 {
                for reader in 0..2 {
                    let (events, next) = follow(&keys[reader], &cursors[reader], 3).await;
                    got[reader].extend(events);
                    cursors[reader] = next;
                }
            }
        };
        join(join(join_all(created), world.publish(facts)), read).await;
        if round % 2 == 1 {
            world.kill_and_restart().await;
        }
    }
    world.clear_faults().await;
    world.advance_s(PUBLISHED_S).await;
    for reader in 0..2 {
        let (events, _) = follow(&keys[reader], &cursors[reader], 3).await;
        got[reader].extend(events);
    }
    let whole = ids(&whole_feed(&keys[0]).await);
    assert_eq!(whole.len(), usize::try_from(2 * ROUNDS * CLIENTS).unwrap());
    assert_eq!(whole.iter().collect::<BTreeSet<_>>().len(), whole.len());
    assert_eq!(got.map(|events| ids(&events)), [whole.clone(), whole]);
}
