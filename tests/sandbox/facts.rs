//! `POST /v1/test/facts`: facts of an integrator count as if the application had sent them. `programmes` compares the
//! two ways.

mod faults;
mod generator;
mod programmes;

use std::collections::BTreeSet;
use std::future::IntoFuture;

use chrono::NaiveDate;
use domain::mode::Mode;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::feed::erasure::{ENDED_S, MARK, application_client, erased, life};
use crate::sandbox::{FACTS, batch, given, send, start, store, visitor};
use crate::world::sweep::daily_log;
use crate::world::{
    CLIENT_EVENTS, Caller, Coach, Endpoint, Fact, Receiver, World, fact, list, members, the_one_answer, uuid,
};

/// Largest accepted body.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// Most facts of a request.
const MOST: usize = 20;

fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 2).unwrap()
}

/// A message of a client.
fn message(client: &str, id: &str) -> Fact {
    let detail = json!({ "client_id": client, "message_id": id, "received_at": "2026-05-01T07:00:00.000Z" });
    fact("message.received", detail)
}

/// Registers an endpoint for all events about clients.
async fn endpoint(coach: &Coach<'_>, receiver: &Receiver, payload_mode: &str) -> Endpoint {
    let body = json!({ "url": receiver.url(), "events": CLIENT_EVENTS, "payload_mode": payload_mode });
    let made = coach.settings().await.post("/settings/webhooks", body).await.expect(201);
    Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() }
}

/// The name of a contact, as the CRM shows it.
async fn name_of(crm: &Caller, contact: &str) -> Value {
    crm.get(&format!("/v1/crm/contacts/{contact}")).await.expect(200).body["contact"]["name"].clone()
}

/// Asserts that no fact waits and none is set aside.
async fn assert_no_message(world: &World) {
    world.settle().await;
    assert_eq!(world.messages(), [] as [(String, String); 0]);
}

#[tokio::test]
async fn each_fact_has_a_result_and_a_refused_one_stops_no_other() {
    let world = start(Mode::Test).await;
    let (ada, bob) = (visitor(&world, "ada"), visitor(&world, "bob"));
    let (key, other) = (ada.partner_key().await, bob.partner_key().await);
    store(&other, [Fact::client("bob", "bobs")]).await;
    let of_bob = other.get("/v1/clients/bobs").await.expect(200).body;
    let first = || Fact::client("ada", "c1").with("id", "f1");
    let with_coach = json!({ "type": "client.erased", "detail": { "coach_id": "ada", "client_id": "c1" } });
    let future = world.timestamp_in(120).await;
    let team = fact("team.saved", json!({ "team_id": "t", "client_cap": 5 }));
    let cases = [
        (given(first()), "stored", ""),
        (given(first()), "unchanged", ""),
        (given(first().with("id", "f2").with("occurred_at", "2020-01-02T03:04:05Z")), "unchanged", ""),
        (
            given(fact("client.exploded", json!({ "client_id": "c1" }))),
            "refused",
            "DetailType is not the name of a fact",
        ),
        (given(first().with("id", "f3").without("full_name")), "refused", "full_name"),
        (given(first().with("id", "f4").with("is_active", "yes")), "refused", "is_active"),
        (with_coach, "refused", "coach_id cannot be given"),
        (given(world.coach("ada").into_fact()), "refused", "PATCH /v1/test/workspace"),
        (given(team), "refused", "team.saved"),
        (given(daily_log("nobody", day())), "refused", "client_id nobody has not been seen"),
        (given(daily_log("bobs", day())), "refused", "client_id bobs is not of this workspace"),
        (given(Fact::client("ada", "bobs")), "refused", "client_id bobs is not of this workspace"),
        (given(erased("bobs")), "refused", "client_id bobs is not of this workspace"),
        (given(daily_log("c1", day()).with("id", "a b")), "refused", "id"),
        (given(daily_log("c1", day()).with("id", 7)), "refused", "id"),
        (given(daily_log("c1", day()).with("occurred_at", "yesterday")), "refused", "occurred_at"),
        (given(daily_log("c1", day()).with("occurred_at", future)), "refused", "must not be in the future"),
        (given(daily_log("c1", day()).with("id", "last").with("notes", "an unknown field")), "stored", ""),
    ];
    let body = json!({ "facts": cases.iter().map(|(fact, ..)| fact).collect::<Vec<_>>() });
    let data = list(key.post(FACTS, body).await.expect(200).body["data"].clone());
    assert_eq!(data.len(), cases.len());
    for ((fact, result, reason), shown) in cases.iter().zip(&data) {
        assert_eq!(members(shown), ["id", "reason", "result"]);
        assert_eq!(shown["result"], *result, "{fact}: {shown}");
        match shown["reason"].as_str() {
            Some(text) => assert!(!reason.is_empty() && text.contains(reason), "{fact}: {shown}"),
            None => assert_eq!((shown["reason"].is_null(), *reason), (true, ""), "{fact}: {shown}"),
        }
        match fact["detail"]["id"].as_str() {
            Some(id) => assert_eq!(shown["id"], id),
            None => assert!(shown["id"].as_str().unwrap().starts_with("fact_"), "{shown}"),
        }
    }
    assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], 1);
    assert_eq!(key.get("/v1/clients/c1/daily-logs").await.expect(200).body["count"], 1);
    assert_eq!(other.get("/v1/clients/bobs").await.expect(200).body, of_bob);
    assert!(world.items("workspaces", "TEAM#").await.is_empty());
    assert!(world.at_rest().await.locations_of("an unknown field").is_empty());
    assert_no_message(&world).await;
}

