//! Clients: read, list, switch on and off.

mod compliance;
pub(crate) mod create;
pub(crate) mod login_link;
mod records;

use std::future::IntoFuture;

use serde_json::{Value, json};

use crate::world::{Caller, Fact, World, list, members, time, until};

const LIST_ITEM: [&str; 6] = ["client_id", "created_at", "current_phase", "email", "full_name", "is_active"];
const PROFILE: [&str; 10] = [
    "client_id",
    "created_at",
    "current_phase",
    "email",
    "full_name",
    "goals",
    "health_notes",
    "height_in",
    "is_active",
    "weight_lbs",
];

/// Creates a client by its address and returns its id.
async fn create(key: &Caller, email: &str) -> String {
    let body = json!({ "email": email, "send_welcome": false });
    key.post("/v1/clients", body).await.expect(201).str("client_id").to_owned()
}

fn emails(clients: &Value) -> Vec<&str> {
    clients.as_array().unwrap().iter().map(|client| client["email"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_client_is_shown_completely_with_null_for_unknown_fields() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let full = json!({ "email": "a@example.com", "full_name": "A", "goals": "G", "health_notes": "H", "height_in": 66.5, "weight_lbs": 120 });
    let made = key.post("/v1/clients", full.clone()).await.expect(201);
    let detail = key.get(&format!("/v1/clients/{}", made.str("client_id"))).await.expect(200);
    let mut names = PROFILE.to_vec();
    names.push("latest_check_in_at");
    names.sort_unstable();
    assert_eq!(detail.members(), names);
    for field in ["email", "full_name", "goals", "health_notes", "height_in", "weight_lbs"] {
        assert_eq!(detail.body[field], full[field]);
    }
    assert_eq!((&detail.body["is_active"], &detail.body["client_id"]), (&json!(true), &made.body["client_id"]));
    let bare = create(&key, "b@example.com").await;
    let detail = key.get(&format!("/v1/clients/{bare}")).await.expect(200);
    assert_eq!(detail.members(), names);
    for field in ["goals", "health_notes", "height_in", "weight_lbs", "current_phase", "latest_check_in_at"] {
        assert_eq!(detail.body[field], Value::Null);
    }
}

#[tokio::test]
async fn a_client_of_another_coach_is_not_found_before_and_after_a_hand_over() {
    let world = World::start().await;
    let ada = world.coach("ada").await.partner_key().await;
    let bob = world.coach("bob").await.partner_key().await;
    let client = create(&ada, "a@example.com").await;
    let path = format!("/v1/clients/{client}");
    let is_found = async |key: &Caller, found: bool| {
        let status = if found { 200 } else { 404 };
        assert_eq!(key.get(&path).await.status, status);
        assert_eq!(key.patch(&path, json!({ "is_active": true })).await.status, status);
        let by_email = key.get("/v1/clients?email=a@example.com").await.expect(200);
        assert_eq!(by_email.body["count"], u64::from(found));
        assert_eq!(key.get("/v1/clients").await.expect(200).body["count"], u64::from(found));
        assert_eq!(key.get("/v1/clients?active=true").await.expect(200).body["count"], u64::from(found));
        assert_eq!(key.get("/v1/ping").await.expect(200).body["active_clients"], u64::from(found));
    };
    is_found(&ada, true).await;
    is_found(&bob, false).await;
    world.apply([Fact::client("bob", &client).with("email", "a@example.com")]).await;
    is_found(&ada, false).await;
    is_found(&bob, true).await;
    for nobody in ["client_0", "x", "%00", "a%20b", &"x".repeat(200)] {
        ada.get(&format!("/v1/clients/{nobody}")).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_client_is_switched_off_and_on_and_the_answer_shows_it() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let path = format!("/v1/clients/{}", create(&key, "a@example.com").await);
    let mut expected = key.get(&path).await.expect(200).body;
    expected.as_object_mut().unwrap().remove("latest_check_in_at");
    for is_active in [true, false, false, true] {
        let reply = key.patch(&path, json!({ "is_active": is_active, "full_name": "ignored" })).await.expect(200);
        assert_eq!(reply.members(), PROFILE);
        expected["is_active"] = json!(is_active);
        assert_eq!(reply.body, expected);
        assert_eq!(key.get(&path).await.body["is_active"], is_active);
        assert_eq!(key.get("/v1/ping").await.body["active_clients"], u64::from(is_active));
    }
    world.settle().await;
    let facts = world.changes("client.activation_changed").await;
    let flags: Vec<&Value> = facts.iter().map(|fact| &fact["client"]["is_active"]).collect();
    assert_eq!(flags, [&json!(false), &json!(true)], "the value already held changes nothing");
}

#[tokio::test]
async fn a_flag_confirmed_by_the_api_is_not_changed_by_older_facts() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for is_active in [true, false] {
        let client = format!("c-{is_active}");
        let saved = async |seconds, is_active| {
            let occurred_at = world.timestamp_in(seconds).await;
            world
                .apply([Fact::client("ada", &client).with("is_active", is_active).with("occurred_at", occurred_at)])
                .await;
        };
        saved(-600, is_active).await;
        let path = format!("/v1/clients/{client}");
        let flag = async || key.get(&path).await.expect(200).body["is_active"].clone();
        key.patch(&path, json!({ "is_active": is_active })).await.expect(200);
        saved(-300, !is_active).await;
        assert_eq!(flag().await, is_active);
        saved(60, !is_active).await;
        assert_eq!(flag().await, !is_active);
    }
    let emitted = world.changes("client.activation_changed").await;
    let flags: Vec<&Value> = emitted.iter().map(|fact| &fact["client"]["is_active"]).collect();
    assert_eq!(flags, [&json!(true), &json!(false)], "the application has to know that its own facts no longer apply");
}

#[tokio::test]
async fn a_patch_without_a_boolean_flag_or_with_a_tenant_is_refused() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let path = format!("/v1/clients/{}", create(&key, "a@example.com").await);
    for body in [
        json!({}),
        json!({ "is_active": null }),
        json!({ "is_active": "false" }),
        json!({ "is_active": 0 }),
        json!({ "active": false }),
    ] {
        key.patch(&path, body).await.refused_for("is_active");
    }
    for field in ["coach_id", "owner_id", "team_id"] {
        let mut body = json!({ "is_active": false });
        body[field] = json!("bob");
        key.patch(&path, body).await.refused_for(field);
    }
    assert_eq!(key.get(&path).await.body["is_active"], true);
}

#[tokio::test]
async fn many_patches_at_once_leave_the_count_right() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let path = format!("/v1/clients/{}", create(&key, "a@example.com").await);
    let calls = (0..12).map(|number| key.patch(&path, json!({ "is_active": number % 2 == 0 })).into_future());
    for reply in futures::future::join_all(calls).await {
        reply.expect(200);
    }
    let is_active = key.get(&path).await.body["is_active"].as_bool().unwrap();
    assert_eq!(key.get("/v1/ping").await.body["active_clients"], u64::from(is_active));
}

