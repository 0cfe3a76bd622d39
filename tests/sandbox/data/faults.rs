//! Removals whose calls die, fail or lose their answers, and a stack that is killed: each removal ends, and leaves
//! nothing.

use chrono::NaiveDate;
use domain::mode::Mode;
use serde_json::{Value, json};

use super::tenant::Tenant;
use super::{begin, end, remove};
use crate::sandbox::{DATA, record, start, store, visitor};
use crate::world::sweep::daily_log;
use crate::world::{Caller, Fact, Receiver, World, uuid};

/// More than the calls of the removals of a round.
const MOST_CALLS: usize = 90;
/// A fault meets every other call, which keeps the tests short.
const EVERY: usize = 2;
/// Time from the order to the beginning of the removal.
const SETTLING_S: u64 = 26;
/// Time after which the message of an order comes whose request died.
const ORDERED_S: u64 = 31;

fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 2).unwrap()
}

/// Stores something of each kind, quickly.
async fn fill(tenant: &Tenant<'_>, round: usize) {
    let client = tenant.client(round);
    let facts = [
        Fact::client("", &client),
        daily_log(&client, day()),
        Fact::contact("", &uuid(1)),
        Fact::opportunity("", &uuid(2), &uuid(1)),
        Fact::calendar("", &uuid(3)),
    ];
    store(&tenant.key, facts).await;
    tenant.create(round).await.expect(201);
    tenant.world.settle().await;
}

/// Asserts that nothing is left, that the contents are there, and that the keys work.
async fn assert_fresh(tenant: &Tenant<'_>, contents: &[Value], at: &str) {
    tenant.world.settle().await;
    let left = tenant.leftovers().await;
    assert!(left.is_empty(), "{at}: {left:#?}");
    assert_eq!(tenant.calendars().await, contents, "{at}");
    let stored = record(tenant.world, &tenant.name).await;
    for (member, value) in [("client_count", "0"), ("active_count", "0"), ("client_cap", "100")] {
        assert_eq!(stored[member]["N"], value, "{at}: {member}");
    }
    assert_eq!(tenant.key.get("/v1/ping").await.expect(200).body["active_clients"], 0, "{at}");
}

/// Lets a fault meet the calls of the removal in turn, until none is left.
async fn fault_at_calls(fault: &str, times: usize) {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    let contents = tenant.calendars().await;
    for spared in (0..MOST_CALLS).step_by(EVERY) {
        let at = format!("{fault} after {spared} calls");
        fill(&tenant, spared).await;
        world.faults(json!({ "function": "wipe", "spared_calls": spared, fault: times })).await;
        let job = begin(&tenant.key).await;
        world.advance_s(SETTLING_S + 1).await;
        let is_met = world.remaining_faults().await[fault].as_u64() != Some(times as u64);
        world.clear_faults().await;
        end(&world, &tenant.key, &job).await;
        assert_fresh(&tenant, &contents, &at).await;
        if !is_met {
            assert!(spared > 20, "{at}: the removal makes more calls");
            return;
        }
    }
}

#[tokio::test]
async fn a_removal_ends_whatever_call_of_it_dies() {
    fault_at_calls("crash_before_call", 1).await;
}

#[tokio::test]
async fn a_removal_ends_whatever_transaction_of_it_dies_after_its_commit() {
    fault_at_calls("crash_after_commit", 1).await;
}

#[tokio::test]
async fn a_removal_ends_whatever_answer_of_the_store_is_lost() {
    fault_at_calls("store_lost_answers", 1).await;
}

#[tokio::test]
async fn a_removal_ends_after_an_outage_of_the_store() {
    // More failures than the repeats of a call.
    fault_at_calls("store_failures", 12).await;
}

