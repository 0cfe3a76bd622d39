//! Changes that only part of the service sees: late facts of which some fields count, records of merged and erased
//! contacts, calendars and contacts that are not stored, and workspaces with the same ids.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::Step::{Delete, Patch, Post};
use super::{AT, NONE, OTHER_CALENDAR, Row, assert_rows, lee, merged, named, nameless, row, saved, with};
use crate::crm::bookings::{CALENDAR, event, path};
use crate::crm::contacts::merges::{client_of, contact, merged as merge};
use crate::event_feed::{follow, reader_of, whole_feed};
use crate::feed::erasure::{ENDED_S, erased};
use crate::world::{CRM_EVENTS, Fact, PIPELINE, World, rendered, uuid};

/// Times of facts from before every write of the API.
const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

fn contact_rows() -> Vec<Row> {
    let lead = |id: u64| format!("/v1/crm/contacts/{}", uuid(id));
    let early = |id: u64| lee(id).with("occurred_at", EARLY);
    let late = |id: u64| lee(id).with("occurred_at", LATE);
    let updated = |contact: Value, changed: Value| {
        ("contact_updated", json!({ "contact": contact, "changed": changed, "updated_at": AT }))
    };
    let renamed = |id: u64| with(named(id), json!({ "name": "L" }));
    let emailed = |id: u64| with(renamed(id), json!({ "email": "l@example.com" }));
    let merges =
        |into: Value, from: u64| ("contact_merged", json!({ "contact": into, "merged": { "id": uuid(from) } }));
    let super::Step::Fact(backfilled) = merged(404, 1) else { unreachable!() };
    let super::Step::Fact(older) = merged(406, 407) else { unreachable!() };
    vec![
        row(
            "a fact of before a PATCH, with another name and address",
            [saved(early(401)), Patch(lead(401), json!({ "name": "L" }))],
            [saved(late(401).with("name", "Late").with("email", "l@example.com"))],
            [updated(emailed(401), json!(["email"]))],
        ),
        row(
            "a fact of before a PATCH, with another name",
            [saved(early(402)), Patch(lead(402), json!({ "name": "L" }))],
            [saved(late(402).with("name", "Late"))],
            NONE,
        ),
        row("a merge of a contact that is not stored", [], [merged(403, 1)], [merges(named(1), 403)]),
        row("a backfilled merge", [saved(lee(404))], [saved(backfilled.with("backfill", true))], NONE),
        row("the same merge after the backfill", [], [merged(404, 1)], NONE),
        row(
            "a merge that is older",
            [saved(lee(406)), merged(406, 1)],
            [saved(older.with("occurred_at", EARLY))],
            NONE,
        ),
        row("a fact after its backfill", [saved(lee(408).with("backfill", true))], [saved(lee(408))], NONE),
        row(
            "a phone is taken away, and two flags set",
            [saved(lee(409).with("phone", "+1 415 555 0100").with("do_not_contact", false))],
            [saved(lee(409).with("do_not_contact", true).with("marketing", json!({ "email": true, "sms": true })))],
            [updated(named(409), json!(["phone", "do_not_contact", "marketing"]))],
        ),
    ]
}

