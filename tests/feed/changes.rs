//! Changes for the application: each write of the API emits one, whatever dies on the way. A change shows the record as
//! the API does, has enough to sign in a new client, and holds no secret in plain.

use std::collections::{BTreeMap, BTreeSet};
use std::future::IntoFuture;

use serde_json::{Value, json};

use crate::world::{Application, Caller, Fact, Invitation, Reply, SDK_ATTEMPTS, World, list, members, time};

/// Longest time from a write to its change.
const EMITTED_WITHIN_S: u64 = 16 * 60;
/// More calls than the relay makes for one write.
const MOST_CALLS: usize = 20;
const LEAD: &str = "00000000-0000-7000-8000-000000000001";

async fn create(key: &Caller, email: &str, send_welcome: bool) -> Reply {
    let body = json!({ "email": email, "send_welcome": send_welcome });
    key.post("/v1/clients", body).idempotent(email).await.expect(201)
}

async fn set_active(key: &Caller, client: &str, is_active: bool) -> Reply {
    key.patch(&format!("/v1/clients/{client}"), json!({ "is_active": is_active })).await
}

/// The client as the API shows it.
async fn shown(key: &Caller, client: &str) -> Value {
    key.get(&format!("/v1/clients/{client}")).await.expect(200).body
}

/// All changes on the bus.
async fn all_changes(world: &World) -> Vec<Value> {
    let mut all = Vec::new();
    for detail_type in ["client.created", "client.activation_changed", "contact.updated"] {
        all.extend(world.changes(detail_type).await);
    }
    all
}

#[tokio::test]
async fn the_application_signs_in_exactly_the_clients_that_the_api_created() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let handed = Invitation::from_reply(&create(&key, "handed@example.com", false).await);
    create(&key, "mailed@example.com", true).await;
    let mailed = Invitation::from_mail(&world.mail().await[0]);
    world.faults(json!({ "mail_failures": 1 })).await;
    let failed = Invitation::from_reply(&create(&key, "unmailed@example.com", true).await);
    world.settle().await;
    let application = Application::of(&world).await;
    assert_eq!(application.accounts(), 3);
    let invited = [
        ("handed@example.com", handed, "issued"),
        ("mailed@example.com", mailed, "sent"),
        ("unmailed@example.com", failed, "issued"),
    ];
    for (email, invitation, state) in &invited {
        let Invitation { password, token } = invitation;
        assert_eq!(application.signs_in(email, password), Some(true), "the client has to choose another password");
        assert_eq!(application.intake(email, token), Some(*state));
        let swapped: String = password.chars().rev().collect();
        let wrong = [String::new(), password.to_lowercase(), format!("{password} "), password[1..].to_owned(), swapped];
        for wrong in &wrong {
            assert_eq!(application.signs_in(email, wrong), None, "{wrong} instead of {password}");
        }
        assert_eq!(application.intake(email, &token.to_lowercase()), None);
        for (other, _, _) in invited.iter().filter(|(other, _, _)| other != email) {
            assert_eq!(application.signs_in(other, password), None);
            assert_eq!(application.intake(other, token), None);
        }
    }
}

