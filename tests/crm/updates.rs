//! `updated_since` of contacts, opportunities and bookings: records in the order in which the service stored their last
//! shown change.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, Desk, LEAD, OTHER_LEAD, event, slot, to};
use crate::crm::contacts::merges::{client_of, contact, merged, pseudo_random};
use crate::crm::contacts::patch;
use crate::crm::lists::{walk, walked_ids};
use crate::feed::erasure::erased;
use crate::world::{Bill, Fact, World, assert_cost, rendered, uuid};

const LONG_AGO: &str = "updated_since=2000-01-01T00:00:00Z";
const NOUNS: [&str; 3] = ["contacts", "opportunities", "bookings"];
/// `cargo test -p behaviour --features long-simulation updates` tries more of them.
const SEEDS: std::ops::Range<u64> = if cfg!(feature = "long-simulation") { 0..10 } else { 0..2 };
const STEPS: usize = 60;
const STEPS_PER_CHECKPOINT: usize = 12;

/// The query of everything that was updated from now on.
async fn from_now(world: &World) -> String {
    format!("updated_since={}", rendered(world.now().await))
}

/// Expected orders: for each list the ids by their last update, each with the number of the step.
#[derive(Default)]
struct Model([Vec<(usize, String)>; 3]);

impl Model {
    fn touch(&mut self, list: usize, step: usize, number: u64) {
        self.0[list].retain(|(_, id)| *id != uuid(number));
        self.0[list].push((step, uuid(number)));
    }

    fn since(&self, list: usize, step: usize) -> Vec<String> {
        self.0[list].iter().filter(|(touched, _)| *touched >= step).map(|(_, id)| id.clone()).collect()
    }
}

#[tokio::test]
async fn any_writes_are_listed_in_the_order_in_which_they_were_stored() {
    futures::future::join_all(SEEDS.map(play)).await;
}

/// Plays random writes, and compares every list from every checkpoint with the model, in pages of several sizes.
async fn play(seed: u64) {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    world.apply([Fact::pipeline("ada")]).await;
    let (mut pick, mut model, mut checkpoints) = (pseudo_random(seed), Model::default(), Vec::new());
    let (mut merged_away, mut last_facts): (Vec<u64>, Vec<Fact>) = (Vec::new(), Vec::new());
    for step in 0..STEPS {
        if step % STEPS_PER_CHECKPOINT == 0 {
            checkpoints.push((step, from_now(&world).await));
        }
        let number = 100 + pick(6) as u64;
        let is_live = !merged_away.contains(&number);
        let starts = world.midnight_in(2).await + TimeDelta::minutes(step as i64);
        let written = |number: u64, list: usize| model.0[list].iter().any(|(_, id)| *id == uuid(number));
        let opportunity = Fact::opportunity("ada", &uuid(number), &uuid(LEAD));
        let (list, fact) = match pick(8) {
            0 if is_live => (0, contact(number).with("name", format!("Step {step}"))),
            1 if is_live && number < 105 => {
                merged_away.push(number);
                (0, merged(number, number + 1 + pick(2) as u64))
            }
            2 => (1, opportunity.with("value_cents", step)),
            3 => (2, event("ada", &uuid(number), Some(CALENDAR), starts, 60)),
            4 if !written(number, 2) => continue,
            4 => {
                let status = if pick(2) == 0 { "cancelled" } else { "confirmed" };
                (2, event("ada", &uuid(number), Some(CALENDAR), starts, 30).with("status", status))
            }
            5 if is_live && written(number, 0) => {
                patch(&world, &desk.key, &uuid(number), json!({ "name": format!("Step {step}") })).await.expect(200);
                model.touch(0, step, number);
                last_facts.clear();
                continue;
            }
            6 if written(number, 1) => {
                let path = format!("/v1/crm/opportunities/{}", uuid(number));
                let change = desk.key.patch(&path, json!({ "valueCents": 1_000 + step }));
                change.idempotent(&format!("step-{step}")).await.expect(200);
                model.touch(1, step, number);
                last_facts.clear();
                continue;
            }
            // What repeats the last fact, or is older than all, changes nothing.
            _ => {
                let Some(last) = last_facts.last().cloned() else { continue };
                let stale = last.clone().with("occurred_at", "2001-01-01T00:00:00Z").with("name", "Stale");
                world.apply([last.without("occurred_at"), stale]).await;
                last_facts.clear();
                continue;
            }
        };
        // A merged contact takes no record, and a merge is repeated as a new one.
        last_facts = if fact.detail_type == "contact.merged" { Vec::new() } else { vec![fact.clone()] };
        world.apply([fact]).await;
        model.touch(list, step, number);
    }
    checkpoints.push((0, LONG_AGO.to_owned()));
    for (list, noun) in NOUNS.into_iter().enumerate() {
        // A key has 300 requests a minute.
        world.advance_to_next_minute().await;
        for (step, since) in &checkpoints {
            let expected = model.since(list, *step);
            for limit in [1, 2, 3, 200] {
                let mut walked = walked_ids(&desk.key, noun, since, limit).await;
                walked.retain(|id| ![LEAD, OTHER_LEAD].map(uuid).contains(id));
                assert_eq!(walked, expected, "seed {seed}, {noun} from step {step} by {limit}");
            }
        }
    }
    let merged: Vec<Value> = walk(&desk.key, "contacts", LONG_AGO, 200).await;
    let merged = merged.iter().filter(|contact| contact.get("mergedIntoId").is_some());
    assert_eq!(merged.count(), merged_away.len(), "seed {seed}");
}