#[tokio::test]
async fn overtaken_switches_are_emitted_in_their_order_of_commit() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for spared_calls in 0..5 {
        let id = create(&key, &format!("c{spared_calls}@example.com")).await;
        let path = format!("/v1/clients/{id}");
        let switch = |is_active: bool| key.patch(&path, json!({ "is_active": is_active })).into_future();
        world.faults(json!({ "function": "clients", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        let stalled = tokio::spawn(switch(false));
        tokio::select! {
            () = world.until_stalled() => {}
            () = until("the request ends", async || stalled.is_finished()) => {}
        }
        switch(false).await.expect(200);
        switch(true).await.expect(200);
        world.faults(json!({ "stalled_calls": 0, "spared_calls": 0, "function": "" })).await;
        stalled.await.unwrap().expect(200);
        world.settle().await;
        let mut emitted = world.changes("client.activation_changed").await;
        emitted.retain(|fact| fact["client"]["client_id"] == id.as_str());
        emitted.sort_by_key(|fact| time(&fact["occurred_at"]));
        let is_active = &key.get(&path).await.expect(200).body["is_active"];
        assert_eq!(&emitted.last().unwrap()["client"]["is_active"], is_active, "after {spared_calls} calls");
        assert!(emitted.windows(2).all(|pair| pair[0]["occurred_at"] != pair[1]["occurred_at"]), "{emitted:?}");
    }
}

#[tokio::test]
async fn a_switch_after_a_fact_dated_at_the_end_of_time_is_emitted() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    world.apply([Fact::client("ada", "c1").with("occurred_at", "9999-12-31T23:59:59.999Z")]).await;
    key.patch("/v1/clients/c1", json!({ "is_active": false })).await.expect(200);
    world.settle().await;
    assert_eq!(world.changes("client.activation_changed").await.len(), 1);
}

#[tokio::test]
async fn the_list_is_newest_first_in_its_exact_shape() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let empty = key.get("/v1/clients").await.expect(200);
    assert_eq!(empty.body, json!({ "count": 0, "clients": [], "next_cursor": null }));
    for email in ["a@example.com", "b@example.com", "c@example.com"] {
        create(&key, email).await;
    }
    let reply = key.get("/v1/clients").await.expect(200);
    assert_eq!(reply.members(), ["clients", "count", "next_cursor"]);
    assert_eq!(emails(&reply.body["clients"]), ["c@example.com", "b@example.com", "a@example.com"]);
    assert_eq!(reply.body["count"], 3);
    assert!(reply.body["clients"].as_array().unwrap().iter().all(|client| members(client) == LIST_ITEM));
}

