//! `client.erased`: all data about the client goes, wherever it is, and no late fact brings it back. `races` covers
//! work in flight, `contacts` the events that name contacts.

mod contacts;
mod races;
mod repeats;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::{Answer, Caller, Endpoint, Fact, Invitation, Receiver, Reply, World, fact, members};

/// Part of the e-mail, name and notes of everyone who will be erased.
pub(crate) const MARK: &str = "gwendolyn";
const PHONE: &str = "+1 415 555 2671";
const LEAD: &str = "00000000-0000-7000-8000-000000000001";
const EVENTS: [&str; 4] = ["new_client", "check_in_submitted", "phase_advanced", "message_received"];
/// Longer than the work in flight at an erasure can take.
pub(crate) const ENDED_S: u64 = 40 * 60;
const DAY_S: u64 = 86_400;

/// Facts about events in a client's life, each with its own id.
pub(crate) fn life(client: &str, phase: &str) -> Vec<Fact> {
    let at = "2026-05-01T07:00:00Z";
    let of = |name: &str, fields: Value| {
        let mut detail = fields;
        detail["client_id"] = json!(client);
        fact(name, detail)
    };
    vec![
        of(
            "dose_schedule.saved",
            json!({ "doses": [{ "dose_id": "d1", "per_day": 1, "from": "2026-05-01", "until": null }] }),
        ),
        of("dose.logged", json!({ "dose_log_id": format!("log-{client}"), "dose_id": "d1", "date": "2026-05-01" })),
        of("daily_log.saved", json!({ "date": "2026-05-01" })),
        of(
            "check_in.submitted",
            json!({ "check_in_id": format!("check-in-{client}"), "submitted_at": at, "scores": { "energy": 2 }, "grades": { "sleep": 3 } }),
        ),
        of("check_in.reviewed", json!({ "check_in_id": format!("check-in-{client}"), "reviewed_at": at })),
        of("phase.advanced", json!({ "from_phase": null, "to_phase": phase, "advanced_at": at })),
        of("message.received", json!({ "message_id": format!("message-{client}"), "received_at": at })),
    ]
}

fn deletions(client: &str) -> Vec<Fact> {
    vec![
        fact("dose_log.deleted", json!({ "client_id": client, "dose_log_id": format!("log-{client}") })),
        fact("daily_log.deleted", json!({ "client_id": client, "date": "2026-05-01" })),
        fact("check_in.deleted", json!({ "client_id": client, "check_in_id": format!("check-in-{client}") })),
    ]
}

pub(crate) fn erased(client: &str) -> Fact {
    fact("client.erased", json!({ "client_id": client }))
}

/// A client of the application with all fields set.
pub(crate) fn application_client(client: &str) -> Fact {
    Fact::client("ada", client)
        .with("email", format!("{client}.{MARK}@example.com"))
        .with("full_name", format!("{MARK} of the application"))
        .with("phone", PHONE)
        .with("goals", format!("goal of {MARK}"))
        .with("health_notes", format!("notes of {MARK}"))
}

/// A coach with a receiver that fails every request and echoes its body.
pub(crate) struct ErasureScene {
    pub(crate) world: World,
    receiver: Receiver,
    endpoints: [Endpoint; 2],
    pub(crate) key: Caller,
}

impl ErasureScene {
    pub(crate) async fn new() -> Self {
        let world = World::start().await;
        let receiver = Receiver::start().await;
        receiver.otherwise(Answer::echo(500));
        let ada = world.coach("ada").client_cap(4).await;
        let endpoint = async |payload_mode: &str| {
            let body = json!({ "url": receiver.url(), "events": EVENTS, "payload_mode": payload_mode });
            let made = ada.settings().await.post("/settings/webhooks", body).await.expect(201);
            Endpoint { id: made.str("id").to_owned(), secret: made.str("secret").to_owned() }
        };
        let endpoints = [endpoint("contact_details").await, endpoint("identifiers").await];
        let key = ada.partner_key().await;
        Self { world, receiver, endpoints, key }
    }

