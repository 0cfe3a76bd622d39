//! The application's facts: delivered at least once, in any order, and stored without unknown fields.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, event};
use crate::crm::contacts::merges::{merged, merged_into};
use crate::world::{Fact, Receiver, World, fact, ids, uuid};

/// A text that no table, queue or log may hold.
const SECRET: &str = "fact-holds-a-secret";

#[tokio::test]
async fn a_fact_seen_twice_has_one_effect() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    ada.endpoint(&receiver.url(), "identifiers").await;
    let key = ada.partner_key().await;
    let saved = Fact::client("ada", "c1").with("id", "fact-1").with("occurred_at", world.timestamp_in(0).await);
    world.apply([saved.clone(), saved.clone()]).await;
    world.apply([saved]).await;
    assert_eq!(receiver.hooks().len(), 1);
    assert_eq!(key.get("/v1/ping").await.body["active_clients"], 1);
    assert_eq!(key.get("/v1/clients").await.body["count"], 1);
}

#[tokio::test]
async fn a_repeated_fact_undoes_neither_an_equally_old_fact_nor_an_api_write() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (key, partner) = (ada.crm_key().await, ada.partner_key().await);
    let at = world.timestamp_in(3600).await;
    let contact = |id: &str, name: &str| {
        Fact::contact("ada", &uuid(1)).with("name", name).with("id", id).with("occurred_at", at.as_str())
    };
    let client = |id: &str, name: &str| {
        Fact::client("ada", "c1").with("full_name", name).with("id", id).with("occurred_at", at.as_str())
    };
    let names = async || {
        let contacts = key.get("/v1/crm/contacts").await.expect(200).body;
        let client = partner.get("/v1/clients/c1").await.expect(200).body;
        [contacts["data"][0]["name"].clone(), client["full_name"].clone()]
    };
    let first = [contact("a", "First"), client("b", "First")];
    // Side by side in a batch, and in separate batches.
    world
        .apply(first.iter().cloned().chain([contact("c", "Second"), client("d", "Second")]).chain(first.clone()))
        .await;
    assert_eq!(names().await, ["Second", "Second"]);
    world.apply(first.clone()).await;
    assert_eq!(names().await, ["Second", "Second"]);
    let path = format!("/v1/crm/contacts/{}", uuid(1));
    key.patch(&path, json!({ "name": "Third" })).idempotent("third").await.expect(200);
    world.apply([contact("c", "Second")]).await;
    assert_eq!(names().await[0], "Third");
    // After two weeks the fact's id is forgotten, and only its time counts.
    world.down_for(TimeDelta::days(14)).await;
    world.advance_s(60).await;
    world.apply(first).await;
    assert_eq!(names().await[1], "First");
}

#[tokio::test]
async fn a_malformed_fact_is_set_aside_at_once_unlogged_and_the_others_apply() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let good = |id: &str| Fact::client("ada", id);
    let malformed = [
        ("DetailType", fact("client.exploded", json!({ "client_id": "c" }))),
        ("DetailType", fact("Greta Garbo has left", json!({ "client_id": "c" }))),
        ("id", good("m2").with("id", "Greta Garbo 1905")),
        ("coach_id", good("m1").without("coach_id")),
        (
            "entitlements.gym",
            world.coach("x").with("entitlements", json!({ "partner_api": true, "pro_crm": true })).into_fact(),
        ),
    ];
    let mut facts = vec![good("c1")];
    facts.extend(malformed.iter().map(|(_, fact)| fact.clone()));
    facts.push(good("c2"));
    world.apply(facts).await;
    assert_eq!(key.get("/v1/clients").await.body["count"], 2);
    let set_aside = world.set_aside().await;
    assert_eq!(set_aside.len(), malformed.len());
    for (reason, fact) in malformed {
        let found = set_aside.iter().any(|aside| {
            aside["detail-type"] == fact.detail_type
                && aside["reason"].as_str().is_some_and(|text| text.contains(reason))
        });
        assert!(found, "{reason} in {set_aside:?}");
    }
    assert!(!world.log().contains("Garbo"), "{}", world.log());
}

