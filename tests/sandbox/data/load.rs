//! A removal while others write: whatever was accepted before it is removed, and whatever comes meanwhile is refused.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::NaiveDate;
use domain::mode::Mode;
use futures::future::{join, join_all};
use serde_json::{Value, json};

use super::tenant::Tenant;
use super::{begin, end};
use crate::sandbox::{EVENTS, FACTS, batch, record, start, store};
use crate::world::sweep::{check_in, daily_log};
use crate::world::{Call, Fact, Receiver, until, uuid};

/// Kinds of writes.
const KINDS: usize = 5;
/// Writers of each kind.
const WRITERS: usize = 2;
/// Writes that are accepted before the removal is ordered.
const ACCEPTED: usize = 30;
/// Writes of a writer at most.
const MOST_WRITES: usize = 200;
/// More than the calls of a write of these kinds up to its commit.
const CALLS: usize = 8;

fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 2).unwrap()
}

/// The write of a kind with a number.
fn write(tenant: &Tenant<'_>, kind: usize, number: usize) -> Call {
    let (name, once) = (&tenant.name, format!("{kind}-{number}"));
    let of_crm = |path: &str, body: Value| tenant.crm.post(path, body).idempotent(&once);
    match kind {
        0 => tenant.create(number),
        1 => of_crm("/v1/crm/contacts", json!({ "name": "Lee", "email": format!("lead-{number}@{name}.example") })),
        2 => of_crm("/v1/crm/opportunities", json!({ "contactId": uuid(1), "name": format!("{name} {number}") })),
        3 => {
            let client = tenant.client(number);
            let facts = [Fact::client("", &client), daily_log(&client, day())];
            tenant.key.post(FACTS, batch(facts)).idempotent(&once)
        }
        _ => tenant.key.post(EVENTS, json!({ "type": "contact_created", "contact_id": uuid(1) })).idempotent(&once),
    }
}

#[tokio::test]
async fn nothing_is_left_of_what_writers_wrote_until_they_were_refused() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    store(&tenant.key, [Fact::contact("", &uuid(1))]).await;
    let accepted = AtomicUsize::new(0);
    // Returns true once a write is refused.
    let writer = async |kind: usize, first: usize| {
        for number in (0..MOST_WRITES).map(|number| first + WRITERS * number) {
            let reply = write(&tenant, kind, number).await;
            match reply.status {
                200..300 => {
                    accepted.fetch_add(1, Ordering::Relaxed);
                }
                409 if reply.body["code"] == "test_data_wiping" => return true,
                _ => panic!("kind {kind}: {}", reply.text),
            }
        }
        false
    };
    let writers = join_all((0..KINDS * WRITERS).map(|number| writer(number / WRITERS, number % WRITERS)));
    let removal = async {
        until("some writes are accepted", async || accepted.load(Ordering::Relaxed) >= ACCEPTED).await;
        begin(&tenant.key).await
    };
    let (refused, job) = join(writers, removal).await;
    assert!(refused.iter().all(|refused| *refused), "each writer is refused in the end: {refused:?}");
    assert!(!tenant.leftovers().await.is_empty());
    end(&world, &tenant.key, &job).await;
    world.advance_s(120).await;
    let left = tenant.leftovers().await;
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(record(&world, "wiped").await["client_count"]["N"], "0");
    assert_eq!(world.table("outbox").await, [] as [Value; 0]);
    assert_eq!(world.items("clients", "INTAKE#").await, [] as [Value; 0]);
    // The same writes are new ones afterwards.
    let made = tenant.create(0).await.expect(201);
    assert!(!made.is_replay());
}

#[tokio::test]
async fn a_write_that_was_under_way_at_the_order_is_removed_too() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    let mut stalled = 0;
    for (kind, function) in [(0, "clients"), (1, "crm-contacts"), (3, "sandbox"), (4, "sandbox")] {
        for spared in 1..CALLS {
            let at = format!("{function} after {spared} calls");
            store(&tenant.key, [Fact::contact("", &uuid(1))]).await;
            world.faults(json!({ "function": function, "spared_calls": spared, "stalled_calls": 1 })).await;
            let under_way = tokio::spawn(write(&tenant, kind, 1_000 * kind + spared).into_future());
            let stalls = tokio::select! {
                () = world.until_stalled() => true,
                () = until("the write ends", async || under_way.is_finished()) => false,
            };
            if stalls {
                stalled += 1;
            } else {
                // The order must not meet the fault.
                world.clear_faults().await;
            }
            let job = begin(&tenant.key).await;
            world.clear_faults().await;
            let reply = under_way.await.unwrap();
            assert!(reply.status < 300, "{at}: {}", reply.text);
            end(&world, &tenant.key, &job).await;
            world.advance_s(120).await;
            let left = tenant.leftovers().await;
            assert!(left.is_empty(), "{at}: {left:#?}");
            assert_eq!(record(&world, "wiped").await["client_count"]["N"], "0", "{at}");
            assert_eq!(world.items("clients", "INTAKE#").await, [] as [Value; 0], "{at}");
        }
    }
    assert!(stalled > 12, "most writes were under way: {stalled}");
}

#[tokio::test]
async fn facts_of_the_bus_that_meet_a_removal_at_work_leave_nothing_of_the_clients_that_go() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    for round in 0..6 {
        let at = world.now().await;
        let clients: Vec<String> = (0..8).map(|number| tenant.client(100 * round + number)).collect();
        world.apply(clients.iter().map(|client| Fact::client("wiped", client)).collect::<Vec<_>>()).await;
        let job = begin(&tenant.key).await;
        world.advance_s(25).await;
        // The removal takes some time, in which the facts come.
        world.faults(json!({ "function": "wipe", "store_latency_ms": 2 + round })).await;
        let facts = async {
            for client in &clients {
                world
                    .publish([
                        check_in(client, &format!("{client}-k"), at),
                        daily_log(client, day()),
                        daily_log(client, at.date_naive()),
                    ])
                    .await;
            }
        };
        join(world.advance_s(5), facts).await;
        world.clear_faults().await;
        end(&world, &tenant.key, &job).await;
        world.advance_s(20 * 60).await;
        // The clients are gone, so what waited for them is set aside.
        for aside in world.set_aside().await {
            assert!(aside["reason"].as_str().unwrap().ends_with("has not been seen"), "{aside}");
        }
        let left = tenant.leftovers().await;
        assert!(left.is_empty(), "round {round}: {left:#?}");
    }
}

#[tokio::test]
async fn a_removal_that_takes_longer_than_a_call_goes_on_in_parts() {
    const CLIENTS: usize = 60;
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    let clients: Vec<Fact> =
        (0..CLIENTS).map(|number| Fact::client("", &tenant.client(number)).with("backfill", true)).collect();
    for clients in clients.chunks(20) {
        store(&tenant.key, clients.to_vec()).await;
    }
    assert_eq!(record(&world, "wiped").await["client_count"]["N"], CLIENTS.to_string());
    let job = begin(&tenant.key).await;
    let before = world.calls("wipe").await.len();
    // A part ends after ten seconds of the machine's time.
    world.faults(json!({ "function": "wipe", "store_latency_ms": 40 })).await;
    end(&world, &tenant.key, &job).await;
    world.clear_faults().await;
    assert!(world.calls("wipe").await.len() - before >= 3, "two parts, and the end");
    let left = tenant.leftovers().await;
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(record(&world, "wiped").await["client_count"]["N"], "0");
}