    /// Creates a client with all fields set, with a key derived from the address.
    async fn post(&self, email: &str, send_welcome: bool) -> Reply {
        let body = json!({
            "email": email, "full_name": format!("{MARK} of the API"), "phone": PHONE, "goals": format!("goal of {MARK}"),
            "health_notes": format!("notes of {MARK}"), "external_id": format!("id of {email}"), "send_welcome": send_welcome,
        });
        self.key.post("/v1/clients", body).idempotent(email).await
    }

    /// Number of sealed attributes in a table.
    pub(crate) async fn sealed(&self, table: &str) -> usize {
        let items = self.world.table(table).await;
        let attributes = items.iter().flat_map(|item| item.as_object().unwrap().iter());
        let texts = ["sealed", "stage", "body"];
        attributes.filter(|(name, value)| texts.contains(&name.as_str()) && value["B"] != "").count()
    }

    /// Asserts that nothing marked is at rest and that the clients are not found.
    pub(crate) async fn assert_forgotten(&self, clients: &[&str]) {
        let at_rest = self.world.at_rest().await;
        let stored: Vec<String> = at_rest.locations_of(MARK);
        assert!(stored.is_empty(), "{stored:#?}");
        let phones: Vec<String> = ["4155552671", PHONE].iter().flat_map(|phone| at_rest.locations_of(phone)).collect();
        assert!(phones.is_empty(), "{phones:#?}");
        for record in ["log-", "check-in-", "message-"] {
            for client in clients {
                let places = at_rest.locations_of(&format!("{record}{client}"));
                let tables: Vec<&String> = places.iter().filter(|place| place.starts_with("table records")).collect();
                assert!(tables.is_empty(), "{tables:#?}");
            }
        }
        for client in clients {
            let path = format!("/v1/clients/{client}");
            self.key.get(&path).await.refused(404, "not_found");
            self.key.patch(&path, json!({ "is_active": true })).await.refused(404, "not_found");
            for below in ["compliance", "check-ins", "daily-logs"] {
                self.key.get(&format!("{path}/{below}")).await.refused(404, "not_found");
            }
            self.key.call("POST", &format!("{path}/login-link")).await.refused(404, "not_found");
        }
    }
}

#[tokio::test]
async fn an_erased_client_leaves_only_ids_and_dates() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    // A client who stays: its sealed data stays.
    let stays =
        scene.key.post("/v1/clients", json!({ "email": "stays@example.com" })).idempotent("stays").await.expect(201);
    world.apply(life(stays.str("client_id"), "Base")).await;
    let kept = [scene.sealed("deliveries").await, scene.sealed("idempotency").await];
    assert!(kept.iter().all(|count| *count > 0));
    // A client created from a lead, one with a welcome mail, and one of the application.
    let lead = format!("handed.{MARK}@example.com");
    world
        .apply([Fact::contact("ada", LEAD).with("email", lead.as_str()).with("name", MARK).with("phone", PHONE)])
        .await;
    let handed = scene.post(&lead, false).await.expect(201);
    let mailed = scene.post(&format!("mailed.{MARK}@example.com"), true).await.expect(201);
    world.apply([application_client("c1")]).await;
    let clients = [handed.str("client_id"), mailed.str("client_id"), "c1"];
    for client in clients {
        world.apply(life(client, MARK)).await;
    }
    scene.key.get("/v1/clients/c1/check-ins").await.expect(200);
    let hooks_before = scene.receiver.hooks();
    assert!(hooks_before.iter().any(|hook| String::from_utf8_lossy(&hook.body).contains(MARK)));
    assert!(scene.sealed("deliveries").await > kept[0] && scene.sealed("idempotency").await > kept[1]);

    world.apply(clients.map(erased)).await;
    let sent = scene.receiver.hooks().len();
    scene.assert_forgotten(&clients).await;
    assert_eq!([scene.sealed("deliveries").await, scene.sealed("idempotency").await], kept);

    // The delivery log still names them, by ids and times.
    let of_clients =
        hooks_before.iter().filter(|hook| clients.iter().any(|id| hook.json()["data"]["client"]["id"] == *id));
    let webhook_ids: Vec<String> = of_clients.map(|hook| hook.header("webhook-id").to_owned()).collect();
    for endpoint in &scene.endpoints {
        let path = format!("/settings/webhooks/{}/deliveries?limit=200", endpoint.id);
        let log = world.settings_of("ada").await.get(&path).await.expect(200);
        assert!(!log.text.contains(MARK), "{}", log.text);
        for delivery in log.body["data"].as_array().unwrap() {
            if webhook_ids.iter().any(|id| delivery["webhook_id"] == id.as_str()) {
                assert_eq!(delivery["status"], "failed", "{delivery}");
                assert!(delivery["attempts"][0]["at"].is_string());
                assert!(delivery["attempts"].as_array().unwrap().iter().all(|line| line["response_excerpt"].is_null()));
            }
        }
    }
    for client in clients {
        assert!(!world.at_rest().await.locations_of(client).is_empty(), "the audit trail keeps the id");
        let left = world.items("clients", &format!("CLIENT#{client}")).await;
        // For a former contact also the contact's id, but not even a hash of the address. The coaches lead to the
        // feeds.
        let kept: &[&str] = if client == clients[0] {
            &["coaches", "erased_at", "lead", "pk"]
        } else {
            &["coaches", "erased_at", "pk"]
        };
        assert_eq!(left.iter().map(members).collect::<Vec<_>>(), [kept]);
    }

    // No later change or event names them, and nothing restores them.
    world.advance_s(DAY_S).await;
    scene.assert_forgotten(&clients).await;
    let later = scene.receiver.hooks();
    let later = later[sent..].iter().filter(|hook| clients.iter().any(|id| hook.json()["data"]["client"]["id"] == *id));
    assert_eq!(later.count(), 0);
    scene.key.get(&format!("/v1/clients/{}", stays.str("client_id"))).await.expect(200);
    assert!(world.set_aside().await.is_empty());
}