#[tokio::test]
async fn a_removal_ends_although_the_stack_is_killed_at_any_of_its_calls() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    let contents = tenant.calendars().await;
    for spared in [0, 2, 9, 17, 26, 35] {
        fill(&tenant, spared).await;
        world.faults(json!({ "function": "wipe", "spared_calls": spared, "stalled_calls": 1 })).await;
        let job = begin(&tenant.key).await;
        let stalls = tokio::select! {
            () = world.until_stalled() => true,
            () = world.advance_s(SETTLING_S + 1) => false,
        };
        if stalls {
            world.kill_and_restart().await;
        } else {
            assert!(spared > 20, "the removal makes more than {spared} calls");
            world.clear_faults().await;
        }
        end(&world, &tenant.key, &job).await;
        assert_fresh(&tenant, &contents, &format!("killed after {spared} calls")).await;
    }
}

#[tokio::test]
async fn a_removal_ends_although_its_messages_come_twice() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    let contents = tenant.calendars().await;
    fill(&tenant, 0).await;
    world.faults(json!({ "duplicate_messages": true })).await;
    remove(&world, &tenant.key).await;
    world.faults(json!({ "duplicate_messages": false })).await;
    assert_fresh(&tenant, &contents, "twice").await;
    fill(&tenant, 1).await;
    world.advance_s(600).await;
    tenant.key.get(&format!("/v1/clients/{}", tenant.client(1))).await.expect(200);
}

/// Asserts that writes are refused if a removal is said to run, and are accepted otherwise.
async fn assert_refused_if_running(world: &World, key: &Caller, at: &str) -> bool {
    let is_running = key.get(DATA).await.body["status"] == "running";
    let email = format!("client-{}@clients.example", world.number());
    let reply = key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).await;
    match is_running {
        true => drop(reply.refused(409, "test_data_wiping")),
        false => assert_eq!(reply.status, 201, "{at}: {}", reply.text),
    }
    is_running
}

#[tokio::test]
async fn an_order_that_dies_has_begun_the_removal_or_has_not_and_a_repeat_joins_it() {
    let world = start(Mode::Test).await;
    let ada = visitor(&world, "ada");
    let (key, second) = (ada.partner_key().await, ada.partner_key().await);
    let mut begun = 0;
    for spared in 0..14 {
        let at = format!("after {spared} calls");
        world.faults(json!({ "function": "sandbox", "spared_calls": spared, "crash_before_call": 1 })).await;
        let reply = key.delete(DATA).await;
        world.clear_faults().await;
        // Without a repeat, the removal refuses the workspace's writes before it begins.
        world.advance_s(ORDERED_S).await;
        for key in [&key, &second] {
            begun += usize::from(assert_refused_if_running(&world, key, &at).await);
        }
        let is_running = key.get(DATA).await.body["status"] == "running";
        let job = begin(&key).await;
        if reply.status == 202 && is_running {
            assert_eq!(reply.str("job"), job, "{at}");
        }
        end(&world, &key, &job).await;
        world.advance_s(60).await;
        assert_eq!(key.get("/v1/ping").await.expect(200).body["active_clients"], 0, "{at}");
        if reply.status == 202 {
            assert!(begun > 0);
            return;
        }
    }
    panic!("the order makes more calls");
}

#[tokio::test]
async fn a_removal_that_was_ordered_and_not_repeated_ends_by_itself() {
    let world = start(Mode::Test).await;
    let ada = visitor(&world, "ada");
    let (key, second) = (ada.partner_key().await, ada.partner_key().await);
    for spared in 0..14 {
        let client = format!("client-{spared}");
        store(&key, [Fact::client("ada", &client)]).await;
        world.faults(json!({ "function": "sandbox", "spared_calls": spared, "crash_before_call": 1 })).await;
        let reply = key.delete(DATA).await;
        world.clear_faults().await;
        let is_running = key.get(DATA).await.body["status"] == "running";
        world.advance_s(600).await;
        let status = key.get(&format!("/v1/clients/{client}")).await.status;
        assert_eq!(status, if is_running { 404 } else { 200 }, "after {spared} calls");
        for key in [&key, &second] {
            store(key, [Fact::client("ada", &format!("{client}-after"))]).await;
        }
        if reply.status == 202 {
            return;
        }
        remove(&world, &key).await;
    }
    panic!("the order makes more calls");
}