#[tokio::test]
async fn a_fact_that_arrives_late_is_listed_by_its_arrival_and_shown_as_before() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let at = world.midnight_in(2).await;
    let late = "2020-01-01T00:00:00Z";
    world.apply([Fact::pipeline("ada"), Fact::contact("ada", &uuid(40))]).await;
    let since = from_now(&world).await;
    world
        .apply([
            contact(41).with("occurred_at", late),
            Fact::opportunity("ada", &uuid(41), &uuid(LEAD)).with("occurred_at", late),
            event("ada", &uuid(41), Some(CALENDAR), at, 60).with("occurred_at", late),
        ])
        .await;
    for noun in NOUNS {
        let listed = walk(&key, noun, &since, 200).await;
        assert_eq!(listed.len(), 1, "{noun}");
        let by_id = key.get(&format!("/v1/crm/{noun}?limit=200")).await.expect(200).body;
        assert!(by_id["data"].as_array().unwrap().contains(&listed[0]), "the same form: {listed:?}");
    }
}

#[tokio::test]
async fn a_clock_of_the_application_that_is_ahead_moves_no_record_ahead() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let ahead = rendered(world.now().await + TimeDelta::hours(1));
    let opportunity = Fact::opportunity("ada", &uuid(20), &uuid(LEAD)).with("occurred_at", ahead.as_str());
    world.apply([Fact::pipeline("ada"), contact(40).with("occurred_at", ahead.as_str()), opportunity]).await;
    let at = world.midnight_in(2).await;
    let booking = event("ada", &uuid(30), Some(CALENDAR), at, 60).with("lead_id", uuid(LEAD));
    world.apply([booking.with("occurred_at", ahead.as_str())]).await;
    // Twice, so that the first write is no later than the second.
    for name in ["Ahead", "Again"] {
        let contact = patch(&world, &key, &uuid(40), json!({ "name": name })).await.expect(200);
        let change = key.patch(&format!("/v1/crm/opportunities/{}", uuid(20)), json!({ "name": name }));
        let opportunity = change.idempotent(name).await.expect(200);
        let time = if name == "Ahead" { "04:00" } else { "05:00" };
        let change = key.patch(&format!("/v1/crm/bookings/{}", uuid(30)), to(at.date_naive(), time));
        let booking = change.idempotent(&format!("booking {name}")).await.expect(200);
        let now = rendered(world.now().await);
        for (noun, reply) in [("contact", contact), ("opportunity", opportunity), ("booking", booking)] {
            let updated_at = reply.body[noun]["updatedAt"].as_str().unwrap();
            assert!(updated_at <= now.as_str() && updated_at < ahead.as_str(), "{noun}: {updated_at} at {now}");
        }
    }
    world.settle().await;
    let at_of = |change: &Value| change["occurred_at"].as_str().unwrap().to_owned();
    for detail_type in ["contact.updated", "opportunity.updated", "booking.rescheduled"] {
        let written: Vec<String> = world.changes(detail_type).await.iter().map(at_of).collect();
        assert!(written[0] > ahead && written[1] > written[0], "the order of writes: {written:?} after {ahead}");
    }
    let since = from_now(&world).await;
    for noun in NOUNS {
        assert!(walk(&key, noun, &since, 200).await.is_empty(), "{noun}");
    }
    world.apply([contact(41)]).await;
    assert_eq!(walked_ids(&key, "contacts", LONG_AGO, 1).await[2..], [40, 41].map(uuid));
}