#[tokio::test]
async fn the_ids_of_facts_are_kept_apart_by_workspace_and_from_those_of_the_bus() {
    let world = start(Mode::Test).await;
    let (ada, bob) = (visitor(&world, "ada"), visitor(&world, "bob"));
    let (of_ada, of_bob) = (ada.crm_key().await, bob.crm_key().await);
    let named = |name: &str| Fact::contact("ada", &uuid(1)).with("id", "f1").with("name", name);
    for (key, name) in [(&of_ada, "One"), (&of_bob, "Two")] {
        store(key, [named(name)]).await;
        assert_eq!(send(key, [named("Again")]).await[0]["result"], "unchanged");
        assert_eq!(name_of(key, &uuid(1)).await, name);
    }
    world.apply([named("Fed").with("occurred_at", world.timestamp_in(60).await)]).await;
    assert_eq!((name_of(&of_ada, &uuid(1)).await, name_of(&of_bob, &uuid(1)).await), (json!("Fed"), json!("Two")));
}

#[tokio::test]
async fn a_missing_id_is_a_new_one_and_a_missing_time_is_now() {
    let world = start(Mode::Test).await;
    let crm = visitor(&world, "ada").crm_key().await;
    let named = |name: &str| Fact::contact("ada", &uuid(1)).with("name", name);
    let null = named("Null").with("id", Value::Null).with("occurred_at", Value::Null);
    let mut ids = BTreeSet::new();
    for (fact, result, name) in [
        (named("First"), "stored", "First"),
        (named("Second"), "stored", "Second"),
        (null, "stored", "Null"),
        (named("Older").with("occurred_at", world.timestamp_in(-60).await), "unchanged", "Null"),
        (named("Newer").with("occurred_at", world.timestamp_in(30).await), "stored", "Newer"),
        (named("Now"), "unchanged", "Newer"),
    ] {
        let shown = send(&crm, [fact]).await.remove(0);
        assert_eq!(shown["result"], result, "{shown}");
        assert_eq!(name_of(&crm, &uuid(1)).await, name);
        let id = shown["id"].as_str().unwrap();
        assert!(id.starts_with("fact_") && ids.insert(id.to_owned()), "{id}");
    }
}

