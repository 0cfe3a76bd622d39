//! Events of records whose contact arrives after them: each waits for the contact up to two minutes, and is emitted
//! once, whatever dies meanwhile.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::crm::bookings::{CALENDAR, event, path, slot};
use crate::crm::contacts::merges::merged;
use crate::crm::events::endpoint;
use crate::event_feed::{reader_of, whole_feed};
use crate::world::{CRM_EVENTS, Caller, Endpoint, Fact, Receiver, World, rendered, uuid};

const DEAL: u64 = 20;
const BOOKING: u64 = 30;
/// Time for which an event waits.
const WAIT_S: u64 = 120;
/// Longer than a message waits after the function that had it died, and than the relay's schedule takes.
const REPEATED_S: u64 = 20 * 60;

/// A coach with a reader and a receiver of the events that wait.
struct Scene {
    world: World,
    crm: Caller,
    reader: Caller,
    receiver: Receiver,
    endpoint: Endpoint,
}

impl Scene {
    async fn new() -> Self {
        let world = World::start().await;
        let ada = world.coach("ada").await;
        let receiver = Receiver::start().await;
        let waiting: Vec<&str> = CRM_EVENTS.into_iter().filter(|name| *name != "contact_created").collect();
        let endpoint = endpoint(&ada, &receiver, &waiting, "contact_details").await;
        let reader = reader_of(&ada, &waiting, "contact_details").await;
        let crm = ada.crm_key().await;
        world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(CALENDAR))]).await;
        Self { world, crm, reader, receiver, endpoint }
    }

    /// A fact of each kind that names a contact.
    async fn facts(&self, contact: u64) -> Vec<(&'static str, Fact)> {
        let starts_at = self.world.midnight_in(2).await + TimeDelta::hours(9);
        let booking = event("ada", &uuid(BOOKING), Some(CALENDAR), starts_at, 60).with("lead_id", uuid(contact));
        vec![
            ("opportunity_created", Fact::opportunity("ada", &uuid(DEAL), &uuid(contact))),
            ("booking_created", booking),
            ("contact_merged", merged(contact + 1, contact)),
        ]
    }

    /// Type and contact of the events that were emitted: those of the feed, which the receiver has got, too, once each.
    async fn emitted(&self) -> Vec<(String, Value)> {
        self.world.settle().await;
        let feed = whole_feed(&self.reader).await;
        let hooks = self.receiver.hooks();
        for event in &feed {
            let sent: Vec<Value> = hooks
                .iter()
                .filter(|hook| hook.header("webhook-id") == event["id"] && hook.is_signed_with(&self.endpoint.secret))
                .map(|hook| hook.json()["data"].clone())
                .collect();
            assert!(!sent.is_empty() && sent.iter().all(|data| *data == event["data"]), "{event}: {sent:?}");
        }
        assert!(hooks.iter().all(|hook| feed.iter().any(|event| hook.header("webhook-id") == event["id"])));
        let named = |event: &Value| (event["type"].as_str().unwrap().to_owned(), event["data"]["contact"].clone());
        feed.iter().map(named).collect()
    }
}

fn lee(id: u64) -> Fact {
    Fact::contact("ada", &uuid(id)).with("email", "lee@example.com").with("phone", "+1 415 555 2671")
}

/// `data.contact` of a contact as [`lee`] makes it.
fn named(id: u64) -> Value {
    json!({ "id": uuid(id), "name": "Lee Lead", "email": "lee@example.com", "phone": "+1 415 555 2671" })
}

fn nameless(id: u64) -> Value {
    json!({ "id": uuid(id), "name": null, "email": null, "phone": null })
}

#[tokio::test]
async fn an_event_names_its_contact_although_the_contact_arrives_after_the_record() {
    let scene = Scene::new().await;
    let mut expected = Vec::new();
    for (number, (of, fact)) in scene.facts(1).await.into_iter().enumerate() {
        // Each event has a contact of its own.
        let contact = 100 + 10 * number as u64;
        let text = fact.detail.to_string().replace(&uuid(1), &uuid(contact));
        let fact = Fact { detail: serde_json::from_str(&text).unwrap(), ..fact };
        scene.world.apply([fact]).await;
        assert_eq!(scene.emitted().await, expected, "{of}");
        // The second look comes after two seconds, the next one after four.
        let late_s = [0, 2, 100][number];
        scene.world.advance_s(late_s).await;
        scene.world.apply([lee(contact)]).await;
        scene.world.advance_s(late_s.max(1)).await;
        expected.push((of.to_owned(), named(contact)));
        assert_eq!(scene.emitted().await, expected, "{of}");
    }
    scene.world.advance_s(REPEATED_S).await;
    assert_eq!(scene.emitted().await, expected);
}

