//! Costs of the feed: a page, and what an event costs more.

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
async fn an_event_costs_one_write_unit_more_and_nothing_without_a_reader() {
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
    assert_eq!(next.write_units, without.write_units + 1.0, "{bills:?}");
    assert_eq!(first.write_units, next.write_units + 1.0, "the first event also notes the beginning: {bills:?}");
}
