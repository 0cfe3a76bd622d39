//! Costs of requests: calls to the store, the longest sequence of dependent calls, and capacity units.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::partner::start_with_key;
use crate::world::{Bill, Caller, Fact, World, assert_cost, fact, rendered};

async fn create(world: &World, key: &Caller, send_welcome: bool, phone: Option<&str>) -> String {
    let email = format!("c{}@example.com", world.number());
    let body = json!({ "email": email, "send_welcome": send_welcome, "phone": phone });
    key.post("/v1/clients", body).await.expect(201).str("client_id").to_owned()
}

#[tokio::test]
async fn a_read_by_id_takes_two_calls_at_once() {
    let (world, key) = start_with_key().await;
    let path = format!("/v1/clients/{}", create(&world, &key, false, None).await);
    let read = async || drop(key.get(&path).await.expect(200));
    let affordable = |bill: &Bill| bill.calls == 2 && bill.write_units == 1.0 && bill.read_units == 1.0;
    assert_cost(&world, "clients", read, affordable, 1).await;
}

#[tokio::test]
async fn switching_a_client_off_and_on_takes_three_calls_in_sequence() {
    let (world, key) = start_with_key().await;
    let path = format!("/v1/clients/{}", create(&world, &key, false, None).await);
    let set = async |is_active: bool| drop(key.patch(&path, json!({ "is_active": is_active })).await.expect(200));
    let off = async || {
        set(true).await;
        set(false).await;
    };
    let on = async || {
        set(false).await;
        set(true).await;
    };
    let affordable = |bill: &Bill| bill.calls == 4 && bill.write_units <= 21.0 && bill.read_units == 1.0;
    assert_cost(&world, "clients", off, affordable, 3).await;
    assert_cost(&world, "clients", on, affordable, 3).await;
}

#[tokio::test]
async fn ping_and_lists_take_two_calls_in_sequence() {
    let (world, key) = start_with_key().await;
    let client = create(&world, &key, false, None).await;
    let email = key.get(&format!("/v1/clients/{client}")).await.str("email").to_owned();
    let ping = async || drop(key.get("/v1/ping").await.expect(200));
    assert_cost(&world, "ping", ping, |bill| bill.calls == 2 && bill.write_units == 1.0, 2).await;
    for query in [String::new(), "?active=true".to_owned(), format!("?email={email}")] {
        let path = format!("/v1/clients{query}");
        let list = async || assert_eq!(key.get(&path).await.expect(200).body["count"], 1);
        assert_cost(&world, "clients", list, |bill| bill.calls <= 3 && bill.write_units == 1.0, 2).await;
    }
    let polled = async || drop(key.get("/v1/clients?updated_since=2026-01-01T00:00:00Z").await.expect(200));
    assert_cost(&world, "clients", polled, |bill| bill.calls == 2 && bill.read_units == 0.5, 2).await;
    // In a small roster a name costs what the list costs.
    let name = email.split('@').next().unwrap();
    for query in ["", "&active=true", "&updated_since=2026-01-01T00:00:00Z"] {
        let path = format!("/v1/clients?name={name}{query}");
        let named = async || assert_eq!(key.get(&path).await.expect(200).body["count"], 1);
        let affordable = |bill: &Bill| bill.calls == 2 && bill.read_units == 0.5 && bill.write_units == 1.0;
        assert_cost(&world, "clients", named, affordable, 2).await;
    }
}

#[tokio::test]
async fn a_search_by_external_id_takes_three_calls_in_sequence() {
    let (world, key) = start_with_key().await;
    let client = create(&world, &key, false, None).await;
    let body = json!({ "is_active": true, "external_id": "emr-1" });
    key.patch(&format!("/v1/clients/{client}"), body).await.expect(200);
    // The lock is the coach's, so the key is checked first.
    let find = async || assert_eq!(key.get("/v1/clients?external_id=emr-1").await.expect(200).body["count"], 1);
    let affordable = |bill: &Bill| bill.calls == 3 && bill.write_units == 1.0 && bill.read_units == 2.0;
    assert_cost(&world, "clients", find, affordable, 3).await;
}

#[tokio::test]
async fn a_creation_takes_at_most_six_calls_in_sequence() {
    let (world, key) = start_with_key().await;
    for send_welcome in [false, true] {
        for phone in [None, Some("+1 415 555 2671")] {
            let creation = async || {
                if let Some(phone) = phone {
                    // A lead of its own for each creation: a contact becomes one client only.
                    let id = format!("00000000-0000-7000-8000-{:012}", world.number());
                    world.apply([Fact::contact("ada", &id).with("phone", phone)]).await;
                }
                create(&world, &key, send_welcome, phone).await;
            };
            // The automations on `new_client` are read beside the claim.
            assert_cost(&world, "clients", creation, |bill| bill.calls <= 9, 6).await;
        }
    }
}

