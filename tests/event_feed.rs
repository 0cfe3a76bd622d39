//! `GET /v1/events`: the event feed. `order` has its promise under crashes and a hand-driven scheduler.

mod costs;
mod erasure;
mod gaps;
mod order;
mod permissions;
mod reads;
mod scheduler;

use serde_json::{Value, json};

use crate::world::{Caller, Coach, Fact, emitted_events, fact, list};

/// A caller with a new partner key that may read events of all types.
pub(crate) async fn reader(coach: &Coach<'_>, payload_mode: &str) -> Caller {
    reader_of(coach, &emitted_events(), payload_mode).await
}

/// A caller with a new partner key that may read events of these types.
pub(crate) async fn reader_of(coach: &Coach<'_>, types: &[&str], payload_mode: &str) -> Caller {
    let events = json!({ "types": types, "payload_mode": payload_mode });
    let made = coach.new_key(json!({ "name": "Reader", "scope": "partner", "events": events })).await;
    coach.world.anonymous().with_bearer(made.str("key"))
}

/// A page of the feed.
#[derive(Debug)]
struct Page {
    data: Vec<Value>,
    next_cursor: Option<String>,
    has_more: bool,
}

/// Reads a page of the feed.
async fn page(reader: &Caller, query: &str) -> Page {
    let body = reader.get(&format!("/v1/events?{query}")).await.expect(200).body;
    Page {
        data: list(body["data"].clone()),
        next_cursor: body["next_cursor"].as_str().map(str::to_owned),
        has_more: body["has_more"].as_bool().unwrap(),
    }
}

/// Follows the feed from a cursor to its end. Returns the events and the cursor for later ones.
pub(crate) async fn follow(reader: &Caller, cursor: &str, limit: usize) -> (Vec<Value>, String) {
    let (mut events, mut cursor) = (Vec::new(), cursor.to_owned());
    loop {
        let page = page(reader, &format!("limit={limit}&cursor={cursor}")).await;
        events.extend(page.data);
        cursor = page.next_cursor.expect("an ascending page has a cursor");
        if !page.has_more {
            return (events, cursor);
        }
    }
}

/// All events of the feed, in order.
pub(crate) async fn whole_feed(reader: &Caller) -> Vec<Value> {
    follow(reader, "", 200).await.0
}

fn id(event: &Value) -> &str {
    event["id"].as_str().unwrap()
}

/// The ids of events, in order.
fn ids(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| id(event).to_owned()).collect()
}

/// A fact about a message to the coach: one event.
fn message(client: &str, number: u64, at: &str) -> Fact {
    fact("message.received", json!({ "client_id": client, "message_id": format!("m{number}"), "received_at": at }))
}
