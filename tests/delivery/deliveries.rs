//! Deliveries: the request at the receiver, the retries, and the delivery log.

use chrono::{DateTime, TimeDelta, Utc};
use domain::retry::{CHAIN_HOURS, GAPS_S, MAX_JITTER_PERCENT};
use serde_json::{Value, json};

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
    let sent: Vec<Value> =
        world.calls("relay").await.into_iter().flat_map(|call| list(call["calls"].clone())).collect();
    let to_queue = |name: &str| sent.iter().filter(|call| call["operation"] == name).count();
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
    let world = World::start().await;
    let receiver = Receiver::start().await;
    receiver.otherwise(Answer::status(500));
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "contact_details").await;
    create(&ada.partner_key().await, "a@example.com").await;
    world.settle().await;
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
async fn a_receiver_that_recovers_gets_the_event_and_then_no_more() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    receiver.script([Answer::status(503), Answer::status(429)]);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    create(&ada.partner_key().await, "a@example.com").await;
    world.settle().await;
    let waiting = only(&ada, &endpoint).await;
    let first = time(&attempts(&waiting)[0]["at"]);
    let wait = time(&waiting["next_attempt_at"]) - first;
    assert!(wait >= TimeDelta::seconds(5) && wait <= TimeDelta::seconds(5) + SLACK, "{wait}");
    world.advance_s(DAY_S).await;
    let delivered = only(&ada, &endpoint).await;
    assert_eq!((&delivered["status"], &delivered["next_attempt_at"]), (&json!("delivered"), &Value::Null));
    let codes: Vec<Value> = attempts(&delivered).iter().map(|attempt| attempt["status_code"].clone()).collect();
    assert_eq!(codes, [503, 429, 204]);
    assert_eq!(receiver.hooks().len(), 3);
}

#[tokio::test]
async fn two_endpoints_are_independent() {
    let world = World::start().await;
    let (broken, sound) = (Receiver::start().await, Receiver::start().await);
    broken.otherwise(Answer::status(500));
    let ada = world.coach("ada").await;
    let broken_endpoint = ada.endpoint(&broken.url(), "identifiers").await;
    let sound_endpoint = ada.endpoint(&sound.url(), "identifiers").await;
    let key = ada.partner_key().await;
    for number in 0..3 {
        create(&key, &format!("c{number}@example.com")).await;
    }
    world.settle().await;
    world.advance_s(3600).await;
    assert_eq!(sound.hooks().len(), 3);
    assert!(ada.deliveries(&sound_endpoint).await.iter().all(|delivery| delivery["status"] == "delivered"));
    assert_eq!(broken.hooks().len(), 3 * 5);
    assert!(ada.deliveries(&broken_endpoint).await.iter().all(|delivery| delivery["status"] == "pending"));
}

#[tokio::test]
async fn any_2xx_is_success_and_a_redirect_is_a_failure_that_is_not_followed() {
    let world = World::start().await;
    let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
    let redirect = Answer::status(307).header("location", &elsewhere.url());
    receiver.script([redirect, Answer::status(404), Answer::status(299)]);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    create(&ada.partner_key().await, "a@example.com").await;
    world.settle().await;
    world.advance_s(DAY_S).await;
    let delivery = only(&ada, &endpoint).await;
    let codes: Vec<Value> = attempts(&delivery).iter().map(|attempt| attempt["status_code"].clone()).collect();
    assert_eq!((codes, &delivery["status"]), (vec![json!(307), json!(404), json!(299)], &json!("delivered")));
    assert!(elsewhere.hooks().is_empty());
}

#[tokio::test]
async fn the_log_shows_a_receivers_answer_or_the_reason_for_its_absence() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    receiver.script([Answer::status(500).body(&"é".repeat(2000)), Answer::status(200)]);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    create(&ada.partner_key().await, "a@example.com").await;
    world.settle().await;
    world.advance_s(10).await;
    let delivery = only(&ada, &endpoint).await;
    let attempts = attempts(&delivery);
    assert_eq!(members(&attempts[0]), ["at", "duration_ms", "response_excerpt", "status_code"]);
    assert_eq!(attempts[0]["response_excerpt"], "é".repeat(512), "the first 1 KiB");
    assert_eq!((&attempts[1]["status_code"], &attempts[1]["response_excerpt"]), (&json!(200), &Value::Null));
    assert!(attempts.iter().all(|attempt| attempt["duration_ms"].is_u64()));

    let gone = Receiver::start().await;
    let url = gone.url();
    drop(gone);
    tokio::task::yield_now().await;
    let dead = ada.endpoint(&url, "identifiers").await;
    create(&ada.partner_key().await, "b@example.com").await;
    world.settle().await;
    let attempt = only(&ada, &dead).await["attempts"][0].clone();
    assert_eq!(members(&attempt), ["at", "duration_ms", "error", "response_excerpt"]);
    assert!(!attempt["error"].as_str().unwrap().contains("/hook"), "{attempt}");
}

