//! Requests with keys that have ended, and floods of refusals.

use serde_json::{Value, json};

use super::{key, requests, shown};
use crate::world::{Coach, World};

const DAY_S: u64 = 86_400;

#[tokio::test]
async fn a_key_that_has_ended_is_seen_in_use_by_its_coach_alone() {
    let world = World::start().await;
    let (ada, eve) = (world.coach("ada").await, world.coach("eve").await);
    let settings = ada.settings().await;
    let (revoked, revoked_id) = key(&ada, "partner").await;
    settings.delete(&format!("/settings/keys/{revoked_id}")).await.expect(200);
    let (rotated, rotated_id) = key(&ada, "crm").await;
    settings.post(&format!("/settings/keys/{rotated_id}/rotate"), json!({})).await.expect(201);
    let expires_at = world.timestamp_in(3_600).await;
    let made = ada.new_key(json!({ "name": "x", "scope": "partner", "expires_at": expires_at })).await;
    let (expired, expired_id) = (world.anonymous().with_bearer(made.str("key")), made.str("id").to_owned());
    world.advance_s(DAY_S + 1).await;
    let settings = ada.settings().await;
    for (caller, id, path) in [
        (&revoked, revoked_id, "/v1/clients"),
        (&rotated, rotated_id, "/v1/crm/contacts"),
        (&expired, expired_id, "/v1/events"),
    ] {
        caller.get(path).await.refused(401, "unauthorized");
        let record = &requests(&settings, "").await[0];
        let expected = json!([id, 401, "unauthorized", path]);
        assert_eq!(json!([record["key_id"], record["status"], record["code"], record["route"]]), expected);
    }
    assert_eq!(requests(&settings, "&status=401").await.len(), 3);
    assert_eq!(requests(&eve.settings().await, "").await, Vec::<Value>::new());
}

/// A stack has one environment of a function while requests come one by one.
#[tokio::test]
async fn a_flood_leaves_one_record_for_each_key_and_minute() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let count = async |filters: &str| requests(&ada.settings().await, filters).await.len();
    let (revoked, revoked_id) = key(&ada, "partner").await;
    settings.delete(&format!("/settings/keys/{revoked_id}")).await.expect(200);
    world.advance_to_next_minute().await;
    for minutes in 1..=3 {
        for _ in 0..20 {
            revoked.get("/v1/ping").await.refused(401, "unauthorized");
        }
        assert_eq!(count(&format!("&key_id={revoked_id}")).await, minutes);
        world.advance_to_next_minute().await;
    }
    let (busy, busy_id) = key(&ada, "partner").await;
    for _ in 0..300 {
        busy.get("/v1/ping").await.expect(200);
    }
    for _ in 0..20 {
        busy.get("/v1/ping").await.refused(429, "rate_limited");
    }
    assert_eq!(count(&format!("&key_id={busy_id}")).await, 1);
    // Another key of the coach has a record of its own, and other refusals are kept each.
    let (other, other_id) = key(&ada, "partner").await;
    for _ in 0..3 {
        other.get("/v1/clients/nobody").await.refused(404, "not_found");
    }
    assert_eq!(shown(&other, "/v1/requests").await.len(), 3);
    settings.delete(&format!("/settings/keys/{other_id}")).await.expect(200);
    other.get("/v1/ping").await.refused(401, "unauthorized");
    assert_eq!(count(&format!("&key_id={other_id}&status=401")).await, 1);
}

/// Simultaneous requests may reach several environments, each with a memory of its own.
#[tokio::test]
async fn a_simultaneous_flood_is_bounded_by_the_environments() {
    let world = World::start().await;
    let ada: Coach<'_> = world.coach("ada").await;
    let (revoked, id) = key(&ada, "partner").await;
    ada.settings().await.delete(&format!("/settings/keys/{id}")).await.expect(200);
    world.advance_to_next_minute().await;
    const FLOOD: usize = 200;
    let replies = futures::future::join_all((0..FLOOD).map(|_| async { revoked.get("/v1/ping").await })).await;
    assert!(replies.iter().all(|reply| reply.status == 401));
    let first = world.table("requests").await.len();
    assert!((1..=128).contains(&first), "{first}");
    for _ in 0..50 {
        revoked.get("/v1/ping").await.refused(401, "unauthorized");
    }
    assert_eq!(world.table("requests").await.len(), first);
}
