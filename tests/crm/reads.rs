//! `GET /v1/crm/contacts/{id}`, `/v1/crm/opportunities/{id}` and `/v1/crm/bookings/{id}`: one record.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, Desk, LEAD, OTHER_LEAD, event, slot};
use crate::crm::contacts::merges::{client_of, contact, merged};
use crate::feed::erasure::erased;
use crate::world::{Caller, Fact, World, assert_cost, members, uuid};

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
    let write = Desk { world: &world, key: key.clone() };
    let booking = write.booked(slot(at.date_naive(), "15:00")).await;
    let read = key.get(&format!("/v1/crm/bookings/{booking}")).await.expect(200);
    assert_eq!((&read.body["booking"]["time"], &read.body["booking"]["leadId"]), (&json!("15:00"), &json!(uuid(LEAD))));
}

#[tokio::test]
async fn a_cancelled_booking_is_read_and_a_private_entry_is_not() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let at = world.midnight_in(2).await;
    let booking = desk.booked(slot(at.date_naive(), "09:00")).await;
    let cancelled = desk.cancel(&booking, LEAD).await.expect(200);
    let read = desk.key.get(&format!("/v1/crm/bookings/{booking}")).await.expect(200);
    assert_eq!(read.body, json!({ "booking": cancelled.body["booking"] }));
    assert_eq!(read.body["booking"]["status"], "cancelled");
    world.apply([event("ada", &uuid(50), None, at, 60).with("lead_id", uuid(LEAD))]).await;
    desk.key.get(&format!("/v1/crm/bookings/{}", uuid(50))).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_record_that_the_workspace_lacks_is_404_and_a_malformed_id_is_400() {
    let world = World::start().await;
    let (ada, bob) = (world.booking_coach("ada").await, world.booking_coach("bob").await);
    let at = world.midnight_in(2).await;
    world
        .apply([
            Fact::pipeline("ada"),
            Fact::contact("ada", &uuid(7)),
            Fact::opportunity("ada", &uuid(7), &uuid(7)),
            event("ada", &uuid(7), Some(CALENDAR), at, 60),
        ])
        .await;
    for (noun, member) in RECORDS {
        ada.get(&format!("/v1/crm/{noun}/{}", uuid(7))).await.expect(200);
        let [theirs, unknown] = [7, 8].map(|number| bob.get(&format!("/v1/crm/{noun}/{}", uuid(number))));
        let (theirs, unknown) = (theirs.await.refused(404, "not_found"), unknown.await.refused(404, "not_found"));
        assert_eq!(theirs.error(), unknown.error());
        assert_eq!(theirs.members(), ["code", "error", "request_id"], "{noun}");
        assert!(theirs.error().contains(member), "{}", theirs.text);
        for odd in ["1", "availability", &uuid(7).replace('-', ""), &format!("{}0", uuid(7))] {
            if (noun, odd) == ("bookings", "availability") {
                ada.get("/v1/crm/bookings/availability").await.refused(405, "method_not_allowed");
                continue;
            }
            let reply = ada.get(&format!("/v1/crm/{noun}/{odd}")).await.refused_for("id");
            assert_eq!(reply.body["field"], "id");
        }
    }
}

#[tokio::test]
async fn a_merged_contact_is_404_and_names_the_surviving_one_over_any_chain() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    world.apply((1..=4).map(contact)).await;
    world.apply([merged(3, 4)]).await;
    world.apply([merged(1, 2)]).await;
    let into = async |number: u64| {
        let reply = key.get(&format!("/v1/crm/contacts/{}", uuid(number))).await.refused(404, "not_found");
        reply.body["mergedIntoId"].clone()
    };
    assert_eq!([into(1).await, into(3).await], [uuid(2), uuid(4)]);
    world.apply([merged(2, 3)]).await;
    for number in 1..=3 {
        assert_eq!(into(number).await, uuid(4));
    }
    let problem = key.get(&format!("/v1/crm/contacts/{}", uuid(1))).header("accept", "application/problem+json").await;
    let names = ["code", "detail", "error", "mergedIntoId", "request_id", "status", "title", "type"];
    assert_eq!(members(&problem.body), names);
    // The surviving contact is not stored yet: it is named all the same.
    world.apply([merged(4, 5)]).await;
    assert_eq!(into(1).await, uuid(5));
    key.get(&format!("/v1/crm/contacts/{}", uuid(5))).await.refused(404, "not_found");
}

#[tokio::test]
async fn nothing_is_read_of_an_erased_contact_but_its_bookings_without_it() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let at = world.midnight_in(2).await;
    world
        .apply([
            Fact::pipeline("ada"),
            contact(LEAD),
            contact(OTHER_LEAD),
            Fact::opportunity("ada", &uuid(20), &uuid(LEAD)),
            event("ada", &uuid(30), Some(CALENDAR), at, 60).with("lead_id", uuid(LEAD)),
        ])
        .await;
    let client = client_of(&world, LEAD).await;
    world.apply([merged(OTHER_LEAD, LEAD), erased(&client)]).await;
    for contact in [LEAD, OTHER_LEAD] {
        let reply = key.get(&format!("/v1/crm/contacts/{}", uuid(contact))).await.refused(404, "not_found");
        assert_eq!(reply.body["mergedIntoId"], Value::Null, "{}", reply.text);
    }
    key.get(&format!("/v1/crm/opportunities/{}", uuid(20))).await.refused(404, "not_found");
    let booking = key.get(&format!("/v1/crm/bookings/{}", uuid(30))).await.expect(200);
    assert_eq!(booking.body["booking"]["leadId"], Value::Null);
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
        let affordable =
            |bill: &crate::world::Bill| bill.calls == calls && bill.read_units <= 2.0 && bill.write_units == 1.0;
        assert_cost(&world, &format!("crm-{noun}"), read, affordable, 2).await;
    }
}