#[tokio::test]
async fn every_shown_change_of_a_booking_is_an_update_and_no_other() {
    let world = World::start().await;
    let desk = Desk { world: &world, key: world.booking_coach("ada").await };
    let date = world.midnight_in(2).await.date_naive();
    let updates = async |since: &str| {
        let walked = walk(&desk.key, "bookings", since, 200).await;
        walked.into_iter().map(|booking| booking["status"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut since = from_now(&world).await;
    let booking = desk.booked(slot(date, "09:00")).await;
    assert_eq!(updates(&since).await, ["confirmed"]);
    since = from_now(&world).await;
    // The time that the booking has, and a calendar's new buffers, which the booking does not take.
    desk.reschedule(&booking, to(date, "09:00")).await.expect(200);
    world.apply([Fact::calendar("ada", &uuid(CALENDAR)).with("buffer_before_minutes", 5)]).await;
    assert!(updates(&since).await.is_empty());
    desk.reschedule(&booking, to(date, "11:00")).await.expect(200);
    assert_eq!(updates(&since).await, ["confirmed"]);
    since = from_now(&world).await;
    desk.cancel(&booking, LEAD).await.expect(200);
    assert_eq!(updates(&since).await, ["cancelled"]);
    assert!(desk.list().await.is_empty());
    since = from_now(&world).await;
    desk.cancel(&booking, LEAD).await.expect(200);
    assert!(updates(&since).await.is_empty(), "a repeated cancellation");
    // A private entry is not listed. It is listed from the moment at which it is on a calendar.
    let at = world.midnight_in(3).await;
    let private = event("ada", &uuid(50), None, at, 60);
    world.apply([private.clone()]).await;
    assert!(updates(&since).await.is_empty());
    world.apply([private.clone().with("calendar_id", uuid(CALENDAR))]).await;
    assert_eq!(updates(&since).await, ["confirmed"]);
    world.apply([private]).await;
    assert!(updates(&since).await.is_empty());
    // An event that waits for its calendar shows nothing new when it gets the buffers.
    world.apply([event("ada", &uuid(51), Some(99), at, 60)]).await;
    since = from_now(&world).await;
    world.apply([Fact::calendar("ada", &uuid(99)).with("buffer_after_minutes", 15)]).await;
    assert!(updates(&since).await.is_empty());
}

#[tokio::test]
async fn a_merge_is_an_update_of_the_merged_contact_at_the_time_of_its_arrival() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    world.apply((1..=4).map(contact)).await;
    let since = from_now(&world).await;
    let earliest = rendered(world.now().await);
    world.apply([merged(1, 2).with("occurred_at", "2026-01-01T00:00:00Z")]).await;
    let alias = walk(&key, "contacts", &since, 200).await.remove(0);
    let stored_at = alias["updatedAt"].as_str().unwrap().to_owned();
    assert_eq!(alias, json!({ "id": uuid(1), "mergedIntoId": uuid(2), "updatedAt": stored_at }));
    assert!(earliest <= stored_at && stored_at <= rendered(world.now().await));
    // The list follows the merges to their end, and a late record of the merged contact is no update.
    world.apply([merged(2, 3)]).await;
    let since_late = from_now(&world).await;
    world.apply([contact(1).with("occurred_at", "2025-01-01T00:00:00Z").with("email", "late@example.com")]).await;
    assert!(walk(&key, "contacts", &since_late, 200).await.is_empty());
    let walked = walk(&key, "contacts", &since, 1).await;
    let ends: Vec<_> = walked.iter().map(|alias| (&alias["id"], &alias["mergedIntoId"])).collect();
    assert_eq!(ends, [(&json!(uuid(1)), &json!(uuid(3))), (&json!(uuid(2)), &json!(uuid(3)))]);
    assert_eq!(walked[0]["updatedAt"], stored_at);
    // A chain that ends at a contact that is not stored.
    world.apply([merged(3, 9)]).await;
    assert!(walk(&key, "contacts", &since, 200).await.iter().all(|alias| alias["mergedIntoId"] == uuid(9)));
    // Merged contacts are in no other list.
    for query in ["order=desc", "email=gwendolyn.1@example.com"] {
        assert!(!walked_ids(&key, "contacts", query, 200).await.contains(&uuid(1)), "{query}");
    }
}

#[tokio::test]
async fn a_contact_that_becomes_a_client_is_updated_and_an_erased_one_is_in_no_list() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let at = world.midnight_in(2).await;
    world.apply([1, 2, 5].map(contact)).await;
    world
        .apply([
            merged(5, 1),
            event("ada", &uuid(30), Some(CALENDAR), at, 60).with("lead_id", uuid(1)),
            event("ada", &uuid(31), None, at, 60).with("lead_id", uuid(1)),
            event("ada", &uuid(32), Some(CALENDAR), at, 60).with("lead_id", uuid(2)),
        ])
        .await;
    let since = from_now(&world).await;
    let client = client_of(&world, 1).await;
    let linked = walk(&key, "contacts", &since, 200).await;
    assert_eq!((linked.len(), &linked[0]["id"], &linked[0]["clientId"]), (1, &json!(uuid(1)), &json!(client)));
    let before = key.get(&format!("/v1/crm/bookings/{}", uuid(30))).await.expect(200).body["booking"].clone();
    let since = from_now(&world).await;
    world.apply([erased(&client)]).await;
    assert!(walk(&key, "contacts", &since, 200).await.is_empty());
    assert_eq!(walked_ids(&key, "contacts", LONG_AGO, 2).await, [uuid(2)], "nor the contact merged into it");
    // The booking of the erased contact stays, and its reader learns that it shows no contact any more.
    let mut expected = before;
    expected["leadId"] = Value::Null;
    assert_eq!(walk(&key, "bookings", &since, 200).await, [expected]);
}

#[tokio::test]
async fn a_page_of_updates_takes_two_calls_in_sequence_and_one_more_with_merged_contacts() {
    let world = World::start().await;
    let key = world.booking_coach("ada").await;
    let page = async |noun: &str, calls: usize, in_sequence: usize| {
        let list = async || drop(key.get(&format!("/v1/crm/{noun}?{LONG_AGO}")).await.expect(200));
        assert_cost(&world, &format!("crm-{noun}"), list, |bill: &Bill| bill.calls == calls, in_sequence).await;
    };
    for (noun, calls) in [("contacts", 2), ("opportunities", 3), ("bookings", 3)] {
        page(noun, calls, 2).await;
    }
    world.apply((3..=9).map(contact)).await;
    world.apply((3..=7).map(|number| merged(number, number + 2))).await;
    page("contacts", 2, 2).await;
    world.apply([merged(9, 99)]).await;
    page("contacts", 3, 3).await;
}