#[tokio::test]
async fn a_replay_takes_three_calls_in_sequence() {
    let (world, key) = start_with_key().await;
    let post = async || drop(key.post("/v1/clients", json!({ "email": "a@example.com" })).await.expect(201));
    post().await;
    assert_cost(&world, "clients", post, |bill| bill.calls == 6, 3).await;
}

/// Clients of a coach, and the interval of the active ones among them.
const ROSTER: usize = 20_000;
const ACTIVE_EVERY: usize = 200;

/// A copy of the client's item under another id, with its own address and time.
fn another(item: &Value, number: usize, created_at: DateTime<Utc>) -> Value {
    let id = format!("c{number:05}");
    let created_at = rendered(created_at);
    let mut item = item.clone();
    for (name, value) in [
        ("pk", format!("CLIENT#{id}")),
        ("listed_at", format!("{created_at}#{id}")),
        ("update_position", format!("{created_at}#{id}")),
        ("email", format!("{id}@clients.example")),
        ("client_id", id),
        ("created_at", created_at),
    ] {
        assert!(item[name]["S"].is_string(), "{name} in {item}");
        item[name]["S"] = json!(value);
    }
    item
}

#[tokio::test]
async fn listing_active_clients_among_20_000_takes_no_more_calls_than_among_a_few() {
    let (world, key) = start_with_key().await;
    world.apply([Fact::client("ada", "on"), Fact::client("ada", "off").with("is_active", false)]).await;
    let on = world.take_item("clients", "CLIENT#on").await;
    let off = world.take_item("clients", "CLIENT#off").await;
    let began = world.now().await - TimeDelta::days(ROSTER as i64);
    let clients: Vec<Value> = (0..ROSTER)
        .map(|number| {
            let item = if number % ACTIVE_EVERY == 0 { &on } else { &off };
            another(item, number, began + TimeDelta::days(number as i64))
        })
        .collect();
    world.put_items("clients", &clients).await;

    let active: Vec<String> = (0..ROSTER).step_by(ACTIVE_EVERY).rev().map(|number| format!("c{number:05}")).collect();
    let mut walked = Vec::new();
    let mut cursor = String::new();
    for is_last in [false, true] {
        let path = format!("/v1/clients?active=true&limit=50{cursor}");
        let page = key.get(&path).await.expect(200);
        assert_eq!(page.body["count"], 50);
        for client in page.body["clients"].as_array().unwrap() {
            assert_eq!(client["is_active"], true);
            walked.push(client["client_id"].as_str().unwrap().to_owned());
        }
        // Half a read unit for 4 KB: the cost follows the page, not the roster.
        let affordable = |bill: &Bill| bill.calls <= 3 && bill.write_units == 1.0 && bill.read_units <= 5.0;
        assert_cost(&world, "clients", async || drop(key.get(&path).await.expect(200)), affordable, 2).await;
        assert_eq!(page.body["next_cursor"].is_null(), is_last, "{}", page.text);
        cursor = format!("&cursor={}", page.body["next_cursor"].as_str().unwrap_or_default());
    }
    assert_eq!(walked, active, "newest first");

    // A page of updates costs the same, whatever the filter drops.
    let path = format!("/v1/clients?updated_since={}&active=true&limit=200", rendered(began + TimeDelta::days(5_000)));
    let affordable = |bill: &Bill| bill.calls <= 3 && bill.write_units == 1.0 && bill.read_units <= 10.0;
    assert_cost(&world, "clients", async || drop(key.get(&path).await.expect(200)), affordable, 2).await;
    let page = key.get(&path).await.expect(200).body;
    assert_eq!((&page["count"], page["next_cursor"].is_string()), (&json!(200 / ACTIVE_EVERY), true));

    let all = key.get("/v1/clients?limit=200").await.expect(200);
    assert_eq!((&all.body["count"], &all.body["clients"][0]["client_id"]), (&json!(200), &json!("c19999")));
}

/// Clients that a request with a name reads.
const MOST_READ: usize = 2_000;

