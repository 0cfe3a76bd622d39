//! Who may read events: a key of either scope with events, of a workspace that is entitled. Only then is the feed kept.

use serde_json::{Value, json};

use super::{reader, reader_of, whole_feed};
use crate::world::{CRM_PERMISSIONS, Caller, Fact, World, emitted_events};

/// Time for which events are stored after the last key that may read them has expired.
const GRACE_S: u64 = 120;
const ROUTES: [&str; 2] = ["/v1/events", "/v1/events/samples?type=new_client"];

async fn crm_reader(world: &World, coach: &crate::world::Coach<'_>, events: Value) -> Caller {
    let body = json!({ "name": "C", "scope": "crm", "permissions": ["contacts.read"], "events": events });
    world.anonymous().with_bearer(coach.new_key(body).await.str("key"))
}

fn all_events() -> Value {
    json!({ "types": emitted_events(), "payload_mode": "identifiers" })
}

#[tokio::test]
async fn a_key_of_either_scope_reads_the_same_feed() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let keys = [reader(&ada, "identifiers").await, crm_reader(&world, &ada, all_events()).await];
    world.apply([Fact::client("ada", "c1")]).await;
    for key in keys {
        assert_eq!(whole_feed(&key).await.len(), 1);
    }
}

#[tokio::test]
async fn a_key_without_events_or_without_the_type_is_refused() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for key in [ada.partner_key().await, ada.crm_key_with(&CRM_PERMISSIONS).await] {
        for route in ROUTES {
            key.get(route).await.refused(403, "permission_missing");
        }
    }
    let key = reader_of(&ada, &["new_client", "phase_advanced"], "identifiers").await;
    key.get("/v1/events?types=phase_advanced,new_client").await.expect(200);
    for query in ["?types=message_received", "?types=new_client,message_received", "/samples?type=message_received"] {
        key.get(&format!("/v1/events{query}")).await.refused(403, "permission_missing");
    }
    key.get("/v1/events?types=new_client,unheard_of").await.refused(400, "invalid_request");
}

#[tokio::test]
async fn the_checks_come_in_the_order_of_every_route() {
    let world = World::start().await;
    let entitlements = |partner_api: bool, pro_crm: bool, gym: bool| json!({ "partner_api": partner_api, "pro_crm": pro_crm, "gym": gym });
    let ada = world.coach("ada").await;
    let partner = [reader(&ada, "identifiers").await, ada.partner_key().await];
    let crm = [crm_reader(&world, &ada, all_events()).await, crm_reader(&world, &ada, Value::Null).await];
    world.anonymous().get("/v1/events").await.refused(401, "unauthorized");
    world.coach("ada").with("entitlements", entitlements(false, true, true)).await;
    partner[0].get("/v1/events").await.refused(402, "partner_api_not_entitled");
    partner[1].get("/v1/events").await.refused(403, "permission_missing");
    crm[0].get("/v1/events").await.expect(200);
    world.coach("ada").with("entitlements", entitlements(true, false, true)).await;
    world.coach("ada").with("entitlements", entitlements(true, false, true)).await;
    partner[0].get("/v1/events").await.expect(200);
    for (granted, code) in
        [(entitlements(true, false, false), "crm_not_entitled"), (entitlements(true, true, false), "gym_not_enabled")]
    {
        // The CRM's other routes need a pipeline, too, which is looked at last.
        for workspace in [world.coach("ada"), world.coach("ada").with("crm", Value::Null)] {
            workspace.with("entitlements", granted.clone()).await;
            for key in &crm {
                key.get("/v1/events").await.refused(403, code);
                key.get("/v1/crm/contacts").await.refused(403, code);
            }
        }
    }
    world.coach("ada").with("crm", Value::Null).await;
    for route in ROUTES {
        crm[0].get(route).await.expect(200);
        crm[1].get(route).await.refused(403, "permission_missing");
    }
    for path in ["/v1/crm/contacts", "/v1/crm/workflows"] {
        crm[0].get(path).await.refused(403, "owner_configuration_missing");
    }
}

#[tokio::test]
async fn another_coach_has_a_feed_of_its_own() {
    let world = World::start().await;
    let (ada, eve) = (world.coach("ada").await, world.coach("eve").await);
    let keys = [reader(&ada, "identifiers").await, reader(&eve, "identifiers").await];
    world.apply([Fact::client("ada", "c1"), Fact::client("ada", "c2"), Fact::client("eve", "e1")]).await;
    let of_eve = whole_feed(&keys[1]).await;
    assert!(of_eve.iter().all(|event| event["data"]["client"]["id"] == "e1"), "{of_eve:?}");
    // The client moves. What happened before stays with the coach whose client it was.
    world.apply([Fact::client("eve", "c1")]).await;
    let at = world.timestamp_in(0).await;
    world.apply([super::message("c1", 1, &at)]).await;
    assert_eq!(whole_feed(&keys[0]).await.len(), 2);
    assert_eq!(whole_feed(&keys[1]).await.len(), 2);
}

#[tokio::test]
async fn the_feed_is_kept_while_a_key_may_read_events() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let stored = async || world.items("events", "COACH#ada").await.len();
    world.apply([Fact::client("ada", "c1")]).await;
    assert_eq!(stored().await, 0, "no key reads events");
    let made = ada
        .new_key(json!({ "name": "R", "scope": "partner", "events": all_events(), "expires_at": world.timestamp_in(7200).await }))
        .await;
    world.apply([Fact::client("ada", "c2")]).await;
    assert_eq!(stored().await, 2, "the event, and the beginning of the feed");
    world.advance_s(7_200 + GRACE_S + 1).await;
    world.apply([Fact::client("ada", "c3")]).await;
    assert_eq!(stored().await, 2, "the key has expired");
    let path = format!("/settings/keys/{}", ada.new_key(json!({ "name": "S", "scope": "partner" })).await.str("id"));
    settings.patch(&path, json!({ "events": all_events() })).await.expect(200);
    world.apply([Fact::client("ada", "c4")]).await;
    assert_eq!(stored().await, 3);
    settings.delete(&path).await.expect(200);
    world.apply([Fact::client("ada", "c5")]).await;
    assert_eq!(stored().await, 3, "the key is revoked");
    assert!(made.body["events"].is_object());
}
