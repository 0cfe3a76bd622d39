//! `Idempotency-Key` of every POST of the settings: replays, refusals, and the lifetime of a key.

mod crashes;
mod secrets;

use std::future::IntoFuture;

use edge::routes::{Access, ROUTES};
use serde_json::{Value, json};

use crate::world::{Bill, Call, Caller, Fact, Receiver, Reply, World, the_one_answer};

/// Numbers of keys, endpoints, secrets of endpoints, deliveries, and attempts of deliveries.
type Counts = [usize; 5];

/// The path of each POST of the settings.
fn posts() -> Vec<&'static str> {
    let posts = ROUTES.iter().filter(|route| route.method == "POST" && route.access == Access::Session);
    posts.map(|route| route.path).collect()
}

const RECOVER: &str = "/settings/webhooks/{id}/recover";

/// The effect of one request.
fn effect(path: &str) -> Counts {
    match path {
        "/settings/keys" | "/settings/keys/{id}/rotate" => [1, 0, 0, 0, 0],
        "/settings/webhooks" => [0, 1, 1, 0, 0],
        "/settings/webhooks/{id}/rotate-secret" => [0, 0, 1, 0, 0],
        "/settings/webhooks/{id}/test" => [0, 0, 0, 1, 1],
        "/settings/webhooks/{id}/deliveries/{delivery_id}/retry" | RECOVER => [0, 0, 0, 0, 1],
        other => panic!("no case for POST {other}"),
    }
}

/// A request whose preconditions hold, with its idempotency key.
struct Prepared {
    path: &'static str,
    call: Call,
    before: Counts,
}

impl Prepared {
    async fn send(&self) -> Reply {
        self.call.clone().await
    }
}

/// A coach with a receiver.
struct Scene {
    world: World,
    receiver: Receiver,
    settings: Caller,
}

impl Scene {
    async fn start() -> Self {
        let world = World::start().await;
        let settings = world.coach("ada").await.settings().await;
        Self { world, receiver: Receiver::start().await, settings }
    }

    fn new_key(&self) -> Call {
        self.settings.post("/settings/keys", json!({ "name": "Front desk", "scope": "partner" }))
    }

    fn new_endpoint(&self) -> Call {
        let body = json!({ "url": self.receiver.url(), "events": ["new_client"], "payload_mode": "identifiers" });
        self.settings.post("/settings/webhooks", body)
    }

    /// Registers an endpoint with a failed delivery. Returns both ids.
    async fn failed_delivery(&self) -> (String, String) {
        let at = format!("/settings/webhooks/{}", self.new_endpoint().await.expect(201).str("id"));
        self.settings.patch(&at, json!({ "enabled": false })).await.expect(200);
        self.world.apply([Fact::client("ada", &format!("c{}", self.world.number()))]).await;
        self.settings.patch(&at, json!({ "enabled": true })).await.expect(200);
        let log = self.settings.get(&format!("{at}/deliveries")).await.expect(200);
        (at.rsplit('/').next().unwrap().to_owned(), log.body["data"][0]["id"].as_str().unwrap().to_owned())
    }

    /// Prepares a request to this route, with a new idempotency key.
    async fn prepare(&self, path: &'static str) -> Prepared {
        self.world.advance_to_next_minute().await;
        let call = match path {
            "/settings/keys" => self.new_key(),
            "/settings/webhooks" => self.new_endpoint(),
            "/settings/keys/{id}/rotate" => {
                let id = self.new_key().await.expect(201).str("id").to_owned();
                self.settings.call("POST", &path.replace("{id}", &id))
            }
            _ => {
                let (endpoint, delivery) = self.failed_delivery().await;
                let at = path.replace("{id}", &endpoint).replace("{delivery_id}", &delivery);
                let body = if path == RECOVER { json!({ "since": "2026-01-01T00:00:00Z" }) } else { json!({}) };
                self.settings.post(&at, body)
            }
        };
        let call = call.idempotent(&format!("action-of-a-coach-{}", self.world.number()));
        Prepared { path, call, before: self.counts().await }
    }

