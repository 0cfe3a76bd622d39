//! `GET /settings/workspace`: entitlements and usage.

use serde_json::{Value, json};

use crate::world::{Bill, World};

#[tokio::test]
async fn a_workspace_shows_what_it_may_use() {
    let world = World::start().await;
    let ada = world.coach("ada").await.settings().await;
    let entitlements = json!({ "partner_api": false, "pro_crm": true, "gym": false });
    let changed = world.coach("ada").with("name", "Ada").with("entitlements", entitlements.clone());
    changed.with("crm", Value::Null).await;
    let expected = json!({
        "coach_id": "ada", "name": "Ada", "entitlements": entitlements, "crm_configured": false,
        "keys": { "live": 0, "max": 50 }, "endpoints": { "count": 0, "max": 20 },
    });
    assert_eq!(ada.get("/settings/workspace").await.expect(200).body, expected);
}

#[tokio::test]
async fn a_workspace_counts_the_keys_and_endpoints_that_count_toward_its_limits() {
    let world = World::start().await;
    let (ada, bob) = (world.coach("ada").await, world.coach("bob").await);
    let used = async |caller: &crate::world::Caller| {
        let body = caller.get("/settings/workspace").await.expect(200).body;
        (body["keys"]["live"].as_u64().unwrap(), body["endpoints"]["count"].as_u64().unwrap())
    };
    let settings = ada.settings().await;
    let expires_at = world.timestamp_in(3600).await;
    let key = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    ada.new_key(json!({ "name": "short", "scope": "partner", "expires_at": expires_at })).await;
    let revoked = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    settings.delete(&format!("/settings/keys/{}", revoked.str("id"))).await.expect(200);
    ada.endpoint("https://hooks.example.com/a", "identifiers").await;
    let deleted = ada.endpoint("https://hooks.example.com/b", "identifiers").await;
    assert_eq!(used(&settings).await, (2, 2));
    settings.delete(&format!("/settings/webhooks/{}", deleted.id)).await.expect(200);
    settings.post(&format!("/settings/keys/{}/rotate", key.str("id")), json!({})).await.expect(201);
    assert_eq!(used(&settings).await, (3, 1), "a replaced key counts");
    world.advance_s(3_601).await;
    assert_eq!(used(&settings).await, (2, 1), "an expired key does not");
    world.advance_s(24 * 3_600).await;
    let settings = ada.settings().await;
    assert_eq!(used(&settings).await, (1, 1), "a replaced key ends");
    assert_eq!(used(&bob.settings().await).await, (0, 0));
    let bill = Bill::of(&world.calls("settings").await[0]);
    assert!(bill.calls <= 6 && bill.write_units == 1.0, "{bill:?}");
}
