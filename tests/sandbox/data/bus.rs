//! Facts of the application during a removal: they wait for its end, and count then.

use chrono::NaiveDate;
use domain::mode::Mode;
use serde_json::{Value, json};

use super::{begin, end, remove, status};
use crate::sandbox::{record, send, start, store, visitor};
use crate::world::sweep::{check_in, daily_log};
use crate::world::{Caller, Fact, World, ids, uuid};

/// Longer than any fact waits.
const WAITED_S: u64 = 20 * 60;

/// A workspace of the bus with a client, whose removal has begun. Returns a key of each scope and the job.
async fn begun(world: &World) -> (Caller, Caller, String) {
    let ada = world.coach("ada").await;
    let (key, crm) = (ada.partner_key().await, ada.crm_key().await);
    world.apply([Fact::client("ada", "c1"), Fact::contact("ada", &uuid(1))]).await;
    let job = begin(&key).await;
    world.settle().await;
    (key, crm, job)
}

fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 2).unwrap()
}

#[tokio::test]
async fn facts_of_the_bus_wait_for_the_end_of_a_removal_and_are_stored_then() {
    let world = start(Mode::Test).await;
    world.coach("bob").await;
    let (key, crm, job) = begun(&world).await;
    world
        .apply([
            Fact::client("ada", "c2"),
            daily_log("c2", day()),
            Fact::contact("ada", &uuid(2)),
            Fact::workflow("ada", &uuid(3)),
            Fact::calendar("ada", &uuid(4)),
            Fact::pipeline("ada"),
            Fact::opportunity("ada", &uuid(5), &uuid(2)),
            Fact::client("bob", "of-bob"),
        ])
        .await;
    key.get("/v1/clients/c2").await.refused(404, "not_found");
    assert_eq!(ids(&crm.get("/v1/crm/contacts").await.expect(200).body), [uuid(1)]);
    let bob = visitor(&world, "bob").partner_key().await;
    bob.get("/v1/clients/of-bob").await.expect(200);
    end(&world, &key, &job).await;
    world.advance_s(120).await;
    key.get("/v1/clients/c2").await.expect(200);
    key.get("/v1/clients/c1").await.refused(404, "not_found");
    assert_eq!(key.get("/v1/clients/c2/daily-logs").await.expect(200).body["count"], 1);
    for (list, id) in [("contacts", 2), ("workflows", 3), ("opportunities", 5)] {
        assert_eq!(ids(&crm.get(&format!("/v1/crm/{list}")).await.expect(200).body), [uuid(id)], "{list}");
    }
    assert!(ids(&crm.get("/v1/crm/calendars").await.expect(200).body).contains(&uuid(4)));
    assert_eq!(key.get("/v1/ping").await.expect(200).body["active_clients"], 1);
    world.advance_s(WAITED_S).await;
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
    assert_eq!(world.messages(), [] as [(String, String); 0]);
}

#[tokio::test]
async fn facts_of_the_bus_about_a_client_who_is_there_still_wait_too() {
    let world = start(Mode::Test).await;
    let (key, _, job) = begun(&world).await;
    // The application sends the client and the history again.
    let at = world.now().await;
    world.apply([Fact::client("ada", "c1"), check_in("c1", "k1", at), daily_log("c1", day())]).await;
    assert_eq!(status(&key, &job).await, "running");
    end(&world, &key, &job).await;
    world.advance_s(120).await;
    key.get("/v1/clients/c1").await.expect(200);
    for below in ["check-ins", "daily-logs"] {
        let read = key.get(&format!("/v1/clients/c1/{below}")).await.expect(200);
        assert_eq!(read.body["count"], 1, "{below}");
    }
    world.advance_s(WAITED_S).await;
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_client_who_is_handed_over_during_a_removal_is_the_other_coachs_like_any_other() {
    let world = start(Mode::Test).await;
    let bob = world.coach("bob").await.partner_key().await;
    let (key, _, job) = begun(&world).await;
    world.apply([Fact::client("bob", "c1")]).await;
    end(&world, &key, &job).await;
    bob.get("/v1/clients/c1").await.expect(200);
    world.apply([daily_log("c1", day()), check_in("c1", "k1", world.now().await)]).await;
    for below in ["check-ins", "daily-logs"] {
        assert_eq!(bob.get(&format!("/v1/clients/c1/{below}")).await.expect(200).body["count"], 1, "{below}");
    }
    world.advance_s(WAITED_S).await;
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
    assert_eq!(key.get("/v1/ping").await.expect(200).body["active_clients"], 0);
    assert_eq!(bob.get("/v1/ping").await.expect(200).body["active_clients"], 1);
}

#[tokio::test]
async fn a_workspace_of_the_bus_that_comes_during_a_removal_counts_afterwards() {
    let world = start(Mode::Test).await;
    let (key, _, job) = begun(&world).await;
    world.coach("ada").with("name", "Renamed").client_cap(3).await;
    end(&world, &key, &job).await;
    world.advance_s(120).await;
    assert_eq!(key.get("/v1/key").await.expect(200).body["workspace"]["name"], "Renamed");
    assert_eq!(record(&world, "ada").await["client_cap"]["N"], "3");
    world.coach("ada").with("name", "Later").await;
    assert_eq!(key.get("/v1/key").await.expect(200).body["workspace"]["name"], "Later");
}

#[tokio::test]
async fn afterwards_a_fact_id_of_the_route_is_new_and_one_of_the_bus_is_not() {
    let world = start(Mode::Test).await;
    let key = world.coach("ada").await.partner_key().await;
    let fact = |client: &str| Fact::client("ada", client).with("id", format!("fact-{client}"));
    world.apply([fact("by-bus")]).await;
    store(&key, [fact("by-route")]).await;
    remove(&world, &key).await;
    world.apply([fact("by-bus")]).await;
    key.get("/v1/clients/by-bus").await.refused(404, "not_found");
    world.apply([fact("by-bus").with("id", "another")]).await;
    key.get("/v1/clients/by-bus").await.expect(200);
    assert_eq!(send(&key, [fact("by-route")]).await[0]["result"], "stored");
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
}

#[tokio::test]
async fn the_contents_of_a_workspace_of_the_bus_are_the_first_ones_after_a_removal() {
    let world = start(Mode::Test).await;
    let ada = world.coach("ada").with("crm", Value::Null).not_entitled().client_cap(7).await;
    let (key, crm) = (ada.partner_key().await, ada.crm_key().await);
    key.get("/v1/ping").await.refused(402, "partner_api_not_entitled");
    remove(&world, &key).await;
    key.get("/v1/ping").await.expect(200);
    assert_eq!(ids(&crm.get("/v1/crm/calendars").await.expect(200).body).len(), 2);
    let shown = ada.settings().await.get("/settings/workspace").await.expect(200).body;
    assert_eq!((&shown["name"], &shown["crm_configured"]), (&json!("Coach ada"), &json!(true)));
    assert_eq!(record(&world, "ada").await["client_cap"]["N"], "100");
}