#[tokio::test]
async fn each_write_emits_one_change_with_the_record_as_the_api_shows_it() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    world.apply([Fact::contact("ada", LEAD).with("email", "lead@example.com").with("phone", "+1 415 555 2671")]).await;
    let began = world.now().await;
    let body = json!({
        "email": "lead@example.com", "full_name": "Lee Lead", "phone": "415-555-2671", "goals": "Sleep", "health_notes": "None",
        "height_in": 66.5, "weight_lbs": 120, "external_id": "emr-7", "send_welcome": false,
    });
    let created = key.post("/v1/clients", body.clone()).await.expect(201);
    let client = created.str("client_id");
    let mut expected = shown(&key, client).await;
    assert_eq!(expected["external_id"], body["external_id"]);
    expected["phone"] = body["phone"].clone();
    let mut states = Vec::new();
    for is_active in [false, false, true, true, false] {
        set_active(&key, client, is_active).await.expect(200);
        states.push(shown(&key, client).await);
        world.advance_s(10).await;
    }
    world.settle().await;

    let emitted = world.changes("client.created").await;
    assert_eq!(emitted.len(), 1);
    assert_eq!(members(&emitted[0]), ["client", "coach_id", "credential", "id", "intake", "occurred_at"]);
    assert_eq!((&emitted[0]["client"], &emitted[0]["occurred_at"]), (&expected, &expected["created_at"]));

    let contacts = world.changes("contact.updated").await;
    assert_eq!(contacts.len(), 1);
    assert_eq!(members(&contacts[0]), ["coach_id", "contact", "id", "occurred_at"]);
    let contact = &contacts[0]["contact"];
    let same = [
        ("id", json!(LEAD)),
        ("name", json!("Lee Lead")),
        ("email", json!("lead@example.com")),
        ("clientId", json!(client)),
    ];
    for (member, value) in same {
        assert_eq!(contact[member], value);
    }
    assert_eq!((&contact["doNotContact"], &contact["phone"]), (&json!(true), &json!("+1 415 555 2671")));
    assert_eq!(contact["updatedAt"], contacts[0]["occurred_at"]);

    let changes = world.changes("client.activation_changed").await;
    assert_eq!(changes.len(), 3, "the value already held changes nothing");
    for (change, state) in changes.iter().zip([&states[0], &states[2], &states[4]]) {
        assert_eq!(members(change), ["client", "coach_id", "id", "occurred_at"]);
        assert_eq!(change["client"], *state);
    }
    let all: Vec<&Value> = emitted.iter().chain(&contacts).chain(&changes).collect();
    let ids: BTreeSet<&str> = all.iter().map(|fact| fact["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), all.len());
    for fact in all {
        assert_eq!(fact["coach_id"], "ada");
        assert!((began..=world.now().await).contains(&time(&fact["occurred_at"])));
    }
}

#[tokio::test]
async fn refused_requests_and_the_applications_facts_emit_no_change() {
    let world = World::start().await;
    let key = world.coach("ada").client_cap(2).await.partner_key().await;
    world.coach("bob").await;
    world.apply([Fact::client("ada", "c1"), Fact::client("bob", "c2").with("is_active", false)]).await;
    world.apply([Fact::client("ada", "c1").with("is_active", false)]).await;
    set_active(&key, "c2", true).await.refused(404, "not_found");
    key.patch("/v1/clients/c1", json!({ "is_active": "true" })).await.refused_for("is_active");
    let post =
        |email: &str| key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).idempotent(email);
    post("c1@clients.example").await.refused(409, "email_taken");
    post("nobody").await.refused_for("email");
    assert_eq!(post("a@example.com").await.status, 201);
    post("b@example.com").await.refused(409, "plan_limit_reached");
    world.advance_s(EMITTED_WITHIN_S).await;
    let all = all_changes(&world).await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["client"]["email"], "a@example.com");
}

#[tokio::test]
async fn a_change_after_a_hand_over_names_the_new_coach() {
    let world = World::start().await;
    let (ada, bob) = (world.coach("ada").await.partner_key().await, world.coach("bob").await.partner_key().await);
    let client = create(&ada, "a@example.com", false).await.str("client_id").to_owned();
    world.apply([Fact::client("bob", &client).with("email", "a@example.com")]).await;
    set_active(&ada, &client, false).await.refused(404, "not_found");
    set_active(&bob, &client, false).await.expect(200);
    world.settle().await;
    let changes = world.changes("client.activation_changed").await;
    assert_eq!(changes.len(), 1);
    assert_eq!((&changes[0]["coach_id"], &changes[0]["client"]), (&json!("bob"), &shown(&bob, &client).await));
}