fn opportunity_rows() -> Vec<Row> {
    let at = |id: u64| format!("/v1/crm/opportunities/{}", uuid(id));
    let deal = |id: u64, contact: u64| Fact::opportunity("ada", &uuid(id), &uuid(contact));
    let shown = |id: u64, name: &str, value: u64, stage: &str, status: &str| {
        json!({
            "id": uuid(id), "name": name, "value_cents": value, "pipeline_id": PIPELINE, "stage": stage,
            "status": status,
        })
    };
    let updated = |contact: Value, opportunity: Value, changed: Value| {
        let data = json!({ "contact": contact, "opportunity": opportunity, "changed": changed, "updated_at": AT });
        ("opportunity_updated", data)
    };
    let moved = |contact: Value, opportunity: Value, (stage, status): (&str, &str), changed: Value| {
        let data = json!({
            "contact": contact, "opportunity": opportunity, "from_pipeline_id": PIPELINE, "from_stage": stage,
            "from_status": status, "changed": changed, "updated_at": AT,
        });
        ("opportunity_stage_changed", data)
    };
    let from_won = |(of, data): (&'static str, Value)| (of, with(data, json!({ "from_pipeline_id": "pipeline-won" })));
    let won = |id: u64| with(shown(id, "Package", 25_000, "new", "won"), json!({ "pipeline_id": "pipeline-won" }));
    let pipeline = Fact::pipeline("ada").with("pipeline_id", "pipeline-won");
    let pipeline = pipeline.with("stages", json!([{ "id": "new", "name": "Done", "kind": "won" }]));
    vec![
        row(
            "a fact of before a PATCH, in another stage",
            [saved(deal(421, 1).with("occurred_at", EARLY)), Patch(at(421), json!({ "valueCents": 5 }))],
            [saved(deal(421, 1).with("occurred_at", LATE).with("value_cents", 9).with("stage", "warm"))],
            [moved(named(1), shown(421, "Package", 5, "warm", "open"), ("new", "open"), json!([]))],
        ),
        row(
            "a stage with the same id that has another kind in another pipeline",
            [saved(deal(422, 1)), saved(pipeline)],
            [saved(deal(422, 1).with("pipeline_id", "pipeline-won"))],
            [moved(named(1), won(422), ("new", "open"), json!([]))],
        ),
        row(
            "a change within that pipeline",
            [],
            [saved(deal(422, 1).with("pipeline_id", "pipeline-won").with("name", "P"))],
            [updated(named(1), with(won(422), json!({ "name": "P" })), json!(["name"]))],
        ),
        row(
            "back, with another name",
            [],
            [saved(deal(422, 1))],
            [from_won(moved(named(1), shown(422, "Package", 25_000, "new", "open"), ("new", "won"), json!(["name"])))],
        ),
        row(
            "PATCH of a merged contact's opportunity",
            [saved(lee(430)), saved(deal(423, 430)), merged(430, 1)],
            [Patch(at(423), json!({ "stage": "warm" }))],
            [moved(named(1), shown(423, "Package", 25_000, "warm", "open"), ("new", "open"), json!([]))],
        ),
        row(
            "another reason and another value",
            [saved(deal(424, 1).with("stage", "lost").with("lost_reason", "Price"))],
            [Patch(at(424), json!({ "lostReason": "Time", "valueCents": 1 }))],
            [updated(named(1), shown(424, "Package", 1, "lost", "lost"), json!(["value_cents"]))],
        ),
        row(
            "POST with members",
            [],
            [Post("/v1/crm/opportunities", json!({ "contactId": uuid(1), "name": "P", "valueCents": 3 }))],
            [(
                "opportunity_created",
                json!({
                    "contact": named(1), "created_at": AT,
                    "opportunity": with(shown(1, "P", 3, "new", "open"), json!({ "id": super::NEW })),
                }),
            )],
        ),
    ]
}

fn booking_rows(midnight: DateTime<Utc>) -> Vec<Row> {
    let at = |hour: i64| midnight + TimeDelta::hours(hour);
    let on = |id: u64, hour: i64| event("ada", &uuid(id), Some(CALENDAR), at(hour), 60).with("lead_id", uuid(1));
    let of = |id: u64, hour: i64, lead: u64| on(id, hour).with("lead_id", uuid(lead));
    let shown = |id: u64, hour: i64, status: &str| {
        json!({
            "id": uuid(id), "calendar_id": uuid(CALENDAR), "starts_at": rendered(at(hour)),
            "ends_at": rendered(at(hour + 1)), "timezone": "UTC", "status": status,
        })
    };
    let booked =
        |contact: Value, booking: Value| ("booking_created", json!({ "contact": contact, "booking": booking }));
    let ended = |booking: Value| ("booking_cancelled", json!({ "contact": named(1), "booking": booking }));
    let moved = |contact: Value, booking: Value, from: i64| {
        let data = json!({ "contact": contact, "booking": booking, "previous_starts_at": rendered(at(from)) });
        ("booking_rescheduled", data)
    };
    let to = |time: &str| json!({ "leadId": uuid(1), "date": midnight.date_naive(), "time": time });
    let month = |hour: i64| on(510, hour).with("ends_at", rendered(at(hour + 31 * 24)));
    let a_month = |hour: i64| json!({ "ends_at": rendered(at(hour + 31 * 24)) });
    let in_new_york = json!({ "calendar_id": uuid(12), "timezone": "America/New_York" });
    let elsewhere = json!({ "calendar_id": uuid(OTHER_CALENDAR) });
    vec![
        row(
            "of a contact that is not stored",
            [],
            [saved(of(501, 1, 590))],
            [booked(nameless(590), shown(501, 1, "confirmed"))],
        ),
        row(
            "of a merged contact",
            [saved(lee(591)), merged(591, 1)],
            [saved(of(502, 2, 591))],
            [booked(named(1), shown(502, 2, "confirmed"))],
        ),
        row(
            "PATCH of a merged contact's booking",
            [],
            [Patch(path(&uuid(502)), to("03:00"))],
            [moved(named(1), shown(502, 3, "confirmed"), 2)],
        ),
        row(
            "DELETE of a merged contact's booking",
            [],
            [Delete(path(&uuid(502)), json!({ "leadId": uuid(1) }))],
            [ended(shown(502, 3, "cancelled"))],
        ),
        row(
            "on a calendar that is not stored",
            [],
            [saved(on(503, 4).with("calendar_id", uuid(12)))],
            [booked(named(1), with(shown(503, 4, "confirmed"), in_new_york))],
        ),
        row(
            "moved and cancelled at once",
            [saved(on(504, 5))],
            [saved(on(504, 6).with("status", "cancelled"))],
            [ended(shown(504, 6, "cancelled"))],
        ),
        row(
            "moved out and cancelled at once",
            [saved(on(505, 7))],
            [saved(on(505, 8).with("calendar_id", Value::Null).with("status", "cancelled"))],
            [ended(shown(505, 7, "cancelled"))],
        ),
        row(
            "another calendar, contact and time at once",
            [saved(on(506, 9)), saved(lee(592))],
            [saved(of(506, 10, 592).with("calendar_id", uuid(OTHER_CALENDAR)))],
            [moved(named(592), with(shown(506, 10, "confirmed"), elsewhere), 9)],
        ),
        row(
            "cancelled by a fact of before a PATCH",
            [saved(on(507, 11).with("occurred_at", EARLY)), Patch(path(&uuid(507)), to("12:00"))],
            [saved(on(507, 13).with("occurred_at", LATE).with("status", "cancelled"))],
            [ended(shown(507, 12, "cancelled"))],
        ),
        row(
            "moved by a fact of before a PATCH",
            [saved(on(508, 13).with("occurred_at", EARLY)), Patch(path(&uuid(508)), to("14:00"))],
            [saved(on(508, 15).with("occurred_at", LATE))],
            NONE,
        ),
        row("after its backfill", [saved(on(509, 15).with("backfill", true))], [saved(on(509, 15))], NONE),
        row(
            "moved by the application while it is backfilled",
            [],
            [saved(on(509, 16).with("backfill", true)), saved(on(509, 17))],
            [moved(named(1), shown(509, 17, "confirmed"), 16)],
        ),
        row(
            "a month, moved by more than a month: the largest transaction",
            [saved(month(1_000))],
            [saved(month(2_000))],
            [moved(named(1), with(shown(510, 2_000, "confirmed"), a_month(2_000)), 1_000)],
        ),
    ]
}

#[tokio::test]
async fn a_change_that_is_partly_seen_is_the_event_of_its_seen_part() {
    assert_rows(async |_| contact_rows()).await;
    assert_rows(async |_| opportunity_rows()).await;
    assert_rows(async |world| booking_rows(world.midnight_in(3).await)).await;
}

#[tokio::test]
async fn neither_an_erasure_nor_what_follows_it_is_an_event_of_the_contact() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let reader = reader_of(&ada, &CRM_EVENTS, "contact_details").await;
    let midnight = world.midnight_in(3).await;
    world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR)), contact(1), lee(2)]).await;
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
        merge(1, 2),
        merge(3, 1),
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
    world.apply([merge(1, 2)]).await;
    let merged = follow(&reader, "", 200).await.1;
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
    let mut named = about(follow(&reader, &merged, 200).await.0);
    named.sort_unstable();
    assert_eq!(named, [uuid(20), uuid(21), uuid(30), uuid(31)]);
    world.apply([erased(&client)]).await;
    world.advance_s(ENDED_S).await;
    assert_eq!(about(follow(&reader, &merged, 200).await.0), [""; 0]);
}

