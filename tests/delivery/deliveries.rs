//! Deliveries: the request at the receiver, the retries, and the delivery log.

use chrono::{DateTime, TimeDelta, Utc};
use domain::retry::{CHAIN_HOURS, GAPS_S, MAX_JITTER_PERCENT};
use serde_json::{Value, json};

use crate::delivery::endpoint_states::EndpointScene;
use crate::delivery::operations;
use crate::world::{ATTEMPTS, Answer, Caller, Coach, Endpoint, Receiver, World, list, members, time};

/// The members of a delivery.
pub(crate) const DELIVERY: [&str; 10] = [
    "attempts",
    "client_id",
    "created_at",
    "endpoint_id",
    "id",
    "next_attempt_at",
    "status",
    "test",
    "type",
    "webhook_id",
];
const DAY_S: u64 = 86_400;

async fn create(key: &Caller, email: &str) -> Value {
    let body = json!({
        "email": email, "full_name": "Grace Hopper", "phone": "+1 415 555 2671",
        "external_id": format!("id of {email}"), "send_welcome": false,
    });
    let made = key.post("/v1/clients", body).await.expect(201);
    key.get(&format!("/v1/clients/{}", made.str("client_id"))).await.expect(200).body
}

/// The endpoint's only delivery.
async fn only(coach: &Coach<'_>, endpoint: &Endpoint) -> Value {
    let mut deliveries = coach.deliveries(endpoint).await;
    assert_eq!(deliveries.len(), 1, "{deliveries:?}");
    deliveries.remove(0)
}

fn attempts(delivery: &Value) -> Vec<Value> {
    list(delivery["attempts"].clone())
}

#[tokio::test]
async fn an_event_for_twelve_endpoints_reaches_each_once_with_two_requests_to_the_queue() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    for _ in 0..12 {
        ada.endpoint(&receiver.url(), "identifiers").await;
    }
    create(&ada.partner_key().await, "grace@example.com").await;
    world.settle().await;
    assert_eq!(receiver.hooks().len(), 12);
    let made = operations(&world, "relay").await;
    let to_queue = |name: &str| made.iter().filter(|operation| *operation == name).count();
    assert_eq!((to_queue("SendMessageBatch"), to_queue("SendMessage")), (2, 0), "ten messages fit into one request");
}

#[tokio::test]
async fn a_new_client_arrives_signed_in_both_payload_modes() {
    let world = World::start().await;
    let (bare, full) = (Receiver::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let bare_endpoint = ada.endpoint(&bare.url(), "identifiers").await;
    let full_endpoint = ada.endpoint(&full.url(), "contact_details").await;
    let client = create(&ada.partner_key().await, "Grace@Example.com").await;
    world.settle().await;
    let (bare_hooks, full_hooks) = (bare.hooks(), full.hooks());
    assert_eq!((bare_hooks.len(), full_hooks.len()), (1, 1), "one for each endpoint");
    let mut expected = json!({
        "type": "new_client", "timestamp": client["created_at"],
        "data": { "client": { "id": client["client_id"] }, "created_at": client["created_at"], "source": "partner_api" },
    });
    assert_eq!(bare_hooks[0].json(), expected);
    for (name, value) in [
        ("name", "Grace Hopper"),
        ("email", "Grace@Example.com"),
        ("phone", "+1 415 555 2671"),
        ("external_id", "id of Grace@Example.com"),
    ] {
        expected["data"]["client"][name] = json!(value);
    }
    assert_eq!(full_hooks[0].json(), expected);
    for (hook, secret, other) in [
        (&bare_hooks[0], &bare_endpoint.secret, &full_endpoint.secret),
        (&full_hooks[0], &full_endpoint.secret, &bare_endpoint.secret),
    ] {
        assert!(hook.verify(secret), "the official library accepts it");
        assert!(!hook.verify(other), "each endpoint has a secret of its own");
        assert_eq!(hook.path, "/hook");
        assert_eq!(hook.header("content-type"), "application/json");
        assert_eq!(hook.header("x-service-event"), "new_client");
        assert!(hook.header("webhook-signature").starts_with("v1,"));
    }
    assert_eq!(bare_hooks[0].header("webhook-id"), full_hooks[0].header("webhook-id"), "the id identifies the event");
    let text = String::from_utf8(bare_hooks[0].body.clone()).unwrap();
    // An id or a time may have any three digits.
    for personal in ["Grace", "grace", "Hopper", "+1 415", "415 555", "4155552671", "id of"] {
        assert!(!text.contains(personal), "{personal}: {text}");
    }
}

#[tokio::test]
async fn contact_details_that_do_not_exist_are_null() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    ada.endpoint(&receiver.url(), "contact_details").await;
    world.apply([crate::world::Fact::client("ada", "c1").with("email", Value::Null)]).await;
    let client = &receiver.hooks()[0].json()["data"]["client"];
    assert_eq!(*client, json!({ "id": "c1", "name": "Client c1", "email": null, "phone": null, "external_id": null }));
}

