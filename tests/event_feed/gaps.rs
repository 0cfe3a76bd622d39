//! A feed tells its gaps: no event is stored while no key may read events. A cursor from before is refused.

use std::future::IntoFuture;

use futures::future::join;
use serde_json::{Value, json};

use super::{follow, page, whole_feed};
use crate::world::{Caller, Coach, Fact, World, emitted_events};

/// Time for which events are stored after the last key that may read them has expired.
const GRACE_S: u64 = 120;

/// A key with its caller.
struct Reader {
    path: String,
    caller: Caller,
}

fn all_events() -> Value {
    json!({ "types": emitted_events(), "payload_mode": "identifiers" })
}

async fn reader(coach: &Coach<'_>, expires_at: Value) -> Reader {
    let body = json!({ "name": "R", "scope": "partner", "events": all_events(), "expires_at": expires_at });
    let made = coach.new_key(body).await;
    Reader {
        path: format!("/settings/keys/{}", made.str("id")),
        caller: coach.world.anonymous().with_bearer(made.str("key")),
    }
}

async fn end_of(caller: &Caller) -> String {
    follow(caller, "", 9).await.1
}

async fn assert_expired(caller: &Caller, cursor: &str, when: &str) {
    let refused = caller.get(&format!("/v1/events?cursor={cursor}")).await;
    assert_eq!((refused.status, &refused.body["code"]), (400, &json!("cursor_expired")), "{when}: {}", refused.text);
}

#[tokio::test]
async fn a_cursor_from_before_a_time_without_a_reader_is_expired() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let first = reader(&ada, Value::Null).await;
    world.apply([Fact::client("ada", "c1"), Fact::client("ada", "c2")]).await;
    let cursors = [page(&first.caller, "limit=1").await.next_cursor.unwrap(), end_of(&first.caller).await];
    settings.delete(&first.path).await.expect(200);
    world.apply([Fact::client("ada", "c3")]).await;
    let second = reader(&ada, Value::Null).await;
    for cursor in &cursors {
        assert_expired(&second.caller, cursor, "the key is revoked").await;
    }
    // A reader that begins anew gets what is kept, page by page, over the gap.
    world.apply([Fact::client("ada", "c4")]).await;
    assert_eq!(follow(&second.caller, "", 1).await.0.len(), 3);
    let cursor = end_of(&second.caller).await;
    settings.patch(&second.path, json!({ "events": null })).await.expect(200);
    settings.patch(&second.path, json!({ "events": all_events() })).await.expect(200);
    assert_expired(&second.caller, &cursor, "the key could not read events").await;
    let cursor = end_of(&second.caller).await;
    settings
        .patch(&second.path, json!({ "events": { "types": ["new_client"], "payload_mode": "identifiers" } }))
        .await
        .expect(200);
    assert!(follow(&second.caller, &cursor, 9).await.0.is_empty(), "other events are no break");
}

#[tokio::test]
async fn a_cursor_outlives_keys_that_overlap() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let first = reader(&ada, json!(world.timestamp_in(3_600).await)).await;
    let cursor = end_of(&first.caller).await;
    let second = reader(&ada, Value::Null).await;
    settings.delete(&first.path).await.expect(200);
    world.apply([Fact::client("ada", "c1")]).await;
    let rotated = settings.post(&format!("{}/rotate", second.path), json!({})).await.expect(201);
    settings.delete(&second.path).await.expect(200);
    world.apply([Fact::client("ada", "c2")]).await;
    let plain = ada.new_key(json!({ "name": "P", "scope": "partner" })).await;
    settings.patch(&format!("/settings/keys/{}", plain.str("id")), json!({ "events": all_events() })).await.expect(200);
    let fourth = world.anonymous().with_bearer(plain.str("key"));
    settings.delete(&format!("/settings/keys/{}", rotated.str("id"))).await.expect(200);
    world.apply([Fact::client("ada", "c3")]).await;
    assert_eq!(follow(&fourth, &cursor, 9).await.0.len(), 3);
}

#[tokio::test]
async fn storing_begins_anew_after_the_last_reader_has_expired() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let first = reader(&ada, json!(world.timestamp_in(3_600).await)).await;
    let cursor = end_of(&first.caller).await;
    world.advance_s(3_601).await;
    let second = reader(&ada, Value::Null).await;
    assert_expired(&second.caller, &cursor, "the key has expired").await;
    assert!(whole_feed(&second.caller).await.is_empty());
}

#[tokio::test]
async fn no_event_is_stored_before_the_first_reader_or_after_the_last_has_expired() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    reader(&ada, json!(world.timestamp_in(3_600).await)).await;
    world.apply([Fact::client("ada", "c2")]).await;
    world.advance_s(3_600 + GRACE_S + 1).await;
    world.apply([Fact::client("ada", "c3")]).await;
    let second = reader(&ada, Value::Null).await;
    let events = whole_feed(&second.caller).await;
    assert_eq!((events.len(), &events[0]["data"]["client"]["id"]), (1, &json!("c2")));
}

#[tokio::test]
async fn of_keys_that_come_and_go_at_once_no_cursor_hides_a_gap() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for round in 0..6 {
        let settings = ada.settings().await;
        let first = reader(&ada, Value::Null).await;
        let cursor = end_of(&first.caller).await;
        let create = json!({ "name": "R", "scope": "partner", "events": all_events() });
        let revoke = settings.delete(&first.path).into_future();
        let (_, made) = join(revoke, settings.post("/settings/keys", create).into_future()).await;
        let made = made.expect(201);
        let second = world.anonymous().with_bearer(made.str("key"));
        world.apply([Fact::client("ada", &format!("c{round}"))]).await;
        let reply = second.get(&format!("/v1/events?cursor={cursor}")).await;
        match reply.status {
            200 => assert_eq!(reply.body["data"].as_array().unwrap().len(), 1, "{}", reply.text),
            _ => drop(reply.refused(400, "cursor_expired")),
        }
        settings.delete(&format!("/settings/keys/{}", made.str("id"))).await.expect(200);
    }
}
