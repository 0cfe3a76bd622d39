//! 300 requests per key and calendar minute.

use serde_json::json;

use crate::partner::start_with_key;
use crate::world::World;

#[tokio::test]
async fn of_600_requests_of_one_key_in_one_minute_exactly_300_pass() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (key, other) = (ada.partner_key().await, ada.partner_key().await);
    world.advance_to_next_minute().await;
    let began = world.now().await;
    let left_s = 60 - began.timestamp().rem_euclid(60).unsigned_abs();
    let replies = key.pings(600).await;
    assert_eq!(world.now().await.timestamp() / 60, began.timestamp() / 60, "the requests have to fit into one minute");
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 300);
    for denied in replies.into_iter().filter(|reply| reply.status != 200) {
        let denied = denied.refused(429, "rate_limited");
        let retry_after: u64 = denied.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=left_s).contains(&retry_after), "{retry_after} s, and the minute had {left_s} left");
        assert_eq!(denied.header("ratelimit"), Some(format!("\"default\";r=0;t={retry_after}").as_str()));
    }
    other.get("/v1/ping").await.expect(200);

    let denied = key.get("/v1/clients").await.refused(429, "rate_limited");
    world.advance_s(denied.header("retry-after").unwrap().parse().unwrap()).await;
    let next = key.get("/v1/ping").await.expect(200);
    assert!(next.header("ratelimit").unwrap().starts_with("\"default\";r=299;t="), "denied requests do not count");
}

#[tokio::test]
async fn a_request_counts_once_although_the_stores_answer_is_lost() {
    let (world, key) = start_with_key().await;
    world.advance_to_next_minute().await;
    let began = world.now().await;
    key.pings(298).await;
    for left in [1, 0] {
        world.faults(json!({ "function": "ping", "store_lost_answers": 2 })).await;
        let reply = key.get("/v1/ping").await.expect(200);
        let header = reply.header("ratelimit").unwrap();
        assert!(header.starts_with(&format!("\"default\";r={left};t=")), "{header}");
        assert_eq!(world.remaining_faults().await["store_lost_answers"], 0);
    }
    key.get("/v1/ping").await.refused(429, "rate_limited");
    assert_eq!(world.now().await.timestamp() / 60, began.timestamp() / 60, "the requests have to fit into one minute");
}

#[tokio::test]
async fn every_authenticated_answer_states_the_rest_of_the_minutes_limit() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = ada.partner_key().await;
    world.advance_to_next_minute().await;
    for (used, call) in [
        key.get("/v1/ping"),
        key.get("/v1/clients/nobody"),
        key.post("/v1/clients", json!({})),
        key.patch("/v1/clients/nobody", json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        let reply = call.await;
        assert_eq!(reply.header("ratelimit-policy"), Some("\"default\";q=300;w=60"));
        let left = format!("\"default\";r={};t=", 299 - used);
        let header = reply.header("ratelimit").unwrap();
        let reset: u64 = header.strip_prefix(&left).unwrap_or_else(|| panic!("{header}")).parse().unwrap();
        assert!((1..=60).contains(&reset));
    }
    let crm = ada.crm_key().await.get("/v1/ping").await.refused(403, "wrong_scope");
    assert!(crm.header("ratelimit").is_some());
    assert_eq!(world.anonymous().get("/v1/ping").await.header("ratelimit"), None);
}