    async fn counts(&self) -> Counts {
        let keys = self.world.items("keys", "KEY#").await.len();
        let mut endpoints = self.world.items("workspaces", "COACH#").await;
        endpoints.retain(|item| item["sk"]["S"].as_str().unwrap().starts_with("ENDPOINT#"));
        let mut deliveries = self.world.table("deliveries").await;
        deliveries.retain(|item| item["attempts"].is_object());
        let total =
            |items: &[Value], name: &str| items.iter().map(|item| item[name]["L"].as_array().unwrap().len()).sum();
        [keys, endpoints.len(), total(&endpoints, "secrets"), deliveries.len(), total(&deliveries, "attempts")]
    }

    /// The effect of all requests since the preparation.
    async fn effect_since(&self, before: Counts) -> Counts {
        self.world.settle().await;
        let now = self.counts().await;
        std::array::from_fn(|index| now[index] - before[index])
    }

    /// Asserts that the request took effect once, and that `reply` is replayed.
    async fn assert_done_once(&self, prepared: &Prepared, reply: &Reply) {
        assert!((200..300).contains(&reply.status), "{}: {}", prepared.path, reply.text);
        assert_replay_of(&prepared.send().await, reply);
        assert_eq!(self.effect_since(prepared.before).await, effect(prepared.path), "{}", prepared.path);
    }
}

/// Asserts that `replay` repeats the answer `first` and is marked as a replay.
#[track_caller]
fn assert_replay_of(replay: &Reply, first: &Reply) {
    assert!(replay.is_replay(), "{}", replay.text);
    assert_eq!((replay.status, &replay.text), (first.status, &first.text));
    assert_eq!(replay.header("retry-after"), None);
}

#[tokio::test]
async fn every_post_takes_effect_once_and_its_answer_is_replayed_byte_for_byte() {
    let scene = Scene::start().await;
    for path in posts() {
        let prepared = scene.prepare(path).await;
        let first = prepared.send().await;
        assert!(!first.is_replay());
        for _ in 0..2 {
            scene.assert_done_once(&prepared, &first).await;
        }
    }
}

#[tokio::test]
async fn of_twenty_simultaneous_requests_with_one_key_one_takes_effect() {
    let scene = Scene::start().await;
    for path in posts() {
        let prepared = scene.prepare(path).await;
        let replies = futures::future::join_all((0..20).map(|_| prepared.call.clone().into_future())).await;
        scene.assert_done_once(&prepared, the_one_answer(&replies)).await;
    }
}