#[tokio::test]
async fn a_search_by_name_reads_a_limited_number_of_clients_and_the_walk_finds_each_once() {
    let (world, key) = start_with_key().await;
    world.apply([Fact::client("ada", "one").with("full_name", "Lee Lead")]).await;
    let one = world.take_item("clients", "CLIENT#one").await;
    let size = 2 * MOST_READ + 500;
    // Newest first: two on the first page, none on the second, two on the third.
    let matches = [size - 1, size - MOST_READ, 499, 0];
    let began = world.now().await - TimeDelta::days(size as i64);
    let clients: Vec<Value> = (0..size)
        .map(|number| {
            let mut item = another(&one, number, began + TimeDelta::days(number as i64));
            if matches.contains(&number) {
                item["full_name"]["S"] = json!("Grace Hopper");
            }
            item
        })
        .collect();
    world.put_items("clients", &clients).await;
    let newest = matches.map(|number| format!("c{number:05}"));
    let mut by_update = newest.clone();
    by_update.reverse();
    let since = format!("&updated_since={}", rendered(began));
    for (query, expected) in [("", &newest), ("&active=true", &newest), (since.as_str(), &by_update)] {
        for (limit, most_pages) in [(1, 12), (2, 12), (200, 3)] {
            let (mut walked, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
            loop {
                let path = format!("/v1/clients?name=hopper{query}&limit={limit}{cursor}");
                let page = key.get(&path).await.expect(200).body;
                let found = page["clients"].as_array().unwrap().iter();
                walked.extend(found.map(|client| client["client_id"].as_str().unwrap().to_owned()));
                pages += 1;
                let Some(next) = page["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!(&walked[..], expected, "{query} by {limit}");
            assert!(pages <= most_pages, "{query} by {limit}: {pages}");
        }
    }
    // Half a read unit for 4 KB of 2,000 entries, in four queries, beside the key.
    let path = "/v1/clients?name=hopper&limit=200";
    let first = key.get(path).await.expect(200);
    let bill = Bill::of(&world.calls("clients").await[0]);
    assert!(bill.calls == 5 && bill.read_units <= 120.0 && bill.write_units == 1.0, "{bill:?}");
    assert_eq!(first.body["count"], 2);
    let second = key.get(&format!("{path}&cursor={}", first.str("next_cursor"))).await.expect(200);
    assert_eq!((&second.body["count"], second.body["next_cursor"].is_string()), (&json!(0), true));
    // A full page ends the reading.
    key.get("/v1/clients?name=lead&limit=50").await.expect(200);
    let bill = Bill::of(&world.calls("clients").await[0]);
    assert!(bill.calls == 2 && bill.read_units <= 30.0, "{bill:?}");
}

/// The write units of the latest invocation.
async fn written(world: &World, function: &str) -> f64 {
    Bill::of(&world.calls(function).await[0]).write_units
}

#[tokio::test]
async fn an_external_id_costs_its_lock_and_an_update_its_entries_in_the_lists() {
    let (world, key) = start_with_key().await;
    let post = async |number: u32, external_id: Option<&str>| {
        let email = format!("c{number}@example.com");
        let body = json!({ "email": email, "external_id": external_id, "send_welcome": false });
        let made = key.post("/v1/clients", body).idempotent(&email).await.expect(201);
        (made.str("client_id").to_owned(), written(&world, "clients").await)
    };
    let (client, bare) = post(1, None).await;
    // The lock is one item of the transaction.
    assert_eq!((bare, post(2, Some("emr-2")).await.1), (27.0, 29.0));
    for (body, units) in [
        (json!({ "is_active": true }), 4.0),
        (json!({ "is_active": false }), 16.0),
        (json!({ "is_active": true }), 16.0),
        (json!({ "is_active": true, "external_id": "emr-1" }), 13.0),
        (json!({ "is_active": true, "external_id": "emr-1" }), 4.0),
        (json!({ "is_active": true, "external_id": "emr-3" }), 15.0),
        (json!({ "is_active": true, "external_id": null }), 13.0),
    ] {
        key.patch(&format!("/v1/clients/{client}"), body.clone()).await.expect(200);
        assert_eq!(written(&world, "clients").await, units, "{body}");
    }
}

#[tokio::test]
async fn a_fact_that_changes_nothing_shown_writes_no_entry_in_the_lists() {
    let world = World::start().await;
    world.coach("ada").await;
    world.coach("bob").await;
    let saved = || Fact::client("ada", "c1");
    let of = |name: &str, mut detail: Value| {
        detail["client_id"] = json!("c1");
        fact(name, detail)
    };
    let at = "2026-05-01T07:00:00Z";
    let submitted = json!({ "check_in_id": "k", "submitted_at": at, "scores": {}, "grades": {} });
    let advanced = json!({ "from_phase": null, "to_phase": "Build", "advanced_at": at });
    for (what, fact, units) in [
        ("a creation", saved(), 17.0),
        ("the same record", saved(), 4.0),
        ("a phone number, which is not shown", saved().with("phone", "+1 415 555 2671"), 4.0),
        ("a name", saved().with("full_name", "Anew"), 8.0),
        ("goals", saved().with("full_name", "Anew").with("goals", "Sleep"), 8.0),
        ("a phase", of("phase.advanced", advanced), 17.0),
        ("a check-in", of("check_in.submitted", submitted), 14.0),
        ("a daily log", of("daily_log.saved", json!({ "date": "2026-05-01" })), 5.0),
        ("a hand-over", Fact::client("bob", "c1"), 18.0),
    ] {
        world.apply([fact]).await;
        assert_eq!(written(&world, "ingest").await, units, "{what}");
    }
}
