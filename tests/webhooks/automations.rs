//! Automations on emitted events: the requests of their Webhook steps, and when an answer counts as low.

mod facts;

use serde_json::{Value, json};

use crate::world::{CLIENT_EVENTS, Caller, Coach, Endpoint, Fact, Receiver, World, fact};

const AT: &str = "2026-05-01T07:00:00.000Z";

/// A coach, her client `c1` (no event) and two receivers. One subscribes to everything but `new_client`, the other to
/// `new_client` only.
pub(crate) struct AutomationScene {
    pub(crate) world: World,
    pub(crate) key: Caller,
    pub(crate) subscribed: Receiver,
    pub(crate) named: Receiver,
    subscribed_endpoint: Endpoint,
    pub(crate) named_endpoint: Endpoint,
}

impl AutomationScene {
    pub(crate) async fn new(payload_mode: &str) -> Self {
        let world = World::start().await;
        let (subscribed, named) = (Receiver::start().await, Receiver::start().await);
        let ada = world.coach("ada").await;
        let key = ada.partner_key().await;
        let subscribed_endpoint = endpoint(&ada, &subscribed, &CLIENT_EVENTS[1..], payload_mode).await;
        let named_endpoint = endpoint(&ada, &named, &CLIENT_EVENTS[..1], payload_mode).await;
        world.apply([Fact::client("ada", "c1").with("backfill", true)]).await;
        Self { world, key, subscribed, named, subscribed_endpoint, named_endpoint }
    }

    /// Saves an automation whose step names the endpoint without subscriptions to its event.
    pub(crate) async fn automation(&self, id: &str, trigger: Value) {
        self.world.apply([automation(id, trigger, &[&self.named_endpoint])]).await;
    }

    /// Bodies of that type at the endpoint that steps name.
    pub(crate) fn sent_to_named(&self, event: &str) -> Vec<Value> {
        bodies(&self.named, &self.named_endpoint, event)
    }

    /// Bodies of that type at the subscribed endpoint.
    pub(crate) fn sent_to_subscribed(&self, event: &str) -> Vec<Value> {
        bodies(&self.subscribed, &self.subscribed_endpoint, event)
    }

    /// Check-in and automation of each low score that the subscriber got, sorted.
    pub(crate) fn low_scores(&self) -> Vec<(String, String)> {
        let pair = |body: &Value| {
            let id = |member: &str| body["data"][member]["id"].as_str().unwrap().to_owned();
            (id("check_in"), id("automation"))
        };
        let mut pairs: Vec<_> = self.sent_to_subscribed("low_check_in_score").iter().map(pair).collect();
        pairs.sort();
        pairs
    }
}

async fn endpoint(coach: &Coach<'_>, receiver: &Receiver, events: &[&str], payload_mode: &str) -> Endpoint {
    let body = json!({ "url": receiver.url(), "events": events, "payload_mode": payload_mode });
    let made = coach.settings().await.post("/settings/webhooks", body).await.expect(201);
    Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() }
}

fn bodies(receiver: &Receiver, endpoint: &Endpoint, event: &str) -> Vec<Value> {
    let hooks = receiver.hooks();
    assert!(hooks.iter().all(|hook| hook.is_signed_with(&endpoint.secret)));
    hooks.iter().filter(|hook| hook.header("x-service-event") == event).map(|hook| hook.json()).collect()
}

pub(crate) fn name(id: &str) -> String {
    format!("telling name of {id}")
}

pub(crate) fn automation(id: &str, trigger: Value, endpoints: &[&Endpoint]) -> Fact {
    let mut steps = vec![json!({ "kind": "email", "template": "T" })];
    steps.extend(endpoints.iter().map(|endpoint| json!({ "kind": "webhook", "endpoint_id": endpoint.id })));
    let detail = json!({
        "automation_id": id, "coach_id": "ada", "name": name(id), "active": true, "trigger": trigger, "steps": steps,
    });
    fact("automation.saved", detail)
}

pub(crate) fn on(event: &str) -> Value {
    json!({ "event": event })
}

pub(crate) fn low(threshold: f64, question: impl Into<Value>) -> Value {
    json!({ "event": "low_check_in_score", "threshold": threshold, "question_id": question.into() })
}

pub(crate) fn check_in(id: &str, day: u32, scores: Value, grades: Value) -> Fact {
    let submitted_at = format!("2026-05-{day:02}T07:00:00.000Z");
    let detail = json!({
        "client_id": "c1", "check_in_id": id, "submitted_at": submitted_at, "scores": scores, "grades": grades,
    });
    fact("check_in.submitted", detail)
}

pub(crate) fn message(id: &str) -> Fact {
    fact("message.received", json!({ "client_id": "c1", "message_id": id, "received_at": AT }))
}

fn advance(to_phase: &str) -> Fact {
    let detail = json!({ "client_id": "c1", "from_phase": null, "to_phase": to_phase, "advanced_at": AT });
    fact("phase.advanced", detail)
}

