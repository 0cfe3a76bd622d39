//! After a removal: all ids, addresses and keys of requests are free again, and nothing of before reaches what is new.

use chrono::NaiveDate;
use domain::mode::Mode;
use serde_json::{Value, json};

use super::tenant::Tenant;
use super::{begin, end, remove};
use crate::event_feed::{follow, reader};
use crate::feed::erasure::{ENDED_S, erased};
use crate::partner::login_pages::{expect_dead, link};
use crate::sandbox::{send, start, store, visitor};
use crate::world::sweep::daily_log;
use crate::world::{Answer, Fact, Receiver, uuid};

fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 1, 2).unwrap()
}

#[tokio::test]
async fn ids_addresses_external_ids_and_idempotency_keys_are_free_again_also_those_of_erased_clients() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    let facts = [1, 2].map(|number| {
        let client = tenant.client(number);
        Fact::client("", &client).with("id", format!("fact-{number}"))
    });
    for round in 0..3 {
        let made = tenant.create(1).await.expect(201);
        assert!(!made.is_replay(), "round {round}");
        store(&tenant.key, facts.clone()).await;
        store(&tenant.key, [daily_log(&tenant.client(1), day()).with("id", "log")]).await;
        assert_eq!(send(&tenant.key, facts.clone()).await[0]["result"], "unchanged", "round {round}");
        assert_eq!(tenant.key.get("/v1/clients").await.expect(200).body["count"], 3, "round {round}");
        let logs = tenant.key.get(&format!("/v1/clients/{}/daily-logs", tenant.client(1))).await.expect(200);
        assert_eq!(logs.body["count"], 1, "round {round}");
        assert!(tenant.create(1).await.expect(201).is_replay(), "round {round}");
        store(&tenant.key, [erased(&tenant.client(2)), erased(made.str("client_id"))]).await;
        // The passes of the erasures end before the removal.
        world.advance_s(ENDED_S).await;
        remove(&world, &tenant.key).await;
        let left = tenant.leftovers().await;
        assert!(left.is_empty(), "round {round}: {left:#?}");
    }
}

#[tokio::test]
async fn an_erasure_of_before_a_removal_does_not_reach_the_client_who_comes_after_it() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    for client in ["c1", "c2"] {
        store(&key, [Fact::client("ada", client)]).await;
    }
    store(&key, [erased("c1")]).await;
    // The erasure has been repeated once, and will be once more.
    world.advance_s(180).await;
    store(&key, [erased("c2")]).await;
    remove(&world, &key).await;
    for client in ["c1", "c2"] {
        store(&key, [Fact::client("ada", client)]).await;
    }
    world.advance_s(ENDED_S).await;
    for client in ["c1", "c2"] {
        key.get(&format!("/v1/clients/{client}")).await.expect(200);
    }
    assert_eq!(key.get("/v1/ping").await.expect(200).body["active_clients"], 2);
}

#[tokio::test]
async fn an_erasure_of_a_client_who_was_never_there_is_refused_and_keeps_the_id_from_nobody() {
    let world = start(Mode::Test).await;
    let (key, other) = (visitor(&world, "ada").partner_key().await, visitor(&world, "bob").partner_key().await);
    let refused = send(&key, [erased("c1")]).await.remove(0);
    assert_eq!((&refused["result"], &refused["reason"]), (&json!("refused"), &json!("client_id c1 has not been seen")));
    store(&other, [Fact::client("bob", "c1")]).await;
}

#[tokio::test]
async fn a_removal_leaves_the_erased_client_of_another_workspace_erased() {
    let world = start(Mode::Test).await;
    let (key, other) = (visitor(&world, "ada").partner_key().await, visitor(&world, "bob").partner_key().await);
    store(&key, [Fact::client("ada", "c1"), erased("c1")]).await;
    world.advance_s(ENDED_S).await;
    remove(&world, &key).await;
    // The id goes to another workspace, which erases its client, too.
    store(&other, [Fact::client("bob", "c1"), erased("c1")]).await;
    world.advance_s(ENDED_S).await;
    remove(&world, &key).await;
    assert_eq!(send(&other, [Fact::client("bob", "c1")]).await[0]["result"], "unchanged", "c1 stays erased for bob");
}

