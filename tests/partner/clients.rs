//! Clients: read, list, switch on and off.

mod compliance;
pub(crate) mod create;
mod external_ids;
mod list;
pub(crate) mod login_link;
mod names;
mod records;
mod updates;

use serde_json::{Value, json};

use crate::partner::start_with_key;
use crate::world::{Caller, Fact, World, time, until};

/// Creates a client by its address and returns its id.
async fn create(key: &Caller, email: &str) -> String {
    let body = json!({ "email": email, "send_welcome": false });
    key.post("/v1/clients", body).await.expect(201).str("client_id").to_owned()
}

fn emails(clients: &Value) -> Vec<&str> {
    clients.as_array().unwrap().iter().map(|client| client["email"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_client_is_shown_as_it_was_created() {
    let (_world, key) = start_with_key().await;
    let full = json!({
        "email": "a@example.com", "full_name": "A", "goals": "G", "health_notes": "H", "height_in": 66.5, "weight_lbs": 120,
    });
    let made = key.post("/v1/clients", full.clone()).await.expect(201);
    let detail = key.get(&format!("/v1/clients/{}", made.str("client_id"))).await.expect(200).body;
    for (field, value) in full.as_object().unwrap() {
        assert_eq!(detail[field], *value);
    }
    assert_eq!((&detail["is_active"], &detail["client_id"]), (&json!(true), &made.body["client_id"]));
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
    for nobody in ["client_0", "x", "%00", "%ff", "a%20b", &"x".repeat(200)] {
        ada.get(&format!("/v1/clients/{nobody}")).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_client_is_switched_off_and_on_and_the_answer_shows_it() {
    let (world, key) = start_with_key().await;
    let path = format!("/v1/clients/{}", create(&key, "a@example.com").await);
    let mut expected = key.get(&path).await.expect(200).body;
    expected.as_object_mut().unwrap().remove("latest_check_in_at");
    for is_active in [true, false, false, true] {
        let reply = key.patch(&path, json!({ "is_active": is_active, "full_name": "ignored" })).await.expect(200);
        let is_update = time(&reply.body["updated_at"]) > time(&expected["updated_at"]);
        assert_eq!(is_update, expected["is_active"] != is_active);
        (expected["is_active"], expected["updated_at"]) = (json!(is_active), reply.body["updated_at"].clone());
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
async fn a_client_whose_watch_a_restore_lost_is_switched_off_and_on() {
    let (world, key) = start_with_key().await;
    let id = create(&key, "a@example.com").await;
    let watches = async || {
        let items = world.items("records", &format!("CLIENT#{id}")).await;
        items.into_iter().filter(|item| item["sk"]["S"] == "DOSES_WATCH").collect::<Vec<_>>()
    };
    for is_active in [false, true] {
        let [watch] = &watches().await[..] else { panic!("one watch") };
        world.delete_item("records", &json!({ "pk": watch["pk"], "sk": watch["sk"] })).await;
        key.patch(&format!("/v1/clients/{id}"), json!({ "is_active": is_active })).await.expect(200);
        assert_eq!(watches().await.len(), 1, "the watch is back");
    }
}

#[tokio::test]
async fn a_flag_set_or_confirmed_by_the_api_is_not_changed_by_older_facts() {
    let (world, key) = start_with_key().await;
    for (was_active, is_active) in [(true, true), (false, false), (true, false)] {
        let client = format!("c-{was_active}-{is_active}");
        let saved = async |seconds, is_active| {
            let occurred_at = world.timestamp_in(seconds).await;
            world
                .apply([Fact::client("ada", &client).with("is_active", is_active).with("occurred_at", occurred_at)])
                .await;
        };
        saved(-600, was_active).await;
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
    assert_eq!(
        flags,
        [&json!(true), &json!(false), &json!(false)],
        "the application has to know that its own facts no longer apply"
    );
}

#[tokio::test]
async fn many_patches_at_once_leave_the_count_right() {
    let (_world, key) = start_with_key().await;
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
    let (world, key) = start_with_key().await;
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
    let (world, key) = start_with_key().await;
    world.apply([Fact::client("ada", "c1").with("occurred_at", "9999-12-31T23:59:59.999Z")]).await;
    key.patch("/v1/clients/c1", json!({ "is_active": false })).await.expect(200);
    world.settle().await;
    assert_eq!(world.changes("client.activation_changed").await.len(), 1);
}
