//! Costs of the feed: a page, and what an event costs more.

use serde_json::{Value, json};

use super::{message, reader};
use crate::world::{Bill, Fact, World, assert_cost, list};

#[tokio::test]
async fn a_page_takes_two_calls_in_sequence() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "contact_details").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let at = world.timestamp_in(0).await;
    world.apply((0..120).map(|number| message("c1", number, &at))).await;
    let cursor = super::page(&key, "limit=1").await.next_cursor.unwrap();
    for (query, calls, units) in [
        // The first page also looks for the item before. 101 items of up to a kilobyte.
        ("limit=100".to_owned(), 3, 26.0),
        (format!("limit=100&cursor={cursor}"), 2, 25.0),
        ("limit=100&order=desc".to_owned(), 2, 26.0),
    ] {
        let path = format!("/v1/events?{query}");
        let read = async || assert_eq!(list(key.get(&path).await.expect(200).body["data"].clone()).len(), 100);
        let affordable = |bill: &Bill| bill.calls == calls && bill.write_units == 1.0 && bill.read_units <= units;
        assert_cost(&world, "events", read, affordable, 2).await;
    }
}

#[tokio::test]
async fn an_event_costs_two_write_units_more_and_nothing_without_a_reader() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let mut bills = Vec::new();
    for number in 0..3 {
        let at = world.timestamp_in(0).await;
        world.apply([message("c1", number, &at)]).await;
        bills.push(Bill::of(&world.calls("relay").await[0]));
        if number == 0 {
            reader(&ada, "contact_details").await;
        }
    }
    let [without, first, next] = &bills[..] else { panic!("{bills:?}") };
    assert_eq!(next.write_units, without.write_units + 2.0, "the event, and its entry by type: {bills:?}");
    assert_eq!(first.write_units, next.write_units + 1.0, "the first event also notes the beginning: {bills:?}");
}

/// A copy of a stored event at another position, of another type.
fn copy_of(item: &Value, number: u64, kind: &str) -> Value {
    let mut copy = item.clone();
    let stored_at: u64 = item["stored_at"]["N"].as_str().unwrap().parse().unwrap();
    let place = format!("{:015}#{number:012}", stored_at - 100_000 + number);
    copy["sk"] = json!({ "S": format!("EVENT#{place}") });
    copy["type_position"] = json!({ "S": format!("{kind}#{place}") });
    copy
}

#[tokio::test]
async fn a_rare_type_of_a_feed_of_20_000_events_costs_30_read_units_at_most() {
    const EVENTS: u64 = 20_000;
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = reader(&ada, "contact_details").await;
    world.apply([Fact::client("ada", "c1")]).await;
    world.apply([message("c1", 0, &world.timestamp_in(0).await)]).await;
    let mut items = world.items("events", "COACH#ada").await;
    items.retain(|item| item["type_position"].is_object());
    let [of_client, of_message] = ["new_client", "message_received"].map(|kind| {
        let is_of = |item: &&Value| item["type_position"]["S"].as_str().unwrap().starts_with(kind);
        items.iter().find(is_of).unwrap().clone()
    });
    for item in &items {
        world.delete_item("events", &json!({ "pk": item["pk"], "sk": item["sk"] })).await;
    }
    // Two new clients far from either end of the feed, among messages.
    let copies = (1..=EVENTS).map(|number| {
        let is_rare = [EVENTS / 2, EVENTS / 2 + 1].contains(&number);
        if is_rare {
            copy_of(&of_client, number, "new_client")
        } else {
            copy_of(&of_message, number, "message_received")
        }
    });
    world.put_items("events", &copies.collect::<Vec<_>>()).await;
    let first = super::page(&key, "limit=1").await.next_cursor.unwrap();
    for (query, count, calls) in [
        ("types=new_client&order=desc&limit=100".to_owned(), 2, 3),
        ("types=new_client&order=desc".to_owned(), 2, 3),
        ("types=new_client&order=desc&limit=1".to_owned(), 1, 3),
        ("types=new_client".to_owned(), 2, 5),
        (format!("types=new_client&limit=200&cursor={first}"), 2, 4),
        ("types=phase_advanced,new_client,low_check_in_score&order=desc".to_owned(), 2, 5),
        ("types=phase_advanced&order=desc".to_owned(), 0, 3),
    ] {
        let body = key.get(&format!("/v1/events?{query}")).await.expect(200).body;
        assert_eq!(list(body["data"].clone()).len(), count, "{query}");
        assert_eq!(body["has_more"], query.ends_with("limit=1"), "{query}");
        let bill = Bill::of(&world.calls("events").await[0]);
        assert!(bill.calls <= calls && bill.read_units <= 30.0, "{query}: {bill:?}");
    }
}