#[tokio::test]
async fn only_the_coachs_subscribed_endpoints_get_an_event() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let (ada, bob) = (world.coach("ada").await, world.coach("bob").await);
    bob.endpoint(&receiver.url(), "identifiers").await;
    let body = json!({ "url": receiver.url(), "events": ["message_received"], "payload_mode": "identifiers" });
    ada.settings().await.post("/settings/webhooks", body).await.expect(201);
    let off = ada.endpoint(&receiver.url(), "identifiers").await;
    ada.settings().await.delete(&format!("/settings/webhooks/{}", off.id)).await.expect(200);
    create(&ada.partner_key().await, "a@example.com").await;
    world.settle().await;
    assert!(receiver.hooks().is_empty());
}

#[tokio::test]
async fn a_receiver_that_keeps_failing_gets_every_attempt_of_the_schedule() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, _) = scene.coach().await;
    let EndpointScene { world, receiver } = &scene;
    receiver.otherwise(Answer::status(500));
    scene.event("c1").await;
    let waiting = only(&ada, &endpoint).await;
    assert_eq!((&waiting["status"], attempts(&waiting).len()), (&json!("pending"), 1));
    assert_eq!(members(&waiting), DELIVERY);
    world.advance_s(u64::from(CHAIN_HOURS + 3) * 3_600).await;
    let failed = only(&ada, &endpoint).await;
    assert_eq!((&failed["status"], &failed["next_attempt_at"]), (&json!("failed"), &Value::Null));
    let hooks = receiver.hooks();
    assert_eq!((hooks.len(), attempts(&failed).len()), (ATTEMPTS, ATTEMPTS));
    for hook in &hooks {
        assert_eq!(hook.body, hooks[0].body, "the same bytes each time");
        assert_eq!(hook.header("webhook-id"), failed["webhook_id"].as_str().unwrap());
        assert!(hook.is_signed_with(&endpoint.secret));
    }
    let times: Vec<DateTime<Utc>> = attempts(&failed).iter().map(|attempt| time(&attempt["at"])).collect();
    for (hook, at) in hooks.iter().zip(&times) {
        assert_eq!(hook.unix_s(), at.timestamp(), "each attempt is signed at its own time");
    }
    for (pair, gap_s) in times.windows(2).zip(GAPS_S.map(i64::from)) {
        let gap = pair[1] - pair[0];
        let longest = TimeDelta::milliseconds(gap_s * (100 + MAX_JITTER_PERCENT) * 10) + SLACK;
        assert!(gap >= TimeDelta::seconds(gap_s) && gap <= longest, "{gap} instead of {gap_s} s");
    }
    world.advance_s(2 * DAY_S).await;
    assert_eq!(receiver.hooks().len(), ATTEMPTS);
}

/// Slack for a busy machine, below the second that rounding up a delay would cost.
const SLACK: TimeDelta = TimeDelta::milliseconds(700);

#[tokio::test]
async fn any_2xx_is_the_end_and_a_redirect_is_a_failure_that_is_not_followed() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, _) = scene.coach().await;
    let (receiver, elsewhere) = (&scene.receiver, Receiver::start().await);
    let redirect = Answer::status(307).header("location", &elsewhere.url());
    receiver.script([Answer::status(503), Answer::status(429), redirect, Answer::status(404), Answer::status(299)]);
    scene.event("c1").await;
    let waiting = only(&ada, &endpoint).await;
    let first = time(&attempts(&waiting)[0]["at"]);
    let wait = time(&waiting["next_attempt_at"]) - first;
    assert!(wait >= TimeDelta::seconds(5) && wait <= TimeDelta::seconds(5) + SLACK, "{wait}");
    scene.world.advance_s(DAY_S).await;
    let delivered = only(&ada, &endpoint).await;
    assert_eq!((&delivered["status"], &delivered["next_attempt_at"]), (&json!("delivered"), &Value::Null));
    let codes: Vec<Value> = attempts(&delivered).iter().map(|attempt| attempt["status_code"].clone()).collect();
    assert_eq!(codes, [503, 429, 307, 404, 299]);
    assert_eq!((receiver.hooks().len(), elsewhere.hooks().len()), (5, 0));
}

#[tokio::test]
async fn deliveries_and_their_bodies_are_kept_for_30_days() {
    let scene = EndpointScene::new().await;
    let (ada, endpoint, _) = scene.coach().await;
    scene.event("c1").await;
    let items = scene.world.delivery_items().await;
    let now_s = scene.world.now().await.timestamp();
    assert!(!items.is_empty());
    for item in items {
        let expires_at: i64 = item["expires_at"]["N"].as_str().unwrap().parse().unwrap();
        let days = f64::from(i32::try_from(expires_at - now_s).unwrap()) / 86_400.0;
        assert!((29.99..=30.01).contains(&days), "{days}");
    }
    only(&ada, &endpoint).await;
}