/// Creates clients of `ada` by facts without events.
async fn roster(world: &World, size: usize) {
    let facts = (0..size).map(|number| {
        let fact =
            Fact::client("ada", &format!("c{number:03}")).with("backfill", true).with("is_active", number % 3 != 0);
        fact.with("created_at", format!("2026-01-01T{:02}:{:02}:00Z", number / 60, number % 60))
    });
    world.apply(facts).await;
}

#[tokio::test]
async fn a_limit_is_never_refused() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    roster(&world, 210).await;
    let ten_to_the_30 = "1000000000000000000000000000000";
    for (query, count) in [
        ("", 50),
        ("limit=0", 50),
        ("limit=-1", 50),
        ("limit=text", 50),
        ("limit=1e3", 50),
        ("limit=%2B5", 50),
        ("limit=+5", 50),
        ("limit=%205", 50),
        ("limit=5.0", 50),
        ("limit=", 50),
        ("limit", 50),
        ("LIMIT=5", 50),
        ("limit=1", 1),
        ("limit=007", 7),
        ("limit=200", 200),
        ("limit=201", 200),
        (&format!("limit={ten_to_the_30}"), 200),
        ("limit=3&limit=4", 3),
        ("limit=x&limit=4", 50),
    ] {
        let reply = key.get(&format!("/v1/clients?{query}")).await.expect(200);
        assert_eq!(reply.body["count"], count, "{query}");
        assert_eq!(reply.body["clients"].as_array().unwrap().len(), count, "{query}");
    }
}

#[tokio::test]
async fn a_roster_of_450_is_paged_through_without_loss() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    roster(&world, 450).await;
    for (filter, pages) in [("", vec![200, 200, 50]), ("&active=true", vec![200, 100])] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        for size in pages {
            let reply = key.get(&format!("/v1/clients?limit=200{filter}{cursor}")).await.expect(200);
            assert_eq!(reply.body["count"], size);
            seen.extend(list(reply.body["clients"].clone()));
            cursor = reply.body["next_cursor"].as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        }
        assert!(cursor.is_empty(), "the last page has no next");
        assert!(seen.windows(2).all(|pair| time(&pair[0]["created_at"]) > time(&pair[1]["created_at"])));
        assert!(filter.is_empty() || seen.iter().all(|client| client["is_active"] == true));
    }
    let first = key.get("/v1/clients?limit=200").await.expect(200);
    assert_eq!(key.get("/v1/clients?limit=200&cursor=").await.expect(200).body, first.body);
    let found = key.get("/v1/clients?email=a@example.com&cursor=").await.expect(200);
    assert_eq!(found.body, key.get("/v1/clients?email=a@example.com").await.expect(200).body);
    for bad in ["x", "%20", "%00", "c3R1ZmY"] {
        key.get(&format!("/v1/clients?cursor={bad}")).await.refused_for("cursor");
        key.get(&format!("/v1/clients?email=a@example.com&cursor={bad}")).await.refused_for("cursor");
    }
}

#[tokio::test]
async fn the_last_page_of_the_roster_has_no_next_cursor() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    roster(&world, 4).await;
    let page = key.get("/v1/clients?limit=2").await.expect(200);
    let last = key.get(&format!("/v1/clients?limit=2&cursor={}", page.str("next_cursor"))).await.expect(200);
    assert_eq!((&last.body["count"], &last.body["next_cursor"]), (&json!(2), &Value::Null));
    assert_eq!(key.get("/v1/clients?limit=4").await.body["next_cursor"], Value::Null);
}