#[tokio::test]
async fn a_fact_waits_for_its_workspace() {
    let world = World::start().await;
    // Another workspace has a contact with the same id.
    let eve = world.coach("eve").await.crm_key().await;
    world.apply([Fact::contact("eve", &uuid(1))]).await;
    let at = world.midnight_in(2).await;
    world
        .apply([
            Fact::client("ada", "c1"),
            merged(1, 2),
            Fact::contact("ada", &uuid(3)),
            Fact::pipeline("ada"),
            Fact::opportunity("ada", &uuid(4), &uuid(3)),
            Fact::workflow("ada", &uuid(5)),
            Fact::calendar("ada", &uuid(CALENDAR)),
            event("ada", &uuid(6), Some(CALENDAR), at, 60),
            world.coach("bob").team("red").into_fact(),
        ])
        .await;
    assert!(world.set_aside().await.is_empty());
    world.advance_s(14 * 60).await;
    assert!(world.set_aside().await.is_empty());
    let ada = world.coach("ada").await;
    let (partner, crm) = (ada.partner_key().await, ada.crm_key().await);
    world.team("red", 1).await;
    world.advance_s(60).await;
    assert_eq!(partner.get("/v1/clients").await.expect(200).body["count"], 1);
    for (list, id) in
        [("contacts", 3), ("opportunities", 4), ("workflows", 5), ("calendars", CALENDAR), ("bookings", 6)]
    {
        assert_eq!(ids(&crm.get(&format!("/v1/crm/{list}")).await.expect(200).body), [uuid(id)], "{list}");
    }
    assert_eq!(merged_into(&world, &crm, 1).await, uuid(2));
    assert_eq!(ids(&eve.get("/v1/crm/contacts").await.expect(200).body), [uuid(1)]);
    world.settings_of("bob").await.get("/settings/keys").await.expect(200);
    world.advance_s(3600).await;
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn a_waiting_fact_survives_a_lost_answer_of_the_store() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let check_in = |number: u32| {
        let detail = json!({
            "client_id": format!("c{number}"), "check_in_id": "one", "submitted_at": "2026-01-02T00:00:00Z", "scores": {}, "grades": {},
        });
        fact("check_in.submitted", detail)
    };
    for spared in 0..8 {
        let lost = json!({ "function": "ingest", "spared_calls": spared, "store_lost_answers": 1 });
        world.faults(lost).await;
        world.apply([check_in(spared)]).await;
        world.faults(json!({ "function": "", "spared_calls": 0, "store_lost_answers": 0 })).await;
        world.apply([Fact::client("ada", &format!("c{spared}"))]).await;
        world.advance_s(16 * 60).await;
        let found = key.get(&format!("/v1/clients/c{spared}/check-ins")).await.expect(200);
        assert_eq!(found.body["count"], 1, "the answer of call {spared} was lost");
    }
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn a_fact_whose_workspace_does_not_come_is_set_aside_after_15_minutes() {
    let world = World::start().await;
    let unknown = Fact::client("nobody", "c1").with("weight_log", SECRET);
    world.apply([unknown, world.coach("ada").team("nowhere").into_fact()]).await;
    world.advance_s(14 * 60).await;
    assert!(world.set_aside().await.is_empty());
    world.advance_s(3 * 60).await;
    let set_aside = world.set_aside().await;
    let mut reasons: Vec<&str> = set_aside.iter().map(|aside| aside["reason"].as_str().unwrap()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["coach_id nobody has not been seen", "team_id nowhere has not been seen"]);
    assert!(set_aside.iter().all(|aside| !aside.to_string().contains(SECRET)));
    world.coach("nobody").await;
    world.advance_s(3600).await;
    assert!(world.items("clients", "CLIENT#").await.is_empty());
}

#[tokio::test]
async fn a_client_of_the_application_is_a_new_client_and_a_backfill_is_not() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    world.coach("ada").await.endpoint(&receiver.url(), "identifiers").await;
    world.apply([Fact::client("ada", "old").with("backfill", true)]).await;
    assert!(receiver.hooks().is_empty());
    world.apply([Fact::client("ada", "c1"), Fact::client("ada", "c2").with("origin", "import")]).await;
    let mut received: Vec<(String, String)> = receiver
        .hooks()
        .iter()
        .map(|hook| (hook.json()["data"]["client"]["id"].to_string(), hook.json()["data"]["source"].to_string()))
        .collect();
    received.sort();
    assert_eq!(
        received,
        [("\"c1\"".to_owned(), "\"application\"".to_owned()), ("\"c2\"".to_owned(), "\"import\"".to_owned())]
    );
    world.apply([Fact::client("ada", "old"), Fact::client("ada", "c1").with("full_name", "Changed")]).await;
    assert_eq!(receiver.hooks().len(), 2, "an update emits no new_client");
}