#[tokio::test]
async fn a_batch_of_another_form_is_refused_whole_and_names_the_facts() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let good = given(Fact::client("ada", "c1"));
    let of = |fact: Value| json!({ "facts": [good, fact] });
    for bad in [
        json!({}),
        json!({ "facts": null }),
        json!({ "facts": [] }),
        json!({ "facts": good }),
        json!({ "facts": vec![good.clone(); MOST + 1] }),
        of(Value::Null),
        of(json!("client.saved")),
        of(json!([])),
        of(json!({ "detail": {} })),
        of(json!({ "type": "client.saved" })),
        of(json!({ "type": "", "detail": {} })),
        of(json!({ "type": 7, "detail": {} })),
        of(json!({ "type": "client.saved", "detail": [] })),
        of(json!({ "type": "client.saved", "detail": {}, "coach_id": "ada" })),
        json!({ "facts": [good], "coach_id": "ada" }),
    ] {
        let refused = key.post(FACTS, bad.clone()).await.refused(400, "invalid_request");
        let field = if bad.get("coach_id").is_some() { "coach_id" } else { "facts" };
        assert_eq!(refused.body["field"], field, "{bad}");
    }
    key.post(FACTS, json!([])).await.refused(400, "invalid_json");
    let sized = |body: Vec<u8>| key.call("POST", FACTS).header("content-type", "application/json").body(body);
    sized(vec![b' '; MAX_BODY_BYTES + 1]).await.refused(413, "body_too_large");
    assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], 0);
    let mut longest = json!({ "facts": vec![good; MOST] }).to_string().into_bytes();
    longest.resize(MAX_BODY_BYTES, b' ');
    assert_eq!(list(sized(longest).await.expect(200).body["data"].clone()).len(), MOST);
    assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], 1);
}

#[tokio::test]
async fn an_idempotency_key_stands_for_one_batch_of_one_workspace() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let (ada, bob) = (visitor(&world, "ada"), visitor(&world, "bob"));
    let (key, other) = (ada.partner_key().await, bob.partner_key().await);
    endpoint(&ada, &receiver, "identifiers").await;
    store(&key, [Fact::client("ada", "c1").with("backfill", true)]).await;
    store(&other, [Fact::client("bob", "c2").with("backfill", true)]).await;
    let once = |key: &Caller, client: &str, id: &str| {
        key.post(FACTS, batch([message(client, id), message(client, "second")])).idempotent("one")
    };
    let replies = join_all((0..10).map(|_| once(&key, "c1", "m1").into_future())).await;
    let first = the_one_answer(&replies).clone();
    assert!(list(first.body["data"].clone()).iter().all(|shown| shown["result"] == "stored"), "{}", first.text);
    let again = once(&key, "c1", "m1").await.expect(200);
    assert!(again.is_replay() && again.text == first.text, "{}", again.text);
    once(&key, "c1", "m2").await.refused(409, "idempotency_payload_mismatch");
    let theirs = once(&other, "c2", "m1").await.expect(200);
    assert!(!theirs.is_replay() && theirs.body["data"][0]["result"] == "stored", "{}", theirs.text);
    world.settle().await;
    assert_eq!(receiver.hooks_of("message_received").len(), 2);
    for bad in ["", &"k".repeat(256)] {
        let call = key.post(FACTS, batch([message("c1", "m3")])).idempotent(bad);
        call.await.refused_for("Idempotency-Key");
    }
}

#[tokio::test]
async fn the_events_of_facts_go_out_as_for_facts_of_the_bus() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let (ada, fed) = (visitor(&world, "ada"), visitor(&world, "fed"));
    let key = ada.partner_key().await;
    let one = endpoint(&ada, &receiver, "contact_details").await;
    let other = endpoint(&fed, &receiver, "contact_details").await;
    let lived = |coach: &str, client: &str| {
        let mut facts = vec![Fact::client(coach, client).with("full_name", "Grace").with("email", Value::Null)];
        facts.extend(life(client, "Base"));
        facts.push(life(client, "Base")[3].clone().with("check_in_id", "later").with("grades", json!({ "sleep": 1 })));
        facts.last_mut().unwrap().detail["submitted_at"] = json!("2026-05-02T07:00:00Z");
        facts
    };
    store(&key, lived("ada", "by-route")).await;
    for fact in lived("fed", "by-bus__") {
        world.apply([fact]).await;
    }
    world.settle().await;
    let bodies = |endpoint: &Endpoint| {
        let hooks = receiver.hooks().into_iter().filter(|hook| hook.is_signed_with(&endpoint.secret));
        let mut bodies: Vec<String> = hooks.map(|hook| String::from_utf8(hook.body).unwrap()).collect();
        // The time of a creation is the fact's.
        bodies.retain(|body| !body.contains("new_client"));
        bodies.sort();
        bodies
    };
    let expected: Vec<String> = bodies(&other).iter().map(|body| body.replace("by-bus__", "by-route")).collect();
    assert_eq!(bodies(&one), expected);
    assert_eq!(expected.len(), 5, "{expected:?}");
    assert_eq!(receiver.hooks_of("new_client").len(), 2);
}

