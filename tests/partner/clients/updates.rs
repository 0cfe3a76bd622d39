//! `updated_at`, and `GET /v1/clients?updated_since=`: clients in the order of their updates, for readers that poll.

mod polls;

use std::collections::BTreeSet;
use std::future::IntoFuture;

use serde_json::{Value, json};

use crate::feed::erasure::{erased, life};
use crate::partner::clients::create;
use crate::partner::start_with_key;
use crate::world::{Caller, Fact, World, fact, list, time, until};

const ALL: &str = "updated_since=2000-01-01T00:00:00Z";

/// All clients of a list by update, over its pages.
async fn walk(key: &Caller, query: &str) -> Vec<Value> {
    let (mut clients, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = key.get(&format!("/v1/clients?{query}{cursor}")).await.expect(200).body;
        assert_eq!(page["count"], page["clients"].as_array().unwrap().len());
        clients.extend(list(page["clients"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { return clients };
        cursor = format!("&cursor={next}");
    }
}

fn ids(clients: &[Value]) -> Vec<&str> {
    clients.iter().map(|client| client["client_id"].as_str().unwrap()).collect()
}

async fn updated_at(key: &Caller, client: &str) -> Value {
    key.get(&format!("/v1/clients/{client}")).await.expect(200).body["updated_at"].clone()
}

fn advanced(client: &str, phase: &str) -> Fact {
    fact(
        "phase.advanced",
        json!({ "client_id": client, "from_phase": null, "to_phase": phase, "advanced_at": "2026-05-01T07:00:00Z" }),
    )
}

#[tokio::test]
async fn an_update_is_a_change_of_what_the_api_shows_at_the_time_of_its_storing() {
    let (world, key) = start_with_key().await;
    let made = create(&key, "a@example.com").await;
    let detail = key.get(&format!("/v1/clients/{made}")).await.expect(200).body;
    assert_eq!(detail["updated_at"], detail["created_at"]);
    let began = world.now().await;
    world.apply([Fact::client("ada", "c1").with("occurred_at", "2026-01-02T03:04:05Z")]).await;
    let first = updated_at(&key, "c1").await;
    assert!((began..=world.now().await).contains(&time(&first)), "not the time of the fact: {first}");
    let saved = || Fact::client("ada", "c1");
    let named = || saved().with("full_name", "Anew");
    let mut last = first;
    for (what, fact, is_update) in [
        ("the same record", saved(), false),
        ("another phone, which the API does not show", saved().with("phone", "+1 415 555 2671"), false),
        ("another name", named(), true),
        ("the same name", named(), false),
        ("goals", named().with("goals", "Sleep"), true),
        ("no goals", named(), true),
        ("a deactivation", named().with("is_active", false), true),
        ("another time of creation", named().with("created_at", "2026-01-02T03:04:06Z"), true),
        ("another address", named().with("email", "other@example.com"), true),
        ("an older record", saved().with("occurred_at", "2026-01-02T03:04:05Z"), false),
        ("a phase", advanced("c1", "Build"), true),
        ("the same phase", advanced("c1", "Build").with("id", "again"), false),
        ("the phase in the record", named().with("email", "other@example.com").with("current_phase", "Base"), true),
    ] {
        world.advance_s(1).await;
        world.apply([fact]).await;
        let now = updated_at(&key, "c1").await;
        assert_eq!(time(&now) > time(&last), is_update, "{what}: {now} after {last}");
        assert!(is_update || now == last, "{what}");
        last = now;
    }
    let records = life("c1", "Base").into_iter().filter(|fact| fact.detail_type != "phase.advanced");
    world.apply(records).await;
    assert_eq!(updated_at(&key, "c1").await, last, "check-ins, logs, doses and messages");
    assert!(world.set_aside().await.is_empty());
    for (body, is_update) in [(json!(false), true), (json!(false), false), (json!(true), true)] {
        let reply = key.patch("/v1/clients/c1", json!({ "is_active": body })).await.expect(200);
        assert_eq!(time(&reply.body["updated_at"]) > time(&last), is_update);
        last = reply.body["updated_at"].clone();
        assert_eq!(updated_at(&key, "c1").await, last);
    }
    let listed = walk(&key, ALL).await;
    assert_eq!(ids(&listed), [made.as_str(), "c1"]);
    assert_eq!(listed[1]["updated_at"], last);
    assert_eq!(listed[1], key.get("/v1/clients?email=other@example.com").await.body["clients"][0]);
}

#[tokio::test]
async fn clients_are_listed_by_update_from_a_time_on() {
    let (world, key) = start_with_key().await;
    let mut made = Vec::new();
    for email in ["a@example.com", "b@example.com", "c@example.com"] {
        made.push(create(&key, email).await);
        world.advance_s(60).await;
    }
    let [a, b, c] = &made[..] else { unreachable!() };
    let path = format!("/v1/clients/{a}");
    key.patch(&path, json!({ "is_active": true, "external_id": "emr-7" })).await.expect(200);
    let all = key.get(&format!("/v1/clients?{ALL}")).await.expect(200);
    assert_eq!(all.members(), ["clients", "count", "next_cursor"]);
    let clients = list(all.body["clients"].clone());
    assert_eq!(ids(&clients), [b, c, a]);
    let from = |client: &Value| client["updated_at"].as_str().unwrap().to_owned();
    for (since, expected) in [
        (from(&clients[1]), vec![c, a]),
        (from(&clients[1]).replace('Z', "%2B00:00"), vec![c, a]),
        (from(&clients[1]).replace('Z', "+00:00"), vec![c, a]),
        (from(&clients[2]), vec![a]),
        ("2999-01-01T00:00:00Z".to_owned(), vec![]),
    ] {
        assert_eq!(ids(&walk(&key, &format!("updated_since={since}")).await), expected, "{since}");
    }
    key.patch(&format!("/v1/clients/{c}"), json!({ "is_active": false })).await.expect(200);
    for (filters, expected) in [
        ("", vec![b.as_str(), a, c]),
        ("&active=true", vec![b, a]),
        ("&active=false", vec![b, a, c]),
        ("&email=C@example.com", vec![c]),
        ("&email=C@example.com&active=true", vec![]),
        ("&external_id=emr-7", vec![a]),
        ("&external_id=emr-7&email=c@example.com", vec![]),
    ] {
        for limit in ["", "&limit=1", "&limit=2"] {
            assert_eq!(ids(&walk(&key, &format!("{ALL}{filters}{limit}")).await), expected, "{filters}{limit}");
        }
    }
    for bad in ["now", "2026-11-20", "2026-11-20T09:30:00", "2026-11-20%2009:30:00", "1795167001"] {
        for more in ["", "&email=a@example.com", "&external_id=emr-7"] {
            key.get(&format!("/v1/clients?updated_since={bad}{more}")).await.refused_for("updated_since");
        }
    }
    let [empty, none] = ["/v1/clients?updated_since=", "/v1/clients"].map(|path| key.get(path));
    assert_eq!(empty.await.expect(200).text, none.await.expect(200).text, "an empty time is no filter");
}

#[tokio::test]
async fn a_cursor_counts_for_its_own_order_and_for_any_period() {
    let (world, key) = start_with_key().await;
    world.apply((0..3).map(|number| Fact::client("ada", &format!("c{number}")).with("email", "all@example.com"))).await;
    for filter in ["", "&email=all@example.com"] {
        let cursor = async |query: &str| {
            let page = key.get(&format!("/v1/clients?{query}limit=1{filter}")).await.expect(200);
            page.str("next_cursor").to_owned()
        };
        let (newest, updated) = (cursor("").await, cursor(&format!("{ALL}&")).await);
        key.get(&format!("/v1/clients?limit=1{filter}&cursor={updated}")).await.refused_for("cursor");
        key.get(&format!("/v1/clients?{ALL}{filter}&cursor={newest}")).await.refused_for("cursor");
        let rest = key.get(&format!("/v1/clients?{ALL}{filter}&cursor={updated}")).await.expect(200);
        assert_eq!(rest.body["count"], 2);
        // A cursor before the period begins with the period.
        let later = format!("/v1/clients?updated_since=2999-01-01T00:00:00Z{filter}&cursor={updated}");
        assert_eq!(key.get(&later).await.expect(200).body["count"], 0);
    }
}

#[tokio::test]
async fn a_roster_of_one_time_is_paged_through_without_loss_and_a_filter_reads_no_more() {
    let (world, key) = start_with_key().await;
    let roster = (0..250).map(|number| {
        let fact = Fact::client("ada", &format!("c{number:03}")).with("is_active", number % 100 == 0);
        fact.with("backfill", true)
    });
    world.apply(roster).await;
    // All updates at one time, as a fast batch has them.
    let mut items = world.items("clients", "CLIENT#").await;
    for item in &mut items {
        let id = item["client_id"]["S"].as_str().unwrap().to_owned();
        item["updated_at"]["S"] = json!("2026-11-20T09:30:00.000Z");
        item["update_position"]["S"] = json!(format!("2026-11-20T09:30:00.000Z#{id}"));
    }
    world.put_items("clients", &items).await;
    let since = "updated_since=2026-11-20T09:30:00Z";
    for limit in [7, 50, 200] {
        let clients = walk(&key, &format!("{since}&limit={limit}")).await;
        let ids: BTreeSet<&str> = ids(&clients).into_iter().collect();
        assert_eq!((clients.len(), ids.len()), (250, 250));
    }
    assert!(walk(&key, "updated_since=2026-11-20T09:30:00.001Z").await.is_empty());
    let (mut cursor, mut counts) = (String::new(), Vec::new());
    loop {
        let page = key.get(&format!("/v1/clients?{since}&active=true&limit=60{cursor}")).await.expect(200).body;
        counts.push(page["count"].as_u64().unwrap());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(counts, [1, 1, 0, 1, 0], "a page may be empty although more follow");
}

#[tokio::test]
async fn a_hand_over_is_an_update_for_the_new_coach_and_erased_clients_are_not_listed() {
    let world = World::start().await;
    let (ada, bob) = (world.coach("ada").await.partner_key().await, world.coach("bob").await.partner_key().await);
    world.apply([Fact::client("ada", "c1"), Fact::client("ada", "c2"), Fact::client("bob", "c3")]).await;
    world.advance_s(120).await;
    let since = world.timestamp_in(-60).await;
    let polled = async |key: &Caller| walk(key, &format!("updated_since={since}")).await;
    assert!(polled(&ada).await.is_empty() && polled(&bob).await.is_empty());
    world.apply([Fact::client("bob", "c1")]).await;
    assert_eq!(ids(&polled(&bob).await), ["c1"], "although created long ago");
    assert!(polled(&ada).await.is_empty());
    assert_eq!(ids(&walk(&ada, ALL).await), ["c2"]);
    assert_eq!(ids(&walk(&bob, ALL).await), ["c3", "c1"]);
    world.apply([erased("c1"), erased("c2")]).await;
    assert!(walk(&ada, ALL).await.is_empty());
    assert_eq!(ids(&walk(&bob, ALL).await), ["c3"]);
}

#[tokio::test]
async fn a_write_that_is_stored_late_has_the_later_time_of_its_client() {
    let (world, key) = start_with_key().await;
    for spared_calls in 0..4 {
        let id = create(&key, &format!("c{spared_calls}@example.com")).await;
        let path = format!("/v1/clients/{id}");
        let set = |external_id: &str| {
            let body = json!({ "is_active": true, "external_id": external_id });
            key.patch(&path, body).into_future()
        };
        let mark = format!("emr-{spared_calls}");
        world.faults(json!({ "function": "clients", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        let stalled = tokio::spawn(set(&format!("{mark}-late")));
        tokio::select! {
            () = world.until_stalled() => {}
            () = until("the request ends", async || stalled.is_finished()) => {}
        }
        let quick = set(&mark).await.expect(200);
        world.clear_faults().await;
        let late = stalled.await.unwrap().expect(200);
        let [first, last] = if updated_at(&key, &id).await == late.body["updated_at"] {
            [&quick.body, &late.body]
        } else {
            [&late.body, &quick.body]
        };
        assert!(time(&first["updated_at"]) < time(&last["updated_at"]), "after {spared_calls} calls");
        assert_eq!(key.get(&path).await.expect(200).body["external_id"], last["external_id"]);
    }
}