#[tokio::test]
async fn a_lead_that_changes_during_its_clients_creation_is_emitted_with_the_change() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let lead = Fact::contact("ada", LEAD).with("email", "lead@example.com");
    world.apply([lead.clone()]).await;
    create(&key, "other@example.com", false).await;
    let mut calls = list(world.calls("clients").await[0]["calls"].clone());
    calls.sort_by_key(|call| call["started_us"].as_u64());
    let transaction = calls.iter().position(|call| call["operation"] == "TransactWriteItems").unwrap();
    // The lead has no phone: the same calls as before, and one for the contact.
    world.faults(json!({ "function": "clients", "spared_calls": transaction + 1, "stalled_calls": 1 })).await;
    let body = json!({ "email": "lead@example.com", "send_welcome": false });
    let creation = tokio::spawn(key.post("/v1/clients", body).into_future());
    world.until_stalled().await;
    world.apply([lead.with("name", "Lee Later")]).await;
    world.faults(json!({ "stalled_calls": 0, "function": "" })).await;
    let created = creation.await.unwrap().expect(201);
    world.settle().await;
    let emitted = world.changes("contact.updated").await;
    assert_eq!(emitted.len(), 1);
    assert_eq!(emitted[0]["contact"]["clientId"], created.body["client_id"]);
    assert_eq!(emitted[0]["contact"]["name"], "Lee Later");
}

