//! `/v1/test/data`: the removal of everything that a workspace of a sandbox holds. `load` has writers at work, `faults`
//! calls that die, `bus` facts of the application, `again` what comes after, `unused` the schedule.

mod again;
mod bus;
mod faults;
mod load;
mod tenant;
mod unused;

use std::future::IntoFuture;

use domain::mode::Mode;
use edge::routes::{Access, served};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::assistants::{Assistant, MODERN};
use crate::event_feed::{reader, whole_feed};
use crate::feed::erasure::ENDED_S;
use crate::sandbox::{DATA, MAIL, patch, record, start, store, visitor};
use crate::world::{Caller, Fact, Receiver, World, members, uuid};
use tenant::Tenant;

/// Steps towards the end of a removal, in seconds. Messages of calls that die come again after some minutes.
const STEPS_S: [(usize, u64); 2] = [(12, 5), (40, 30)];

/// Orders a removal. Returns its job.
async fn begin(key: &Caller) -> String {
    let begun = key.delete(DATA).await.expect(202);
    assert_eq!(begun.members(), ["job"]);
    begun.str("job").to_owned()
}

/// The status of the latest removal, which is this one.
async fn status(key: &Caller, job: &str) -> String {
    let read = key.get(DATA).await.expect(200);
    assert_eq!(read.members(), ["job", "status"]);
    assert_eq!(read.str("job"), job);
    read.str("status").to_owned()
}

/// Moves the clock until a removal is done.
async fn end(world: &World, key: &Caller, job: &str) {
    for (steps, seconds) in STEPS_S {
        for _ in 0..steps {
            if status(key, job).await == "done" {
                return;
            }
            world.advance_s(seconds).await;
        }
    }
    panic!("the removal does not end");
}

/// Removes the data of the key's workspace.
async fn remove(world: &World, key: &Caller) {
    let job = begin(key).await;
    end(world, key, &job).await;
    world.settle().await;
}

#[tokio::test]
async fn a_removal_leaves_keys_endpoints_and_the_audit_trail_and_lays_the_first_contents() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let wiped = Tenant::new(&world, &receiver, "wiped").await;
    let kept = Tenant::new(&world, &receiver, "kept").await;
    let contents = wiped.calendars().await;
    let client = wiped.fill().await;
    kept.fill().await;
    world.advance_s(ENDED_S).await;
    patch(&wiped.key, json!({ "entitlements": { "gym": false }, "crm_configured": false, "client_cap": 5 })).await;
    let settings = wiped.coach.settings().await;
    let trail = settings.get("/settings/audit?limit=200").await.expect(200).body;
    let before = wiped.leftovers().await;
    for table in ["workspaces", "clients", "records", "crm", "deliveries", "events", "idempotency", "facts"] {
        assert!(
            before.iter().any(|item| item.starts_with(&format!("{table} "))),
            "fill the table {table}: {before:#?}"
        );
    }
    assert_eq!(world.items("clients", &format!("INTAKE#{client}")).await.len(), 1);
    let (of_kept, sent) = (kept.items().await, receiver.hooks().len());
    remove(&world, &wiped.key).await;

    let left = wiped.leftovers().await;
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(world.items("clients", &format!("INTAKE#{client}")).await, [] as [Value; 0]);
    assert_eq!(world.table("outbox").await, [] as [Value; 0]);
    assert_eq!(kept.items().await, of_kept);
    assert_eq!(receiver.hooks().len(), sent, "a removal tells nobody");
    // Counts, switches and the first contents are as in the beginning.
    let stored = record(&world, "wiped").await;
    for (member, value) in [("client_count", "0"), ("active_count", "0"), ("client_cap", "100")] {
        assert_eq!(stored[member]["N"], value, "{member}");
    }
    let shown = settings.get("/settings/workspace").await.expect(200).body;
    assert_eq!(shown["entitlements"], json!({ "partner_api": true, "pro_crm": true, "gym": true }));
    assert_eq!((&shown["crm_configured"], &shown["endpoints"]["count"]), (&json!(true), &json!(1)));
    assert_eq!(wiped.calendars().await, contents);
    let laid = world.items("workspaces", "COACH#wiped").await;
    for beginning in ["PIPELINE#", "PROGRAMME#", "MAIL#", "AUTOMATION", "WIPED#"] {
        let found = laid.iter().filter(|item| item["sk"]["S"].as_str().unwrap().starts_with(beginning)).count();
        let expected = usize::from(["PIPELINE#", "PROGRAMME#"].contains(&beginning));
        assert_eq!(found, expected, "{beginning}");
    }
    // No list shows anything.
    assert_eq!(wiped.key.get("/v1/ping").await.expect(200).body["active_clients"], 0);
    assert_eq!(wiped.key.get("/v1/clients").await.expect(200).body["count"], 0);
    for list in ["contacts", "opportunities", "bookings", "workflows"] {
        assert_eq!(wiped.crm.get(&format!("/v1/crm/{list}")).await.expect(200).body["data"], json!([]), "{list}");
    }
    assert_eq!(wiped.key.get(MAIL).await.expect(200).body["data"], json!([]));
    assert_eq!(whole_feed(&wiped.reader).await, [] as [Value; 0]);
    assert_eq!(wiped.coach.deliveries(&wiped.endpoint).await, [] as [Value; 0]);
    assert_eq!(settings.get("/settings/deliveries").await.expect(200).body["data"], json!([]));
    // The settings show and do the same as before.
    assert_eq!(settings.get("/settings/audit?limit=200").await.expect(200).body, trail);
    assert_ne!(wiped.key.get("/v1/requests").await.expect(200).body["data"], json!([]));
    store(&wiped.key, [Fact::client("", "after")]).await;
    world.settle().await;
    let hooks = receiver.hooks();
    let [hook] = &hooks[sent..] else { panic!("one request: {}", hooks.len()) };
    assert!(hook.path == "/hook/wiped" && hook.is_signed_with(&wiped.endpoint.secret), "{}", hook.path);
    assert_eq!(whole_feed(&wiped.reader).await.len(), 1);
}