#[tokio::test]
async fn the_address_the_external_id_and_the_seat_of_an_erased_client_are_free() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    let email = format!("a.{MARK}@example.com");
    let first = scene.post(&email, false).await.expect(201);
    world
        .apply([application_client("c1"), application_client("c2"), application_client("c3").with("is_active", false)])
        .await;
    scene
        .key
        .post("/v1/clients", json!({ "email": "full@example.com" }))
        .idempotent("full")
        .await
        .refused(409, "plan_limit_reached");
    world.apply([erased(first.str("client_id")), erased("c3")]).await;
    assert_eq!(scene.key.get("/v1/ping").await.body["active_clients"], 2);
    assert_eq!(scene.key.get("/v1/clients").await.body["count"], 2);
    assert_eq!(scene.key.get(&format!("/v1/clients?email={email}")).await.body["count"], 0);
    assert_eq!(scene.key.get(&format!("/v1/clients?external_id=id%20of%20{email}")).await.body["count"], 0);
    let body = json!({ "email": email, "external_id": format!("id of {email}"), "send_welcome": false });
    let again = scene.key.post("/v1/clients", body).idempotent("anew").await.expect(201);
    assert_ne!(again.str("client_id"), first.str("client_id"));
    assert_ne!(Invitation::from_reply(&again), Invitation::from_reply(&first));
    let other = json!({ "email": format!("c3.{MARK}@example.com"), "send_welcome": false });
    scene.key.post("/v1/clients", other).await.expect(201);
    scene
        .key
        .post("/v1/clients", json!({ "email": "full@example.com" }))
        .idempotent("again")
        .await
        .refused(409, "plan_limit_reached");
    world.settle().await;
    let facts = world.changes("client.created").await;
    assert!(facts.iter().any(|fact| fact["client"]["client_id"] == again.body["client_id"]));
}

#[tokio::test]
async fn an_erasure_keeps_the_answer_of_the_keys_new_owner() {
    let scene = ErasureScene::new().await;
    let create = |email: &str| {
        let body = json!({ "email": email, "send_welcome": false });
        scene.key.post("/v1/clients", body).idempotent("import")
    };
    let erased_later = create("a@example.com").await.expect(201);
    scene.world.advance_s(DAY_S + 120).await;
    let stays = create("b@example.com").await.expect(201);
    scene.world.apply([erased(erased_later.str("client_id"))]).await;
    scene.world.advance_s(ENDED_S).await;
    let again = create("b@example.com").await.expect(201);
    assert!(again.is_replay() && again.text == stays.text, "{}", again.text);
}

