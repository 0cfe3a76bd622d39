//! Events of erased contacts, and of the contacts that they were merged into.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, event, path};
use crate::crm::contacts::merges::{client_of, contact, merged};
use crate::event_feed::{follow, reader_of, whole_feed};
use crate::feed::erasure::{ENDED_S, erased};
use crate::world::{CRM_EVENTS, Fact, World, uuid};

#[tokio::test]
async fn neither_an_erasure_nor_what_follows_it_is_an_event_of_the_contact() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let reader = reader_of(&ada, &CRM_EVENTS, "contact_details").await;
    let midnight = world.midnight_in(3).await;
    world
        .apply([
            Fact::pipeline("ada"),
            Fact::calendar("ada", &uuid(CALENDAR)),
            contact(1),
            Fact::contact("ada", &uuid(2)),
        ])
        .await;
    let booking = event("ada", &uuid(30), Some(CALENDAR), midnight, 60).with("lead_id", uuid(1));
    let opportunity = Fact::opportunity("ada", &uuid(20), &uuid(1));
    world.apply([opportunity.clone(), booking]).await;
    let client = client_of(&world, 1).await;
    let before = follow(&reader, "", 200).await.1;
    world.apply([erased(&client)]).await;
    world.advance_s(ENDED_S).await;
    let again = event("ada", &uuid(31), Some(CALENDAR), midnight, 60).with("lead_id", uuid(1));
    for fact in [
        contact(1).with("name", "Back"),
        opportunity.with("value_cents", 1),
        Fact::opportunity("ada", &uuid(21), &uuid(1)),
        merged(1, 2),
        merged(3, 1),
        again.clone(),
        again.with("lead_id", uuid(2)),
    ] {
        world.apply([fact]).await;
        world.advance_s(1).await;
    }
    world.advance_s(ENDED_S).await;
    let after = follow(&reader, &before, 200).await.0;
    let [booked] = &after[..] else { panic!("{after:?}") };
    assert_eq!((&booked["type"], &booked["data"]["contact"]), (&json!("booking_created"), &Value::Null));
    assert!(whole_feed(&reader).await.iter().all(|event| event["data"]["contact"]["id"] != uuid(1)));
}

#[tokio::test]
async fn an_erasure_finds_the_events_of_a_merged_contacts_records_whoever_changed_them() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (reader, key) = (reader_of(&ada, &CRM_EVENTS, "identifiers").await, ada.crm_key().await);
    let midnight = world.midnight_in(3).await;
    world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR)), contact(1), contact(2)]).await;
    let (client, _) = (client_of(&world, 1).await, client_of(&world, 2).await);
    let booking = |id: u64, hour: i64| {
        let starts = midnight + TimeDelta::hours(hour);
        event("ada", &uuid(id), Some(CALENDAR), starts, 60).with("lead_id", uuid(1))
    };
    let opportunity = |id: u64| Fact::opportunity("ada", &uuid(id), &uuid(1));
    world.apply([booking(30, 0), booking(31, 1), opportunity(20), opportunity(21)]).await;
    world.advance_s(1).await;
    world.apply([merged(1, 2)]).await;
    let after_merge = follow(&reader, "", 200).await.1;
    // A fact and a request about each.
    world.advance_s(1).await;
    world.apply([booking(30, 2), opportunity(20).with("value_cents", 1)]).await;
    let to = json!({ "leadId": uuid(2), "date": midnight.date_naive(), "time": "03:00" });
    key.patch(&path(&uuid(31)), to).idempotent("move").await.expect(200);
    let worth = json!({ "valueCents": 1 });
    key.patch(&format!("/v1/crm/opportunities/{}", uuid(21)), worth).idempotent("worth").await.expect(200);
    world.settle().await;
    let about = |events: Vec<Value>| -> Vec<String> {
        let id =
            |data: &Value| data["booking"]["id"].as_str().or(data["opportunity"]["id"].as_str()).map(str::to_owned);
        events.iter().filter_map(|event| id(&event["data"])).collect()
    };
    let mut named = about(follow(&reader, &after_merge, 200).await.0);
    named.sort_unstable();
    assert_eq!(named, [uuid(20), uuid(21), uuid(30), uuid(31)]);
    world.apply([erased(&client)]).await;
    world.advance_s(ENDED_S).await;
    assert_eq!(about(follow(&reader, &after_merge, 200).await.0), [""; 0]);
}