#[tokio::test]
async fn meanwhile_each_write_is_refused_and_each_read_is_answered() {
    let world = start(Mode::Test).await;
    let (ada, bob) = (visitor(&world, "ada"), visitor(&world, "bob"));
    let (partner, crm, settings) = (ada.partner_key().await, ada.crm_key().await, ada.settings().await);
    let (reader, other) = (reader(&ada, "identifiers").await, bob.partner_key().await);
    store(&partner, [Fact::client("ada", "c1")]).await;
    begin(&partner).await;
    let mut refused = 0;
    for route in served(Mode::Test) {
        let caller = match route.access {
            Access::Partner(_) | Access::AnyKey | Access::Sandbox => &partner,
            Access::Crm(_) => &crm,
            Access::Events => &reader,
            Access::Session => &settings,
            Access::Assistant | Access::Public => continue,
        };
        let path = route.path.replace("{clientId}", "c1").replace("{id}", &uuid(1)).replace("{delivery_id}", "dlv_1");
        let call = caller.call(route.method, &path);
        let call = if route.method == "GET" { call } else { call.json(&json!({})) };
        let reply = call.idempotent(&format!("meanwhile-{refused}")).await;
        if route.writes() && route.path != DATA {
            let reply = reply.refused(409, "test_data_wiping");
            assert_eq!(reply.header("retry-after"), Some("5"), "{route}");
            assert!(reply.header("ratelimit").is_some(), "{route}");
            refused += 1;
        } else {
            assert!(reply.status < 500 && reply.body["code"] != "test_data_wiping", "{route}: {}", reply.text);
        }
    }
    assert!(refused >= 25, "{refused}");
    let body = json!({ "email": "grace@example.com" });
    let told = Assistant::new(&partner, MODERN).refused("create_client", body.clone()).await;
    assert!(told.contains("[test_data_wiping]") && told.contains("Wait 5 s."), "{told}");
    // Reads see what is not removed yet, and another workspace is not concerned.
    partner.get("/v1/clients/c1").await.expect(200);
    other.post("/v1/clients", body.clone()).await.expect(201);
    store(&other, [Fact::client("bob", "c2")]).await;
    assert_eq!(world.table("idempotency").await.len(), 1, "a refusal is not recorded");
    world.advance_s(60).await;
    partner.get("/v1/clients/c1").await.refused(404, "not_found");
    partner.post("/v1/clients", body).idempotent("meanwhile-0").await.refused(409, "email_taken");
    settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" })).await.expect(201);
}

#[tokio::test]
async fn a_repeated_order_joins_the_removal_that_runs_and_a_later_one_begins_another() {
    let world = start(Mode::Test).await;
    let ada = visitor(&world, "ada");
    let (key, crm) = (ada.partner_key().await, ada.crm_key().await);
    key.get(DATA).await.refused(404, "not_found");
    let job = begin(&key).await;
    assert!(job.starts_with("wipe_"), "{job}");
    let orders = [&key, &crm, &key, &crm].map(|caller| caller.delete(DATA).into_future());
    for reply in join_all(orders).await {
        assert_eq!(reply.expect(202).str("job"), job);
    }
    assert_eq!((status(&key, &job).await, status(&crm, &job).await), ("running".to_owned(), "running".to_owned()));
    world.advance_s(20).await;
    assert_eq!(status(&key, &job).await, "running", "what was under way has to end");
    end(&world, &key, &job).await;
    // The messages of the orders that joined do nothing more.
    store(&key, [Fact::client("ada", "c1")]).await;
    world.advance_s(300).await;
    assert_eq!(status(&key, &job).await, "done");
    key.get("/v1/clients/c1").await.expect(200);
    let next = begin(&crm).await;
    assert_ne!(next, job);
    end(&world, &key, &next).await;
    key.get("/v1/clients/c1").await.refused(404, "not_found");
    assert_eq!(members(&key.get(DATA).await.expect(200).body), ["job", "status"]);
}

#[tokio::test]
async fn orders_at_once_begin_one_removal() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let replies = join_all((0..8).map(|_| key.delete(DATA).into_future())).await;
    let jobs: Vec<String> = replies.into_iter().map(|reply| reply.expect(202).str("job").to_owned()).collect();
    assert!(jobs.iter().all(|job| *job == jobs[0]), "{jobs:?}");
    end(&world, &key, &jobs[0]).await;
}

#[tokio::test]
async fn a_removal_is_not_stopped_by_what_the_workspace_may_not_do() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    store(&key, [Fact::client("ada", "c1")]).await;
    patch(&key, json!({ "entitlements": { "partner_api": false, "pro_crm": false }, "client_cap": 0 })).await;
    key.get("/v1/ping").await.refused(402, "partner_api_not_entitled");
    remove(&world, &key).await;
    assert_eq!(key.get("/v1/ping").await.expect(200).body["active_clients"], 0);
}