#[tokio::test]
async fn an_erasure_by_the_route_leaves_nothing() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let ada = visitor(&world, "ada");
    let key = ada.partner_key().await;
    endpoint(&ada, &receiver, "contact_details").await;
    store(&key, [application_client("c1")]).await;
    store(&key, life("c1", MARK)).await;
    world.settle().await;
    assert!(!world.at_rest().await.locations_of(MARK).is_empty());
    let hooks = receiver.hooks().len();
    store(&key, [erased("c1")]).await;
    world.advance_s(ENDED_S).await;
    let left = world.at_rest().await.locations_of(MARK);
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(world.items("records", "CLIENT#c1").await, [] as [Value; 0]);
    key.get("/v1/clients/c1").await.refused(404, "not_found");
    for shown in send(&key, [vec![application_client("c1")], life("c1", MARK)].concat()).await {
        assert_eq!(shown["result"], "unchanged", "{shown}");
    }
    let left = world.at_rest().await.locations_of(MARK);
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(receiver.hooks().len(), hooks);
    assert_no_message(&world).await;
}

#[tokio::test]
async fn an_erasure_by_the_route_reaches_the_contact_that_the_client_was_and_what_was_answered_about_both() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let ada = visitor(&world, "ada");
    let (key, crm) = (ada.partner_key().await, ada.crm_key().await);
    endpoint(&ada, &receiver, "contact_details").await;
    let email = format!("{MARK}@people.example");
    let body = json!({ "name": format!("{MARK} Hopper"), "email": email });
    let create_contact = || crm.post("/v1/crm/contacts", body.clone()).idempotent("contact");
    let create_client =
        || key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).idempotent("client");
    let contact = create_contact().await.expect(201).body["contact"]["id"].as_str().unwrap().to_owned();
    let merge = json!({ "contact_id": uuid(7), "merged_into": contact });
    let other = Fact::contact("ada", &uuid(7)).with("name", format!("{MARK} Murray"));
    store(&key, [other, fact("contact.merged", merge).with("coach_id", "ada")]).await;
    let client = create_client().await.expect(201).str("client_id").to_owned();
    world.settle().await;
    store(&key, [erased(&client)]).await;
    world.advance_s(ENDED_S).await;
    let left = world.at_rest().await.locations_of(MARK);
    assert!(left.is_empty(), "{left:#?}");
    create_contact().await.refused(409, "person_erased");
    create_client().await.refused(409, "person_erased");
    for id in [contact, uuid(7)] {
        crm.get(&format!("/v1/crm/contacts/{id}")).await.refused(404, "not_found");
    }
    assert_no_message(&world).await;
}

#[tokio::test]
async fn an_erasure_by_the_route_a_day_later_leaves_no_record_of_the_creation() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let body = json!({ "email": format!("{MARK}@people.example"), "send_welcome": false });
    let client = key.post("/v1/clients", body).idempotent("client").await.expect(201).str("client_id").to_owned();
    world.advance_s(25 * 60 * 60).await;
    store(&key, [erased(&client)]).await;
    world.advance_s(ENDED_S).await;
    let about: Vec<Value> =
        world.table("idempotency").await.into_iter().filter(|item| item.to_string().contains(&client)).collect();
    assert!(about.is_empty(), "{about:?}");
    assert!(world.at_rest().await.locations_of(MARK).is_empty());
}