#[tokio::test]
async fn the_log_is_paged_newest_first_and_filtered_by_status() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    let key = ada.partner_key().await;
    for number in 0..5 {
        if number % 2 == 1 {
            receiver.script([Answer::status(500)]);
        }
        create(&key, &format!("c{number}@example.com")).await;
        world.settle().await;
    }
    let settings = ada.settings().await;
    let page = async |query: &str| {
        let path = format!("/settings/webhooks/{}/deliveries?{query}", endpoint.id);
        settings.get(&path).await
    };
    let all = page("").await.expect(200);
    assert_eq!(all.members(), ["data", "next_cursor"]);
    assert_eq!(page("cursor=").await.expect(200).body, all.body);
    let all = list(all.body["data"].clone());
    let at = |delivery: &Value| time(&delivery["attempts"][0]["at"]);
    assert_eq!(all.len(), 5);
    assert!(all.windows(2).all(|pair| at(&pair[0]) >= at(&pair[1])));
    let mut walked = Vec::new();
    let mut cursor = String::new();
    for size in [2, 2, 1] {
        let reply = page(&format!("limit=2{cursor}")).await.expect(200);
        let data = list(reply.body["data"].clone());
        assert_eq!(data.len(), size);
        walked.extend(data);
        cursor = reply.body["next_cursor"].as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
    }
    assert!(cursor.is_empty());
    assert_eq!(walked, all);
    for (status, count) in [("pending", 2), ("delivered", 3), ("failed", 0)] {
        let data = list(page(&format!("status={status}")).await.expect(200).body["data"].clone());
        assert_eq!(data.len(), count, "{status}");
        assert!(data.iter().all(|delivery| delivery["status"] == status));
    }
    let first = page("status=delivered&limit=2").await.expect(200);
    let rest = page(&format!("status=delivered&limit=2&cursor={}", first.str("next_cursor"))).await.expect(200);
    assert_eq!((list(rest.body["data"].clone()).len(), &rest.body["next_cursor"]), (1, &Value::Null));
    page("status=lost").await.refused_for("status");
    page("cursor=%20").await.refused_for("cursor");
    assert_eq!(list(page("limit=0").await.expect(200).body["data"].clone()).len(), 5);
}

#[tokio::test]
async fn events_for_a_disabled_endpoint_are_recorded_as_not_sent() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    let path = format!("/settings/webhooks/{}", endpoint.id);
    ada.settings().await.patch(&path, json!({ "enabled": false })).await.expect(200);
    let key = ada.partner_key().await;
    create(&key, "a@example.com").await;
    world.settle().await;
    let missed = only(&ada, &endpoint).await;
    assert_eq!(missed["status"], "failed");
    assert!(missed["attempts"][0]["error"].as_str().unwrap().contains("disabled"), "{missed}");
    ada.settings().await.patch(&path, json!({ "enabled": true })).await.expect(200);
    create(&key, "b@example.com").await;
    world.settle().await;
    assert_eq!(receiver.hooks().len(), 1, "missed events are not sent automatically");
}

#[tokio::test]
async fn waiting_deliveries_end_with_their_endpoint_and_follow_its_url() {
    let world = World::start().await;
    let (receiver, moved) = (Receiver::start().await, Receiver::start().await);
    receiver.otherwise(Answer::status(500));
    let ada = world.coach("ada").await;
    let [off, moving] =
        [ada.endpoint(&receiver.url(), "identifiers").await, ada.endpoint(&receiver.url(), "identifiers").await];
    create(&ada.partner_key().await, "a@example.com").await;
    world.settle().await;
    let settings = ada.settings().await;
    settings.patch(&format!("/settings/webhooks/{}", off.id), json!({ "enabled": false })).await.expect(200);
    settings.patch(&format!("/settings/webhooks/{}", moving.id), json!({ "url": moved.url() })).await.expect(200);
    world.advance_s(10).await;
    let ended = only(&ada, &off).await;
    assert_eq!((&ended["status"], &ended["next_attempt_at"]), (&json!("failed"), &Value::Null));
    assert!(attempts(&ended).last().unwrap()["error"].as_str().unwrap().contains("disabled"), "{ended}");
    assert_eq!(only(&ada, &moving).await["status"], "delivered");
    assert!(moved.hooks()[0].is_signed_with(&moving.secret));
    world.advance_s(DAY_S).await;
    assert_eq!((receiver.hooks().len(), moved.hooks().len()), (2, 1));
}

#[tokio::test]
async fn deliveries_and_their_bodies_are_kept_for_30_days() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "contact_details").await;
    create(&ada.partner_key().await, "a@example.com").await;
    world.settle().await;
    let items = world.delivery_items().await;
    let now_s = world.now().await.timestamp();
    assert!(!items.is_empty());
    for item in items {
        let expires_at: i64 = item["expires_at"]["N"].as_str().unwrap().parse().unwrap();
        let days = f64::from(i32::try_from(expires_at - now_s).unwrap()) / 86_400.0;
        assert!((29.99..=30.01).contains(&days), "{days}");
    }
    only(&ada, &endpoint).await;
}
