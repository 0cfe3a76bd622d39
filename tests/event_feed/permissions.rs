//! Who may read events: a key of either scope with events, of a workspace that is entitled.

use serde_json::{Value, json};

use super::{reader, reader_of, whole_feed};
use crate::world::{CRM_PERMISSIONS, Caller, Fact, World, emitted_events};

const ROUTES: [&str; 2] = ["/v1/events", "/v1/events/samples?type=new_client"];

async fn crm_reader(world: &World, coach: &crate::world::Coach<'_>, events: Value) -> Caller {
    let body = json!({ "name": "C", "scope": "crm", "permissions": ["contacts.read"], "events": events });
    world.anonymous().with_bearer(coach.new_key(body).await.str("key"))
}

fn all_events() -> Value {
    json!({ "types": emitted_events(), "payload_mode": "identifiers" })
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
    world.apply([Fact::client("ada", "c1")]).await;
    for key in [&partner[0], &crm[0]] {
        assert_eq!(whole_feed(key).await.len(), 1, "a key of either scope reads the same feed");
    }
    world.anonymous().get("/v1/events").await.refused(401, "unauthorized");
    world.coach("ada").with("entitlements", entitlements(false, true, true)).await;
    partner[0].get("/v1/events").await.refused(402, "partner_api_not_entitled");
    partner[1].get("/v1/events").await.refused(403, "permission_missing");
    crm[0].get("/v1/events").await.expect(200);
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
