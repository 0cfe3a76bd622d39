//! Events of the CRM. `table` has each write of the API and each fact with the events that it emits. `races` follows
//! the events of records that many writers change at once. `waits` has records that arrive before their contacts.

mod erasure;
pub(crate) mod races;
mod table;
mod waits;

use serde_json::{Value, json};

use crate::crm::contacts::merges::merged;
use crate::event_feed::{reader_of, whole_feed};
use crate::world::{CLIENT_EVENTS, CRM_EVENTS, Coach, Endpoint, Fact, Receiver, World, fact, uuid};

pub(crate) const MODES: [&str; 2] = ["identifiers", "contact_details"];

/// Registers an endpoint for these events.
pub(crate) async fn endpoint(ada: &Coach<'_>, receiver: &Receiver, events: &[&str], mode: &str) -> Endpoint {
    let body = json!({ "url": receiver.url(), "events": events, "payload_mode": mode });
    let made = ada.settings().await.post("/settings/webhooks", body).await.expect(201);
    Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() }
}

/// An event of each type.
pub(crate) async fn all_types(world: &World) {
    let starts_at = world.timestamp_in(86_400).await;
    let booking = |ends_in_s| async move {
        let fields = json!({
            "event_id": uuid(30), "coach_id": "ada", "calendar_id": uuid(10), "lead_id": uuid(1),
            "starts_at": starts_at, "ends_at": world.timestamp_in(ends_in_s).await, "status": "confirmed",
        });
        fact("calendar_event.saved", fields)
    };
    let booked = booking.clone()(90_000).await;
    let moved = booking(91_000).await;
    let opportunity = Fact::opportunity("ada", &uuid(20), &uuid(1));
    world.apply([Fact::pipeline("ada"), Fact::calendar("ada", &uuid(10))]).await;
    for fact in [
        Fact::contact("ada", &uuid(1)).with("email", "lee@example.com"),
        Fact::contact("ada", &uuid(1)).with("email", "lee@example.com").with("name", "Lee L."),
        merged(2, 1),
        opportunity.clone(),
        opportunity.clone().with("value_cents", 7),
        opportunity.with("value_cents", 7).with("stage", "lost").with("lost_reason", "SECRET"),
        booked,
        moved.clone(),
        moved.with("status", "cancelled"),
    ] {
        world.apply([fact]).await;
    }
}

#[tokio::test]
async fn only_who_asks_for_an_event_of_the_crm_gets_it() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let [before, receiver] = [Receiver::start().await, Receiver::start().await];
    endpoint(&ada, &before, &CLIENT_EVENTS, "contact_details").await;
    let old_key = reader_of(&ada, &CLIENT_EVENTS, "contact_details").await;
    let mut endpoints = Vec::new();
    let mut keys = Vec::new();
    for mode in MODES {
        endpoints.push(endpoint(&ada, &receiver, &CRM_EVENTS, mode).await);
        keys.push(reader_of(&ada, &CRM_EVENTS, mode).await);
    }
    all_types(&world).await;
    assert!(before.hooks().is_empty() && whole_feed(&old_key).await.is_empty());
    let hooks = receiver.hooks();
    assert_eq!(hooks.len(), 2 * CRM_EVENTS.len());
    for key in &keys {
        let feed = whole_feed(key).await;
        let types: Vec<&Value> = feed.iter().map(|event| &event["type"]).collect();
        assert_eq!(types, CRM_EVENTS.iter().collect::<Vec<_>>());
    }
    let texts: Vec<String> = hooks.iter().map(|hook| String::from_utf8(hook.body.clone()).unwrap()).collect();
    assert!(texts.iter().all(|text| !text.contains("SECRET")), "no free text leaves");
    let personal = ["Lee", "lee@example.com", "Package"];
    let bare = hooks.iter().zip(&texts).filter(|(hook, _)| hook.is_signed_with(&endpoints[0].secret));
    assert!(bare.into_iter().all(|(_, text)| personal.iter().all(|part| !text.contains(part))));
}

#[tokio::test]
async fn a_workspace_without_the_crm_emits_none() {
    let world = World::start().await;
    let entitlements = json!({ "partner_api": true, "pro_crm": false, "gym": true });
    let ada = world.coach("ada").with("entitlements", entitlements).await;
    let key = reader_of(&ada, &CRM_EVENTS, "identifiers").await;
    let partner = ada.partner_key().await;
    all_types(&world).await;
    let body = json!({ "email": "lee@example.com", "send_welcome": false });
    partner.post("/v1/clients", body).idempotent("link").await.expect(201);
    world.settle().await;
    assert_eq!(world.changes("contact.updated").await.len(), 1, "the contact is linked");
    assert!(whole_feed(&key).await.is_empty());
}
