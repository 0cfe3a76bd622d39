//! `GET /v1/crm/contacts/{id}`, `/v1/crm/opportunities/{id}` and `/v1/crm/bookings/{id}`: one record.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, Desk, LEAD, event, path, slot, to};
use crate::world::{Bill, Caller, Fact, World, assert_cost, uuid};

/// Each list with the member that holds one of its records.
const RECORDS: [(&str, &str); 3] = [("contacts", "contact"), ("opportunities", "opportunity"), ("bookings", "booking")];

/// The records of a list.
async fn list(key: &Caller, list: &str) -> Vec<Value> {
    key.get(&format!("/v1/crm/{list}?limit=200")).await.expect(200).body["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_record_is_read_as_its_list_shows_it() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let at = world.midnight_in(2).await;
    world
        .apply([
            Fact::pipeline("ada"),
            Fact::opportunity("ada", &uuid(20), &uuid(LEAD)),
            Fact::opportunity("ada", &uuid(21), &uuid(LEAD)).with("pipeline_id", "another").with("stage", "open"),
            Fact::calendar("ada", &uuid(CALENDAR)).with("time_zone", "America/New_York"),
            event("ada", &uuid(30), Some(CALENDAR), at, 60).with("lead_id", uuid(LEAD)),
            event("ada", &uuid(31), Some(99), at + TimeDelta::hours(2), 60),
            event("ada", &uuid(32), Some(CALENDAR), at - TimeDelta::days(9), 60),
        ])
        .await;
    for (noun, member) in RECORDS {
        let shown = list(&key, noun).await;
        assert!(shown.len() >= 2, "{noun}");
        for record in shown {
            let id = record["id"].as_str().unwrap();
            for id in [id.to_owned(), id.to_uppercase()] {
                let read = key.get(&format!("/v1/crm/{noun}/{id}")).await.expect(200);
                assert_eq!(read.body, json!({ member: record }), "{noun}");
            }
        }
    }
    let desk = Desk { world: &world, key };
    let booking = desk.booked(slot(at.date_naive(), "15:00")).await;
    let read = desk.key.get(&path(&booking)).await.expect(200);
    assert_eq!((&read.body["booking"]["time"], &read.body["booking"]["leadId"]), (&json!("15:00"), &json!(uuid(LEAD))));
    // A cancelled booking is in no list by id, and is read nevertheless.
    let cancelled = desk.cancel(&booking, LEAD).await.expect(200);
    let read = desk.key.get(&path(&booking)).await.expect(200);
    assert_eq!(read.body, json!({ "booking": cancelled.body["booking"] }));
    assert_eq!(read.body["booking"]["status"], "cancelled");
}

#[tokio::test]
async fn a_private_entry_is_neither_listed_read_nor_changed() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let at = world.midnight_in(2).await;
    world.apply([event("ada", &uuid(50), None, at, 60).with("lead_id", uuid(LEAD))]).await;
    assert!(desk.list().await.is_empty());
    desk.key.get(&path(&uuid(50))).await.refused(404, "not_found");
    desk.reschedule(&uuid(50), to(at.date_naive(), "12:00")).await.refused(404, "not_found");
    desk.cancel(&uuid(50), LEAD).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_record_that_the_workspace_lacks_is_named_as_not_found() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    for (noun, member) in RECORDS {
        let unknown = key.get(&format!("/v1/crm/{noun}/{}", uuid(8))).await.refused(404, "not_found");
        assert_eq!(unknown.members(), ["code", "error", "request_id"], "{noun}");
        assert!(unknown.error().contains(member), "{}", unknown.text);
    }
    key.get("/v1/crm/bookings/availability").await.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn a_read_takes_two_calls_in_sequence() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let at = world.midnight_in(2).await;
    world
        .apply([
            Fact::pipeline("ada"),
            Fact::opportunity("ada", &uuid(20), &uuid(LEAD)),
            event("ada", &uuid(20), Some(CALENDAR), at, 60),
        ])
        .await;
    for (noun, id, calls) in [("contacts", LEAD, 2), ("opportunities", 20, 3), ("bookings", 20, 3)] {
        let path = format!("/v1/crm/{noun}/{}", uuid(id));
        let read = async || drop(key.get(&path).await.expect(200));
        let affordable = |bill: &Bill| bill.calls == calls && bill.read_units <= 2.0 && bill.write_units == 1.0;
        assert_cost(&world, &format!("crm-{noun}"), read, affordable, 2).await;
    }
}