#[tokio::test]
async fn an_erased_clients_address_goes_to_its_later_holder() {
    let scene = ErasureScene::new().await;
    let email = format!("shared.{MARK}@example.com");
    let shared = |client: &str| application_client(client).with("email", email.as_str());
    scene.world.apply([shared("c1"), shared("c2")]).await;
    scene.world.apply([erased("c1")]).await;
    let found = scene.key.get(&format!("/v1/clients?email={email}")).await.expect(200);
    assert_eq!((&found.body["count"], &found.body["clients"][0]["client_id"]), (&json!(1), &json!("c2")));
    scene.post(&email, false).await.refused(409, "email_taken");
}

#[tokio::test]
async fn late_facts_restore_nothing() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    let handed = scene.post(&format!("handed.{MARK}@example.com"), false).await.expect(201);
    world.apply([application_client("c1")]).await;
    let clients = [handed.str("client_id"), "c1", "never-seen"];
    for client in &clients[..2] {
        world.apply(life(client, MARK)).await;
    }
    world.apply(clients.map(erased)).await;
    let hooks = scene.receiver.hooks().len();
    let (older, newer) = (world.timestamp_in(-DAY_S.cast_signed()).await, world.timestamp_in(3600).await);
    for at in [older, world.timestamp_in(0).await, newer] {
        for client in clients {
            let mut late = vec![application_client(client), application_client(client).with("coach_id", "bob")];
            late.extend(life(client, MARK));
            late.extend(deletions(client));
            late.push(erased(client));
            world.coach("bob").await;
            world.apply(late.into_iter().map(|fact| fact.with("occurred_at", at.as_str()))).await;
        }
        scene.assert_forgotten(&clients).await;
    }
    world.advance_s(ENDED_S).await;
    scene.assert_forgotten(&clients).await;
    assert_eq!(world.set_aside().await, [] as [Value; 0]);
    assert_eq!(scene.key.get("/v1/ping").await.body["active_clients"], 0);
    assert_eq!(scene.key.get("/v1/clients").await.body["count"], 0);
    assert_eq!(scene.receiver.hooks().len(), hooks, "no event is sent");
}

#[tokio::test]
async fn entries_that_wait_longer_than_an_erasure_are_not_emitted() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    world.faults(json!({ "function": "relay", "crash_before_call": 1_000_000 })).await;
    let automations = EVENTS.iter().map(|event| {
        let step = json!({ "kind": "webhook", "endpoint_id": scene.endpoints[0].id });
        let detail = json!({
            "automation_id": format!("on_{event}"), "coach_id": "ada", "name": "N", "active": true, "trigger": { "event": event },
            "steps": [step],
        });
        fact("automation.saved", detail)
    });
    world.apply(automations).await;
    world.apply([application_client("c1"), application_client("stays")]).await;
    world.apply(life("c1", MARK)).await;
    let made = scene.post(&format!("made.{MARK}@example.com"), false).await.expect(201);
    let made = made.str("client_id");
    let is_active = json!({ "is_active": false });
    scene.key.patch(&format!("/v1/clients/{made}"), is_active).await.expect(200);
    world.apply([erased("c1"), erased(made)]).await;
    world.advance_s(ENDED_S).await;
    // Changes that the relay has published before it dies do arrive.
    let kinds = ["client.created", "client.activation_changed"];
    let before = futures::future::join_all(kinds.map(|kind| world.changes(kind))).await;
    world.faults(json!({ "function": "", "crash_before_call": 0 })).await;
    world.advance_s(ENDED_S).await;
    let emitted: BTreeSet<String> =
        scene.receiver.hooks().iter().map(|hook| hook.json()["data"]["client"]["id"].to_string()).collect();
    assert_eq!(emitted, BTreeSet::from(["\"stays\"".to_owned()]));
    assert_eq!(futures::future::join_all(kinds.map(|kind| world.changes(kind))).await, before);
    world.apply([erased("stays")]).await;
    world.advance_s(ENDED_S).await;
    scene.assert_forgotten(&["c1", made, "stays"]).await;
    assert_eq!([scene.sealed("deliveries").await, scene.sealed("outbox").await], [0, 0]);
}