#[tokio::test]
async fn an_address_taken_elsewhere_is_stored_and_stays_with_its_first_holder() {
    let world = World::start().await;
    let ada = world.coach("ada").await.partner_key().await;
    let bob = world.coach("bob").await.partner_key().await;
    let first = ada.post("/v1/clients", json!({ "email": "same@example.com" })).await.expect(201);
    world.apply([Fact::client("bob", "c2").with("email", "Same@Example.com")]).await;
    assert!(world.set_aside().await.is_empty());
    assert_eq!(bob.get("/v1/clients/c2").await.expect(200).str("email"), "Same@Example.com");
    let of_ada = ada.get("/v1/clients?email=same@example.com").await.expect(200);
    assert_eq!(of_ada.body["clients"][0]["client_id"], first.body["client_id"]);
    let of_bob = bob.get("/v1/clients?email=same@example.com").await.expect(200);
    assert_eq!(of_bob.body["clients"][0]["client_id"], "c2");
    // The first holder gives up the address, but it is not free while another client has it.
    let id = first.str("client_id");
    world.apply([Fact::client("ada", id).with("email", "other@example.com")]).await;
    ada.post("/v1/clients", json!({ "email": "same@example.com" })).idempotent("k1").await.refused(409, "email_taken");
    world.apply([Fact::client("bob", "c2").with("email", Value::Null)]).await;
    ada.post("/v1/clients", json!({ "email": "same@example.com" })).idempotent("k2").await.expect(201);
}

#[tokio::test]
async fn the_applications_record_is_stored_unchanged() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for (id, member, value) in [
        ("quoted", "email", "\"q x\"@x.example"),
        ("literal", "email", "a@[127.0.0.1]"),
        ("padded", "email", "sp@x.example "),
        ("none", "email", "not an address"),
        ("unnamed", "full_name", ""),
    ] {
        world.apply([Fact::client("ada", id).with(member, value)]).await;
        assert_eq!(key.get(&format!("/v1/clients/{id}")).await.expect(200).body[member], value);
    }
    world.apply([Fact::contact("ada", &uuid(1)).with("name", "")]).await;
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn any_country_has_workspaces_also_one_without_phone_numbers() {
    let world = World::start().await;
    for country in ["UM", "AQ", "BV", "TF", "GS", "XK"] {
        world.apply([world.coach(&format!("in-{country}")).with("country", country).into_fact()]).await;
        let settings = world.settings_of(&format!("in-{country}")).await;
        let status = settings.get("/settings/keys").await.status;
        assert_eq!(status == 200, country != "XK", "{country}: {status}");
    }
    let set_aside = world.set_aside().await;
    assert_eq!(set_aside.len(), 1, "XK is not assigned: {set_aside:?}");
}