#[tokio::test]
async fn no_change_holds_a_password_a_key_or_a_link() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let made_key = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    let endpoint = ada.endpoint("https://receiver.example/secret-path", "contact_details").await;
    let key = world.anonymous().with_bearer(made_key.str("key"));
    world.apply([Fact::contact("ada", LEAD).with("email", "handed@example.com")]).await;
    let handed = create(&key, "handed@example.com", false).await;
    create(&key, "mailed@example.com", true).await;
    set_active(&key, handed.str("client_id"), false).await.expect(200);
    world.settle().await;
    let invitations = [Invitation::from_reply(&handed), Invitation::from_mail(&world.mail().await[0])];
    let mut secrets =
        vec![made_key.str("key"), endpoint.secret.trim_start_matches("whsec_"), "secret-path", "/intake/"];
    secrets.extend(invitations.iter().flat_map(|Invitation { password, token }| [password.as_str(), token.as_str()]));
    let all = all_changes(&world).await;
    assert_eq!(all.len(), 4);
    for fact in all {
        let text = fact.to_string();
        for secret in &secrets {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

/// Number of expected changes by type and client.
#[derive(Default)]
struct Writes(BTreeMap<(&'static str, String), usize>);

impl Writes {
    fn expect(&mut self, detail_type: &'static str, client: &str) {
        *self.0.entry((detail_type, client.to_owned())).or_default() += 1;
    }

    /// Asserts that each write has one change on the bus, apart from identical repeats.
    async fn assert_emitted(&self, world: &World) {
        let mut emitted: BTreeMap<(&str, String), BTreeMap<String, Value>> = BTreeMap::new();
        for (detail_type, record, client) in [
            ("client.created", "client", "client_id"),
            ("client.activation_changed", "client", "client_id"),
            ("contact.updated", "contact", "clientId"),
        ] {
            for fact in world.changes(detail_type).await {
                let client = fact[record][client].as_str().unwrap().to_owned();
                let of_client = emitted.entry((detail_type, client)).or_default();
                let first = of_client.entry(fact["id"].as_str().unwrap().to_owned()).or_insert_with(|| fact.clone());
                assert_eq!(*first, fact, "a duplicate is the same fact");
            }
        }
        let counts: BTreeMap<(&str, String), usize> =
            emitted.into_iter().map(|(key, facts)| (key, facts.len())).collect();
        assert_eq!(counts, self.0);
        assert!(world.table("outbox").await.is_empty(), "published entries are deleted");
    }
}

/// Makes one write of each kind, with a mail between two commits. Retries each until it is answered.
async fn write_all(world: &World, key: &Caller, number: usize, writes: &mut Writes) {
    let email = format!("lead{number}@example.com");
    let lead = Fact::contact("ada", &format!("00000000-0000-7000-8000-{number:012}")).with("email", email.as_str());
    world.apply([lead]).await;
    let until = async |post: &dyn Fn() -> crate::world::Call| loop {
        let reply = post().await;
        match reply.status {
            500 => {}
            409 => world.advance_s(61).await,
            _ => return reply,
        }
    };
    let lead =
        until(&|| key.post("/v1/clients", json!({ "email": email, "send_welcome": false })).idempotent(&email)).await;
    let lead = lead.expect(201).str("client_id").to_owned();
    let mailed = format!("mailed{number}@example.com");
    let mailed = until(&|| key.post("/v1/clients", json!({ "email": mailed })).idempotent(&mailed)).await.expect(201);
    for is_active in [false, true] {
        let path = format!("/v1/clients/{lead}");
        until(&|| key.patch(&path, json!({ "is_active": is_active }))).await.expect(200);
        writes.expect("client.activation_changed", &lead);
    }
    writes.expect("client.created", &lead);
    writes.expect("contact.updated", &lead);
    writes.expect("client.created", mailed.str("client_id"));
}

#[tokio::test]
async fn every_write_is_emitted_although_the_api_dies_after_its_commits() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let mut writes = Writes::default();
    for spared_calls in 0..2 * MOST_CALLS {
        world.faults(json!({ "function": "clients", "spared_calls": spared_calls, "crash_after_commit": 1 })).await;
        write_all(&world, &key, spared_calls, &mut writes).await;
        if world.remaining_faults().await["crash_after_commit"] != 0 {
            break;
        }
    }
    // All writes at once.
    world.faults(json!({ "spared_calls": 0, "crash_after_commit": 5 })).await;
    write_all(&world, &key, 2 * MOST_CALLS, &mut writes).await;
    world.settle().await;
    world.advance_s(EMITTED_WITHIN_S).await;
    writes.assert_emitted(&world).await;
}

/// The relay meets a fault at each of its calls in turn, while it publishes the changes of all kinds of writes.
async fn fault_at_each_relay_call(fault: &str, times: usize) {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let mut writes = Writes::default();
    for spared_calls in 0..MOST_CALLS {
        world.faults(json!({ "function": "relay", "spared_calls": spared_calls, fault: times })).await;
        write_all(&world, &key, spared_calls, &mut writes).await;
        world.settle().await;
        world.advance_s(EMITTED_WITHIN_S).await;
        writes.assert_emitted(&world).await;
        let left = world.remaining_faults().await;
        world.faults(json!({ "spared_calls": 0, fault: 0 })).await;
        if left["spared_calls"] != 0 {
            break;
        }
    }
}

#[tokio::test]
async fn every_write_is_emitted_although_the_relay_dies_once_or_keeps_dying() {
    let dies = [1, 5].map(|times| fault_at_each_relay_call("crash_before_call", times));
    futures::future::join_all(dies).await;
}

#[tokio::test]
async fn every_write_is_emitted_although_the_store_fails_the_relay() {
    let fails = ["store_failures", "store_lost_answers"].map(|fault| fault_at_each_relay_call(fault, SDK_ATTEMPTS));
    futures::future::join_all(fails).await;
}

#[tokio::test]
async fn every_write_is_emitted_although_the_machine_goes_down_before_publishing() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let mut writes = Writes::default();
    for spared_calls in 0..MOST_CALLS {
        let email = format!("c{spared_calls}@example.com");
        let client = create(&key, &email, false).await.str("client_id").to_owned();
        writes.expect("client.created", &client);
        world.settle().await;
        world.faults(json!({ "function": "relay", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        set_active(&key, &client, false).await.expect(200);
        writes.expect("client.activation_changed", &client);
        let stalled = tokio::select! {
            () = world.until_stalled() => true,
            () = world.settle() => false,
        };
        world.kill_and_restart().await;
        if !stalled {
            break;
        }
    }
    world.settle().await;
    world.advance_s(EMITTED_WITHIN_S).await;
    writes.assert_emitted(&world).await;
    assert!(world.changes("client.activation_changed").await.len() >= 3, "several calls were hit");
}