#[tokio::test]
async fn an_event_whose_contact_never_arrives_is_emitted_after_two_minutes_and_its_record_is_stored_at_once() {
    let scene = Scene::new().await;
    let facts = scene.facts(1).await;
    scene.world.apply(facts.iter().map(|(_, fact)| fact.clone())).await;
    let deal = format!("/v1/crm/opportunities/{}", uuid(DEAL));
    assert_eq!(scene.crm.get(&deal).await.expect(200).body["opportunity"]["contactId"], uuid(1));
    assert_eq!(scene.crm.get(&path(&uuid(BOOKING))).await.expect(200).body["booking"]["leadId"], uuid(1));
    scene.world.apply([lee(5)]).await;
    let date = scene.world.midnight_in(2).await.date_naive();
    let mut taken = slot(date, "09:00");
    taken["leadId"] = json!(uuid(5));
    scene.crm.post("/v1/crm/bookings", taken).idempotent("taken").await.refused(409, "slot_unavailable");
    // A write of the API waits as well.
    let changed = json!({ "valueCents": 7 });
    scene.crm.patch(&deal, changed).idempotent("changed").await.expect(200);
    scene.world.advance_s(WAIT_S - 10).await;
    assert!(scene.emitted().await.is_empty());
    scene.world.advance_s(15).await;
    let mut emitted = scene.emitted().await;
    emitted.sort_by(|one, other| one.0.cmp(&other.0));
    let all = ["booking_created", "contact_merged", "opportunity_created", "opportunity_updated"];
    assert_eq!(emitted, all.map(|of| (of.to_owned(), nameless(1))));
    // The contact that arrives now is told of by itself alone.
    scene.world.apply([lee(1)]).await;
    scene.world.advance_s(REPEATED_S).await;
    assert_eq!(scene.emitted().await.len(), all.len());
}

#[tokio::test]
async fn a_waiting_event_names_the_contact_that_its_contact_was_merged_into() {
    let scene = Scene::new().await;
    scene.world.apply([lee(5), Fact::opportunity("ada", &uuid(DEAL), &uuid(1))]).await;
    scene.world.apply([merged(1, 5)]).await;
    scene.world.advance_s(WAIT_S).await;
    let expected = ["contact_merged", "opportunity_created"].map(|of| (of.to_owned(), named(5)));
    let mut emitted = scene.emitted().await;
    emitted.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(emitted, expected);
}

#[tokio::test]
async fn an_event_that_waits_is_emitted_once_wherever_a_function_dies() {
    let scene = Scene::new().await;
    let faults = ["crash_before_call", "crash_after_commit", "store_lost_answers"];
    let mut expected = Vec::new();
    let mut number = 1_000;
    for function in ["ingest", "relay", "deliver"] {
        for fault in faults {
            for spared_calls in 0..6 {
                number += 10;
                let plan = json!({ "function": function, "spared_calls": spared_calls, fault: 1 });
                scene.world.faults(plan).await;
                scene.world.apply([Fact::opportunity("ada", &uuid(number + 1), &uuid(number))]).await;
                scene.world.advance_s(1).await;
                scene.world.apply([lee(number)]).await;
                scene.world.clear_faults().await;
                scene.world.advance_s(REPEATED_S).await;
                expected.push(("opportunity_created".to_owned(), named(number)));
            }
        }
    }
    let emitted = scene.emitted().await;
    for (emitted, expected) in emitted.iter().zip(&expected) {
        // A function that died may let the wait end: then the event has no details, but is not lost.
        assert_eq!(emitted.1["id"], expected.1["id"]);
        assert!(emitted == expected || emitted.1["name"].is_null(), "{emitted:?}");
    }
    assert_eq!(emitted.len(), expected.len());
    let named = emitted.iter().filter(|emitted| emitted.1["name"].is_string()).count();
    assert!(named >= expected.len() * 9 / 10, "{named} of {}", expected.len());
}

#[tokio::test]
async fn nobody_learns_of_a_record_whose_contact_is_merged_into_an_erased_one_while_its_event_waits() {
    let scene = Scene::new().await;
    let partner = scene.world.coach("ada").await.partner_key().await;
    scene.world.apply([lee(5)]).await;
    let body = json!({ "email": "lee@example.com", "send_welcome": false });
    let client = partner.post("/v1/clients", body).await.expect(201).str("client_id").to_owned();
    scene.world.apply([Fact::opportunity("ada", &uuid(DEAL), &uuid(1))]).await;
    let merge = merged(1, 5).with("occurred_at", rendered(scene.world.now().await));
    scene.world.apply([merge, crate::feed::erasure::erased(&client)]).await;
    scene.world.advance_s(REPEATED_S).await;
    let feed = whole_feed(&scene.reader).await;
    assert!(feed.iter().all(|event| event["type"] != "opportunity_created"), "{feed:?}");
    let hooks = scene.receiver.hooks();
    assert!(hooks.iter().all(|hook| hook.header("x-service-event") != "opportunity_created"), "{}", hooks.len());
}