#[tokio::test]
async fn a_step_sends_each_emitted_event_with_its_automation() {
    let scene = AutomationScene::new("identifiers").await;
    let world = &scene.world;
    for event in &CLIENT_EVENTS[1..] {
        let trigger = if *event == "low_check_in_score" { low(3.0, Value::Null) } else { on(event) };
        scene.automation(&format!("on_{event}"), trigger).await;
    }
    let first = check_in("k0", 1, json!({}), json!({ "gut": 3 })).with("backfill", true);
    world.apply([first]).await;
    world.apply([check_in("k1", 2, json!({ "sleep": 1 }), json!({ "gut": 2 })), message("m1"), advance("Build")]).await;

    let of_check_in = json!({ "check_in": { "id": "k1", "submitted_at": "2026-05-02T07:00:00.000Z" } });
    let step = json!({ "from_phase": null, "to_phase": "Build", "advanced_at": AT });
    for (event, data, is_named) in [
        ("check_in_submitted", of_check_in.clone(), true),
        ("low_check_in_score", of_check_in.clone(), false),
        ("system_grade_drop", of_check_in, false),
        ("message_received", json!({ "message": { "id": "m1", "received_at": AT } }), true),
        ("phase_advanced", step, true),
    ] {
        let id = format!("on_{event}");
        let mut data = data;
        data["client"] = json!({ "id": "c1" });
        let to_subscribers = data.clone();
        data["automation"] = if is_named { json!({ "id": id, "name": name(&id) }) } else { json!({ "id": id }) };
        let sent = scene.sent_to_named(event);
        assert_eq!((sent.len(), &sent[0]["data"]), (1, &data), "{event}");
        let expected = if event == "low_check_in_score" { data } else { to_subscribers };
        let received = scene.sent_to_subscribed(event);
        assert_eq!(
            (received.len(), &received[0]["data"], &received[0]["timestamp"]),
            (1, &expected, &sent[0]["timestamp"])
        );
    }
    assert_eq!(scene.named.hooks().len(), 5);
}

#[tokio::test]
async fn a_creation_triggers_automations_whatever_its_origin() {
    let scene = AutomationScene::new("identifiers").await;
    let trigger = on("new_client");
    scene.world.apply([automation("a1", trigger, &[&scene.subscribed_endpoint])]).await;
    for send_welcome in [false, true] {
        let email = format!("welcome-{send_welcome}@example.com");
        let made = scene.key.post("/v1/clients", json!({ "email": email, "send_welcome": send_welcome })).await;
        let client = made.expect(201).str("client_id").to_owned();
        scene.world.settle().await;
        let created_at = scene.key.get(&format!("/v1/clients/{client}")).await.body["created_at"].clone();
        let body = json!({
            "type": "new_client", "timestamp": created_at,
            "data": {
                "client": { "id": client }, "created_at": created_at, "source": "partner_api",
                "automation": { "id": "a1", "name": name("a1") },
            },
        });
        assert_eq!(scene.sent_to_subscribed("new_client").last(), Some(&body));
    }
    let created = scene.sent_to_subscribed("new_client").len();
    scene.world.apply([Fact::client("ada", "c2"), Fact::client("ada", "c3").with("backfill", true)]).await;
    scene.world.apply([Fact::client("ada", "c2").with("full_name", "Changed")]).await;
    let received = scene.sent_to_subscribed("new_client");
    assert_eq!(received.len(), created + 1, "a backfill and a change emit nothing");
    assert_eq!(received.last().unwrap()["data"]["client"]["id"], "c2");
    assert!(scene.sent_to_named("new_client").iter().all(|body| body["data"]["automation"].is_null()));
}

#[tokio::test]
async fn a_foreign_or_unknown_endpoint_in_a_step_is_ignored() {
    let scene = AutomationScene::new("identifiers").await;
    let foreign = Receiver::start().await;
    let bob = scene.world.coach("bob").await;
    let of_bob = endpoint(&bob, &foreign, &["message_received"], "contact_details").await;
    let unknown = Endpoint { id: "we_nowhere".to_owned(), secret: String::new() };
    scene.world.apply([automation("a1", on("message_received"), &[&of_bob, &unknown])]).await;
    let mixed = [&of_bob, &scene.named_endpoint, &unknown];
    scene.world.apply([automation("a2", on("message_received"), &mixed)]).await;
    scene.world.apply([message("m1")]).await;
    assert!(foreign.hooks().is_empty() && bob.deliveries(&of_bob).await.is_empty());
    let sent = scene.sent_to_named("message_received");
    assert_eq!((sent.len(), &sent[0]["data"]["automation"]["id"]), (1, &json!("a2")));
    assert_eq!(
        scene.sent_to_subscribed("message_received").len(),
        1,
        "what nobody is named for does not go to subscribers"
    );
    assert!(scene.world.set_aside().await.is_empty());
}
