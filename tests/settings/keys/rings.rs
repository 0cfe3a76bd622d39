//! Key rings: finding a coach's live keys does not depend on the number of ended ones.

use std::future::IntoFuture;

use serde_json::{Value, json};

use crate::settings::start_with_session;
use crate::world::{Bill, Caller, Coach, Reply, World};

/// Number of expired keys of a coach.
const EXPIRED: usize = 1_009;
/// Calls for a `workspace.saved`, apart from one for each live key.
const MOST_CALLS: usize = 9;
const DAY_S: u64 = 86_400;

/// Stores expired keys of a coach, modelled on `made`, oldest first.
async fn expired(world: &World, coach: &Coach<'_>, made: &Reply) -> Vec<String> {
    let id = made.str("id");
    let record = world.items("keys", &format!("KEY#{id}")).await.remove(0);
    let ids: Vec<String> = (0..EXPIRED).map(|number| format!("key_{number:032x}")).collect();
    let items = ids.iter().enumerate().flat_map(|(number, own)| {
        let mut copy: Value = serde_json::from_str(&record.to_string().replace(id, own)).unwrap();
        copy["expires_at"] = json!({ "N": "1767225600000" });
        let sk = format!("KEY#{:015}#{own}", 1_767_200_000_000_u64 + number as u64);
        [copy, json!({ "pk": { "S": format!("COACH#{}", coach.id) }, "sk": { "S": sk } })]
    });
    world.put_items("keys", &items.collect::<Vec<_>>()).await;
    ids
}

async fn ring(world: &World) -> Value {
    let mut items = world.items("keys", "COACH#ada").await;
    items.retain(|item| item["sk"]["S"] == "KEYS");
    items.remove(0)
}

/// The ids on a ring, sorted.
fn ring_ids(ring: &Value) -> Vec<&str> {
    let mut ids: Vec<&str> =
        ring["live_keys"]["SS"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ids.sort_unstable();
    ids
}

/// Changes the workspace's entitlement and returns the costs.
async fn entitle(world: &World, is_entitled: bool) -> Bill {
    let coach = world.coach("ada");
    if is_entitled {
        coach.await
    } else {
        coach.not_entitled().await
    };
    Bill::of(&world.calls("ingest").await[0])
}

fn bearer(world: &World, made: &Reply) -> Caller {
    world.anonymous().with_bearer(made.str("key"))
}

#[tokio::test]
async fn a_workspace_change_reaches_its_live_keys_only() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let body = |expires_at: Value| json!({ "name": "x", "scope": "partner", "expires_at": expires_at });
    let first = ada.new_key(body(Value::Null)).await;
    expired(&world, &ada, &first).await;
    let later = ada.new_key(body(json!(world.timestamp_in(7 * 86_400).await))).await;
    let rotated = settings.post(&format!("/settings/keys/{}/rotate", first.str("id")), json!({})).await.expect(201);
    let revoked = ada.new_key(body(Value::Null)).await;
    settings.delete(&format!("/settings/keys/{}", revoked.str("id"))).await.expect(200);
    let live = [&first, &later, &rotated];
    for is_entitled in [false, true] {
        let bill = entitle(&world, is_entitled).await;
        assert!(bill.calls <= MOST_CALLS + live.len(), "{bill:?}");
        for key in live {
            bearer(&world, key).get("/v1/ping").await.expect(if is_entitled { 200 } else { 402 });
        }
    }
    // The rotated key expires without any write to the ring.
    world.advance_s(DAY_S + 1).await;
    let version = async |key: &Reply| {
        let record = world.items("keys", &format!("KEY#{}", key.str("id"))).await.remove(0);
        record["workspace_version"].clone()
    };
    let before = version(&first).await;
    let bill = entitle(&world, false).await;
    assert!(bill.calls <= MOST_CALLS + 2, "{bill:?}");
    assert_eq!(version(&first).await, before);
    for key in [&later, &rotated] {
        bearer(&world, key).get("/v1/ping").await.expect(402);
    }
}

#[tokio::test]
async fn a_ring_of_expired_keys_costs_no_more() {
    let (world, settings) = start_with_session().await;
    let make = async |seconds: i64| {
        let expires_at = world.timestamp_in(seconds).await;
        settings.post("/settings/keys", json!({ "name": "x", "scope": "partner", "expires_at": expires_at })).await
    };
    // Twice a ring full of expiring keys.
    for _ in 0..2 {
        for _ in 0..50 {
            make(60).await.expect(201);
        }
        make(60).await.refused(409, "key_limit_reached");
        world.advance_s(61).await;
    }
    assert_eq!(ring_ids(&ring(&world).await).len(), 50);
    let bill = entitle(&world, false).await;
    assert!(bill.calls <= MOST_CALLS, "{bill:?}");
    let key = make(60).await.expect(201);
    assert_eq!(ring_ids(&ring(&world).await), [key.str("id")]);
    bearer(&world, &key).get("/v1/ping").await.expect(402);
}

#[tokio::test]
async fn a_key_created_during_a_workspace_change_gets_the_change() {
    let (world, settings) = start_with_session().await;
    // The workspace has been read, and the transaction is next.
    world.faults(json!({ "function": "settings", "spared_calls": 3, "stalled_calls": 1 })).await;
    let body = json!({ "name": "x", "scope": "partner" });
    let making = tokio::spawn(settings.post("/settings/keys", body).into_future());
    world.until_stalled().await;
    entitle(&world, false).await;
    world.faults(json!({ "function": "", "spared_calls": 0, "stalled_calls": 0 })).await;
    let made = making.await.unwrap().expect(201);
    bearer(&world, &made).get("/v1/ping").await.expect(402);
}