#[tokio::test]
async fn a_login_link_of_before_signs_nobody_in_afterwards() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    store(&key, [Fact::client("ada", "c1"), Fact::client("ada", "c2")]).await;
    let (unused, used) = (link(&key, "c1").await, link(&key, "c2").await);
    world.anonymous().call("POST", &used).await.expect(303);
    remove(&world, &key).await;
    for link in [&unused, &used] {
        expect_dead(&world, link).await;
    }
    store(&key, [Fact::client("ada", "c1"), Fact::client("ada", "c2")]).await;
    for link in [&unused, &used] {
        expect_dead(&world, link).await;
    }
}

#[tokio::test]
async fn a_reader_of_the_feed_goes_on_with_the_cursor_of_before() {
    let world = start(Mode::Test).await;
    let ada = visitor(&world, "ada");
    let (key, reader) = (ada.partner_key().await, reader(&ada, "identifiers").await);
    let (events, cursor) = follow(&reader, "", 50).await;
    assert_eq!(events, [] as [Value; 0]);
    store(&key, ["c1", "c2", "c3"].map(|client| Fact::client("ada", client))).await;
    world.settle().await;
    let (events, later) = follow(&reader, &cursor, 2).await;
    assert_eq!(events.len(), 3);
    remove(&world, &key).await;
    for cursor in [&cursor, &later] {
        assert_eq!(follow(&reader, cursor, 2).await.0, [] as [Value; 0]);
    }
    store(&key, [Fact::client("ada", "c4"), Fact::client("ada", "c5")]).await;
    world.settle().await;
    for cursor in [&cursor, &later] {
        let (events, _) = follow(&reader, cursor, 2).await;
        let mut clients: Vec<&str> =
            events.iter().map(|event| event["data"]["client"]["id"].as_str().unwrap()).collect();
        clients.sort_unstable();
        assert_eq!(clients, ["c4", "c5"]);
    }
}

#[tokio::test]
async fn what_was_to_be_sent_is_not_sent_afterwards() {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let tenant = Tenant::new(&world, &receiver, "wiped").await;
    receiver.otherwise(Answer::status(500));
    store(&tenant.key, [Fact::client("", &tenant.client(1))]).await;
    // The event of a contact that is not there yet waits for it.
    let waits = Fact::opportunity("", &uuid(2), &uuid(1)).with("pipeline_id", "pipeline_test");
    store(&tenant.key, [waits]).await;
    world.settle().await;
    let job = begin(&tenant.key).await;
    end(&world, &tenant.key, &job).await;
    let sent = receiver.hooks().len();
    assert!(sent >= 2, "attempts were made");
    world.advance_s(ENDED_S).await;
    assert_eq!(receiver.hooks().len(), sent);
    let left = tenant.leftovers().await;
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(world.messages(), [] as [(String, String); 0]);
}

/// A welcome mail whose sending died would be taken up by a repeat under its key.
#[tokio::test]
async fn a_creation_that_died_is_not_taken_up_afterwards() {
    let world = start(Mode::Test).await;
    let key = visitor(&world, "ada").partner_key().await;
    let create = || key.post("/v1/clients", json!({ "email": "grace@clients.example" })).idempotent("one");
    world.faults(json!({ "function": "clients", "crash_after_commit": 1 })).await;
    create().await.expect(500);
    world.clear_faults().await;
    remove(&world, &key).await;
    assert_eq!(world.changes("client.created").await, [] as [Value; 0]);
    let made = create().await.expect(201);
    assert_eq!((made.is_replay(), &made.body["welcome_email_sent"]), (false, &json!(true)));
    world.settle().await;
    assert_eq!(world.changes("client.created").await.len(), 1);
}