#[tokio::test]
async fn only_the_exact_value_true_filters_to_active_clients() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    create(&key, "on@example.com").await;
    let off = create(&key, "off@example.com").await;
    key.patch(&format!("/v1/clients/{off}"), json!({ "is_active": false })).await.expect(200);
    assert_eq!(emails(&key.get("/v1/clients?active=true").await.body["clients"]), ["on@example.com"]);
    for other in ["false", "TRUE", "True", "1", "yes", "", "true%20"] {
        let reply = key.get(&format!("/v1/clients?active={other}")).await.expect(200);
        assert_eq!(reply.body["count"], 2, "{other}");
    }
    assert_eq!(key.get("/v1/clients?active=true&email=off@example.com").await.body["count"], 0);
    assert_eq!(key.get("/v1/clients?active=false&email=off@example.com").await.body["count"], 1);
}

#[tokio::test]
async fn an_email_search_ignores_case_and_limit() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let first = create(&key, "First+Tag@Example.com").await;
    for number in 0..3 {
        create(&key, &format!("later{number}@example.com")).await;
    }
    for query in ["First%2BTag@Example.com", "first%2btag%40example.com&limit=1", "FIRST%2BTAG@EXAMPLE.COM&limit=0"] {
        let reply = key.get(&format!("/v1/clients?email={query}")).await.expect(200);
        assert_eq!((&reply.body["count"], &reply.body["next_cursor"]), (&json!(1), &Value::Null));
        assert_eq!(reply.body["clients"][0]["client_id"], first.as_str());
        assert_eq!(members(&reply.body["clients"][0]), LIST_ITEM);
    }
    for nobody in
        ["", "first", "irst%2BTag@Example.com", "first@example.com", "%25@example.com", "first%2Btag@example.com%20"]
    {
        let reply = key.get(&format!("/v1/clients?email={nobody}")).await.expect(200);
        assert_eq!(reply.body["clients"], json!([]), "{nobody}");
    }
    let long = format!("{}@example.com", "a".repeat(149));
    key.get(&format!("/v1/clients?email={long}")).await.refused_for("email");
    key.get(&format!("/v1/clients?email={}", &long[1..])).await.expect(200);
}

#[tokio::test]
async fn every_shown_address_can_be_searched_for() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let addresses = [
        ("c1", "taro..y.@docomo.example"),
        ("c2", "\"quoted one\"@x.example"),
        ("c3", "nobody"),
        ("c4", "Jörg@bücher.example"),
        ("c5", "a+b c@x.example"),
    ];
    world.apply(addresses.map(|(id, email)| Fact::client("ada", id).with("email", email))).await;
    let find =
        async |query: &str| key.get(&format!("/v1/clients?email={query}")).await.expect(200).body["clients"].clone();
    for (id, email) in addresses {
        let query: String = email.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = find(&query).await;
        assert_eq!((&found[0]["client_id"], &found[0]["email"]), (&json!(id), &json!(email)));
    }
    assert_eq!(find("J%C3%96RG@XN--BCHER-KVA.example").await[0]["client_id"], "c4");
    // A plus sign in a query means a blank, but a caller who writes it means a plus sign, whatever other coaches have
    // stored.
    world.coach("bob").await;
    world.apply([Fact::client("bob", "theirs").with("email", "first tag@example.com")]).await;
    create(&key, "first+tag@example.com").await;
    assert_eq!(find("first+tag@example.com").await[0]["email"], "first+tag@example.com");
    assert_eq!(find("first%20tag@example.com").await[0]["email"], "first+tag@example.com");
}

#[tokio::test]
async fn clients_who_share_an_address_are_paged_through() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let shared = (0..5).map(|number| {
        let fact = Fact::client("ada", &format!("c{number}")).with("backfill", true).with("email", "all@example.com");
        fact.with("created_at", format!("2026-01-01T00:0{number}:00Z"))
    });
    world.apply(shared).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for count in [2, 2, 1] {
        let page = key.get(&format!("/v1/clients?email=ALL@example.com&limit=2{cursor}")).await.expect(200);
        assert_eq!(page.body["count"], count);
        seen.extend(list(page.body["clients"].clone()).iter().map(|client| client["client_id"].to_string()));
        cursor = page.body["next_cursor"].as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
    }
    assert_eq!(seen.concat(), r#""c4""c3""c2""c1""c0""#);
    assert!(cursor.is_empty());
}