#[tokio::test]
async fn another_body_or_path_under_a_key_is_refused() {
    let scene = Scene::start().await;
    let create = |body: &str| scene.settings.post("/settings/keys", json!({})).body(body.to_owned()).idempotent("one");
    let first = create(r#"{"name":"Desk","scope":"partner"}"#).await.expect(201);
    assert_replay_of(&create(r#"{ "scope": "partner", "name": "Desk" }"#).await, &first);
    let before = scene.counts().await;
    for other in [r#"{"name":"Other","scope":"partner"}"#, "{}", "", "{"] {
        let reply = create(other).await.refused(409, "idempotency_payload_mismatch");
        assert_eq!((reply.header("retry-after"), reply.is_replay()), (None, false));
    }
    for path in posts() {
        let prepared = scene.prepare(path).await;
        let other = prepared.call.idempotent("one").await.refused(409, "idempotency_payload_mismatch");
        assert_eq!(scene.effect_since(prepared.before).await, Counts::default(), "{path}: {}", other.text);
    }
    // No body is another body than an empty object.
    let id = first.str("id");
    let rotate = || scene.settings.call("POST", &format!("/settings/keys/{id}/rotate")).idempotent("two");
    let rotated = rotate().await.expect(201);
    assert_replay_of(&rotate().await, &rotated);
    rotate().json(&json!({})).await.refused(409, "idempotency_payload_mismatch");
    assert!(scene.counts().await[0] > before[0]);
}

#[tokio::test]
async fn an_empty_or_long_header_is_refused_and_records_nothing() {
    let scene = Scene::start().await;
    for path in posts() {
        let prepared = scene.prepare(path).await;
        for key in ["", &"x".repeat(256)] {
            let refused = prepared.call.clone().idempotent(key).await.refused(400, "invalid_request");
            assert!(refused.error().contains("Idempotency-Key"), "{}", refused.text);
        }
        assert_eq!(scene.effect_since(prepared.before).await, Counts::default(), "{path}");
    }
    assert_eq!(scene.world.table("idempotency").await, [] as [Value; 0]);
    scene.new_key().idempotent(&"x".repeat(255)).await.expect(201);
    assert!(scene.new_key().idempotent(&"x".repeat(255)).await.is_replay());
}

#[tokio::test]
async fn other_methods_ignore_the_header_and_a_post_without_it_takes_effect_each_time() {
    let scene = Scene::start().await;
    let made = scene.new_endpoint().await.expect(201);
    let at = format!("/settings/webhooks/{}", made.str("id"));
    for description in ["one", "two"] {
        let change = scene.settings.patch(&at, json!({ "description": description })).idempotent("one");
        let changed = change.await.expect(200);
        assert_eq!((changed.str("description"), changed.is_replay()), (description, false));
    }
    scene.settings.get(&at).idempotent("").await.expect(200);
    for _ in 0..2 {
        assert!(!scene.new_key().await.expect(201).is_replay());
    }
    assert_eq!(scene.counts().await[0], 2);
    assert_eq!(scene.world.table("idempotency").await, [] as [Value; 0]);
}

#[tokio::test]
async fn refusals_are_replayed_also_once_their_cause_is_gone() {
    let scene = Scene::start().await;
    let settings = &scene.settings;
    let (endpoint, delivery) = scene.failed_delivery().await;
    let at = format!("/settings/webhooks/{endpoint}");
    let mut answered = Vec::new();
    let mut refuse = async |call: Call, status: u16| {
        let call = call.idempotent(&format!("key-{}", scene.world.number()));
        let first = call.clone().await.expect(status);
        assert!(!first.is_replay());
        answered.push((call, first));
    };
    for (path, body, status) in [
        ("/settings/keys".to_owned(), json!({ "name": "x" }), 400),
        ("/settings/keys/key_0/rotate".to_owned(), json!({}), 404),
        ("/settings/webhooks".to_owned(), json!({ "url": "http://10.0.0.1/" }), 400),
        ("/settings/webhooks/we_0/test".to_owned(), json!({}), 404),
        (format!("{at}/recover"), json!({}), 400),
        (format!("{at}/deliveries/dlv_0/retry"), json!({}), 404),
    ] {
        refuse(settings.post(&path, body), status).await;
    }
    refuse(settings.post("/settings/keys", json!({})).body("{\"name\":"), 400).await;
    settings.patch(&at, json!({ "enabled": false })).await.expect(200);
    for what in ["test", "recover", &format!("deliveries/{delivery}/retry")] {
        let body = if what == "recover" { json!({ "since": "2026-01-01T00:00:00Z" }) } else { json!({}) };
        refuse(settings.post(&format!("{at}/{what}"), body), 409).await;
    }
    settings.patch(&at, json!({ "enabled": true })).await.expect(200);
    for (call, first) in answered {
        assert_replay_of(&call.await, &first);
    }
    // A replay does not repeat the `Retry-After` of a recovery that ran at the time.
    let recover = || settings.post(&format!("{at}/recover"), json!({ "since": "2026-01-01T00:00:00Z" }));
    scene.receiver.otherwise(crate::world::Answer::status(204).after(std::time::Duration::from_secs(2)));
    recover().idempotent("first").await.expect(202);
    let running = recover().idempotent("second").await.refused(409, "recovery_running");
    assert!(running.header("retry-after").is_some());
    scene.world.advance_s(61).await;
    assert_replay_of(&recover().idempotent("second").await, &running);
    recover().idempotent("third").await.expect(202);
}

#[tokio::test]
async fn a_refusal_for_a_limit_or_an_unknown_workspace_is_not_recorded() {
    let scene = Scene::start().await;
    let prepared = scene.prepare("/settings/webhooks/{id}/test").await;
    scene.world.advance_to_next_minute().await;
    for _ in 0..10 {
        prepared.call.clone().without("idempotency-key").await.expect(202);
    }
    for _ in 0..2 {
        let limited = prepared.send().await.refused(429, "rate_limited");
        assert!(!limited.is_replay() && limited.header("retry-after").is_some());
    }
    let before = scene.counts().await;
    scene.world.advance_to_next_minute().await;
    let first = prepared.send().await.expect(202);
    assert!(!first.is_replay());
    assert_replay_of(&prepared.send().await, &first);
    assert_eq!(scene.effect_since(before).await, effect(prepared.path));

    let bob = scene.world.settings_of("bob").await;
    let create = || bob.post("/settings/keys", json!({ "name": "x", "scope": "partner" })).idempotent("one");
    create().await.refused(409, "workspace_unknown");
    scene.world.coach("bob").await;
    assert!(!create().await.expect(201).is_replay());
    assert!(create().await.is_replay());
}

#[tokio::test]
async fn a_replay_counts_toward_the_limit_of_requests_only() {
    let scene = Scene::start().await;
    let prepared = scene.prepare("/settings/webhooks/{id}/test").await;
    scene.world.advance_to_next_minute().await;
    let first = prepared.send().await.expect(202);
    for replays in 1..30 {
        let replay = prepared.send().await;
        assert_replay_of(&replay, &first);
        let left = replay.header("ratelimit").unwrap();
        assert!(left.starts_with(&format!("\"settings\";r={};t=", 299 - replays)), "{left}");
    }
    for _ in 1..10 {
        prepared.call.clone().without("idempotency-key").await.expect(202);
    }
    prepared.call.clone().without("idempotency-key").await.refused(429, "rate_limited");
    assert_replay_of(&prepared.send().await, &first);
}

#[tokio::test]
async fn an_idempotency_key_counts_for_24_hours() {
    let scene = Scene::start().await;
    let (endpoint, _) = scene.failed_delivery().await;
    let send =
        |body: Value| scene.settings.post(&format!("/settings/webhooks/{endpoint}/test"), body).idempotent("one");
    let first = send(json!({})).await.expect(202);
    scene.world.advance_s(24 * 3600 - 60).await;
    assert_replay_of(&send(json!({})).await, &first);
    scene.world.advance_s(61).await;
    let again = send(json!({ "type": "new_client" })).await.expect(202);
    assert!(!again.is_replay());
    assert_ne!(again.body, first.body);
}

#[tokio::test]
async fn coaches_and_apis_share_no_idempotency_keys() {
    let scene = Scene::start().await;
    let (ada, bob) = (scene.world.coach("ada").await, scene.world.coach("bob").await);
    let body = json!({ "name": "Front desk", "scope": "partner" });
    let first = scene.new_key().idempotent("one").await.expect(201);
    let theirs = bob.settings().await.post("/settings/keys", body).idempotent("one").await.expect(201);
    assert!(!theirs.is_replay());
    assert_ne!(theirs.body["id"], first.body["id"]);
    let client = ada.partner_key().await.post("/v1/clients", json!({ "email": "x@example.com" })).idempotent("one");
    assert!(!client.await.expect(201).is_replay());
    let contact = json!({ "name": "Lee", "email": "lee@example.com" });
    let contact = ada.crm_key().await.post("/v1/crm/contacts", contact).idempotent("one");
    assert!(!contact.await.expect(201).is_replay());
    assert_replay_of(&scene.new_key().idempotent("one").await, &first);
}

#[tokio::test]
async fn an_idempotency_key_costs_one_or_two_calls() {
    let scene = Scene::start().await;
    for path in posts() {
        let bill = async |prepared: Prepared, key: Option<&str>| {
            let call =
                key.map_or(prepared.call.clone().without("idempotency-key"), |key| prepared.call.idempotent(key));
            assert!(call.await.status < 300);
            Bill::of(&scene.world.calls("settings").await[0])
        };
        let without = bill(scene.prepare(path).await, None).await;
        let with = bill(scene.prepare(path).await, Some(path)).await;
        let (calls, write_units) = match path {
            // The claim, and a write of the answer after the work.
            RECOVER => (2, 2.0),
            "/settings/webhooks/{id}/test" | "/settings/webhooks/{id}/deliveries/{delivery_id}/retry" => (1, 3.0),
            // The secret is an item of its own.
            _ => (1, 5.0),
        };
        assert_eq!(with.calls, without.calls + calls, "{path}: {with:?} {without:?}");
        assert!(with.write_units <= without.write_units + write_units, "{path}: {with:?} {without:?}");
    }
}
