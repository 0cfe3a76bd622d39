//! `GET /v1/key`: what a key of either scope may do, whatever the plan has.

use domain::time::Timestamp;
use domain::wall_clock::date_at;
use serde_json::{Value, json};

use crate::world::{Bill, World, assert_cost};

#[tokio::test]
async fn a_key_of_either_scope_says_what_it_may_do() {
    let world = World::start().await;
    let ada = world.coach("ada").with("time_zone", "Pacific/Auckland").await;
    let expires_at = world.timestamp_in(86_400).await;
    let events = json!({ "types": ["new_client"], "payload_mode": "contact_details" });
    for (scope, permissions) in
        [("partner", json!(["clients.read"])), ("crm", json!(["bookings.read", "contacts.read"]))]
    {
        let made = ada
            .new_key(json!({
                "name": "Front desk", "scope": scope, "permissions": permissions, "events": events, "expires_at": expires_at,
            }))
            .await;
        let key = world.anonymous().with_bearer(made.str("key"));
        let today = date_at("Pacific/Auckland".parse().unwrap(), Timestamp::new(world.now().await));
        let expected = json!({
            "id": made.body["id"], "name": "Front desk", "scope": scope, "permissions": made.body["permissions"],
            "events": events, "expires_at": made.body["expires_at"], "mode": "live", "entitled": true,
            "workspace": { "name": "Coach ada", "time_zone": "Pacific/Auckland" }, "today": today,
        });
        let reply = key.get("/v1/key").await.expect(200);
        assert_eq!(reply.body, expected);
        assert!(reply.header("ratelimit").is_some());
        assert_eq!(key.call("POST", "/v1/key").await.refused(405, "method_not_allowed").header("allow"), Some("GET"));
    }
}

#[tokio::test]
async fn a_plan_that_lets_nobody_in_is_told_and_never_a_refusal() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, crm) = (ada.partner_key().await, ada.crm_key_with(&["workflows.read"]).await);
    for (partner_api, pro_crm, gym) in
        [(false, true, true), (true, false, true), (true, true, false), (true, true, true)]
    {
        let entitlements = json!({ "partner_api": partner_api, "pro_crm": pro_crm, "gym": gym });
        world.coach("ada").with("entitlements", entitlements).with("crm", Value::Null).await;
        let entitled = async |key: &crate::world::Caller| key.get("/v1/key").await.expect(200).body["entitled"].clone();
        assert_eq!(entitled(&partner).await, partner_api);
        assert_eq!(entitled(&crm).await, pro_crm && gym);
    }
}

#[tokio::test]
async fn a_key_that_is_no_longer_good_is_refused_and_the_limit_holds() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let made = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    let key = world.anonymous().with_bearer(made.str("key"));
    ada.settings().await.delete(&format!("/settings/keys/{}", made.str("id"))).await.expect(200);
    key.get("/v1/key").await.refused(401, "unauthorized");
    let expiring = json!({ "name": "x", "scope": "crm", "permissions": ["contacts.read"], "expires_at": world.timestamp_in(60).await });
    let key = world.anonymous().with_bearer(ada.new_key(expiring).await.str("key"));
    key.get("/v1/key").await.expect(200);
    world.advance_s(60).await;
    key.get("/v1/key").await.refused(401, "unauthorized");
    let key = ada.partner_key().await;
    world.advance_to_next_minute().await;
    for _ in 0..300 {
        key.get("/v1/key").await.expect(200);
    }
    key.get("/v1/key").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn it_costs_what_ping_costs() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    let read = async || drop(key.get("/v1/key").await.expect(200));
    let affordable = |bill: &Bill| bill.calls == 2 && bill.write_units == 1.0 && bill.read_units == 1.0;
    assert_cost(&world, "ping", read, affordable, 2).await;
}