#[tokio::test]
async fn workspaces_with_the_same_ids_have_events_of_their_own() {
    let world = World::start().await;
    let midnight = world.midnight_in(3).await;
    let mut readers = Vec::new();
    for coach in ["ada", "bob"] {
        readers.push(reader_of(&world.coach(coach).await, &CRM_EVENTS, "contact_details").await);
    }
    let facts = |coach: &'static str| {
        let booking = event(coach, &uuid(30), Some(CALENDAR), midnight, 60).with("lead_id", uuid(1));
        [
            Fact::pipeline(coach),
            Fact::calendar(coach, &uuid(CALENDAR)),
            Fact::contact(coach, &uuid(1)).with("name", coach),
            Fact::opportunity(coach, &uuid(20), &uuid(1)),
            booking,
        ]
    };
    world.apply(facts("ada").into_iter().chain(facts("bob"))).await;
    let mut ids = std::collections::BTreeSet::new();
    for (reader, coach) in readers.iter().zip(["ada", "bob"]) {
        let feed = whole_feed(reader).await;
        assert_eq!(feed.len(), 3, "{feed:?}");
        for event in feed {
            let name = &event["data"]["contact"]["name"];
            assert!(name.is_null() || name == coach, "{event}");
            ids.insert(event["id"].to_string());
        }
    }
    assert_eq!(ids.len(), 6);
}
