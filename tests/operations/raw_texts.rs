//! Recognisable texts are planted in every place that the service ignores. None may be at rest in a table, a queue or
//! the log. Personal data is in the tables for people only.

use serde_json::{Value, json};

use crate::world::{Answer, Fact, Invitation, Receiver, World, fact};

/// Prefix of every planted text.
const PLANT: &str = "planted-";
/// Digits of every planted number.
const DIGITS: &str = "14159265";
/// Scores of a check-in and the names of its questions and systems.
const EVALUATED: [&str; 3] = [DIGITS, "question-of-trust", "system-of-trust"];
const TABLES_OF_PEOPLE: [&str; 2] = ["table clients", "table crm"];
/// A little longer than a fact waits for what it refers to.
const WAITED_S: u64 = 20 * 60;
const CONTACT: &str = "00000000-0000-7000-8000-000000000001";
const OTHER_CONTACT: &str = "00000000-0000-7000-8000-000000000002";
/// Malformed facts: each kind twice, and one of an unknown name.
const NAMES: &str = "workspace.saved team.saved client.saved contact.saved contact.merged programme.saved \
                     automation.saved automation.deleted phase.advanced dose_schedule.saved dose.logged \
                     daily_log.saved check_in.submitted check_in.reviewed message.received check_in.deleted \
                     daily_log.deleted dose_log.deleted client.erased workflow.saved";

fn plant(location: &str) -> Value {
    json!(format!("{PLANT}{location}"))
}

/// A number that is recognisable in any notation.
fn number() -> Value {
    json!(7.141_592_65)
}

/// A valid fact about this client, without unknown fields.
fn clean(world: &World, name: &str, client: &str) -> Fact {
    let at = "2026-05-01T07:00:00Z";
    let detail = match name {
        "workspace.saved" => return world.coach("eve").into_fact(),
        "team.saved" => json!({ "team_id": "red", "client_cap": 5 }),
        "client.saved" => return Fact::client("ada", client),
        "contact.saved" => return Fact::contact("ada", CONTACT),
        "workflow.saved" => return Fact::workflow("ada", CONTACT),
        "contact.merged" => json!({ "coach_id": "ada", "contact_id": OTHER_CONTACT, "merged_into": CONTACT }),
        "programme.saved" => json!({
            "programme_id": "p1", "coach_id": "ada",
            "phases": [{ "name": "Base", "min_days": 7, "min_compliance_pct": 80 }, { "name": "Build", "min_days": 7, "min_compliance_pct": null }],
        }),
        "automation.saved" => json!({
            "automation_id": "a1", "coach_id": "ada", "name": "Rule", "active": true,
            "trigger": { "event": "low_check_in_score", "threshold": 3 },
            "steps": [{ "kind": "webhook", "endpoint_id": "we_1" }, { "kind": "email" }],
        }),
        "automation.deleted" => json!({ "automation_id": "a2", "coach_id": "ada" }),
        "phase.advanced" => json!({ "client_id": client, "from_phase": null, "to_phase": "Base", "advanced_at": at }),
        "dose_schedule.saved" => json!({
            "client_id": client, "doses": [{ "dose_id": "d1", "per_day": 2, "from": "2026-05-01", "until": null }],
        }),
        "dose.logged" => json!({ "client_id": client, "dose_log_id": "l1", "dose_id": "d1", "date": "2026-05-01" }),
        "daily_log.saved" | "daily_log.deleted" => json!({ "client_id": client, "date": "2026-05-01" }),
        "check_in.submitted" => json!({
            "client_id": client, "check_in_id": "k1", "submitted_at": at, "scores": { "energy": 4 }, "grades": { "sleep": 3 },
        }),
        "check_in.reviewed" => json!({ "client_id": client, "check_in_id": "k1", "reviewed_at": at }),
        "check_in.deleted" => json!({ "client_id": client, "check_in_id": "k1" }),
        "message.received" => json!({ "client_id": client, "message_id": "m1", "received_at": at }),
        "dose_log.deleted" => json!({ "client_id": client, "dose_log_id": "l1" }),
        "client.erased" => json!({ "client_id": client }),
        other => panic!("{other}"),
    };
    fact(name, detail)
}

/// The fact with planted values wherever there is room for one.
fn planted(world: &World, name: &str, client: &str) -> Fact {
    let mut fact = clean(world, name, client);
    plant_into(&mut fact.detail, name);
    for field in ["answers", "body", "notes", "lab_results", "photos", "billing", "weight", "glucose", "Client_Id", ""]
    {
        fact.detail[field] = match field {
            "answers" => json!({ "q1": plant("answer"), "nested": [{ "text": plant("nested") }, [plant("list")]] }),
            "photos" | "lab_results" => json!([plant(field), { "value": number() }]),
            "weight" | "glucose" => number(),
            other => plant(other),
        };
    }
    if name == "check_in.submitted" {
        fact.detail["scores"] = json!({ EVALUATED[1]: number(), "energy": number() });
        fact.detail["grades"] = json!({ EVALUATED[2]: number(), "sleep": number() });
    }
    fact
}

/// Plants unknown members into a fact's known objects and the objects of its lists.
fn plant_into(detail: &mut Value, name: &str) {
    for value in detail.as_object_mut().unwrap().values_mut() {
        match value {
            Value::Object(members) if name != "check_in.submitted" => {
                members.insert("remark".to_owned(), plant("remark"));
                members.insert("deeper".to_owned(), json!({ "still": [plant("deeper")] }));
            }
            Value::Array(items) => {
                for item in items.iter_mut().filter_map(Value::as_object_mut) {
                    item.insert("content".to_owned(), plant("content"));
                    item.insert("files".to_owned(), json!([{ "name": plant("file") }]));
                }
            }
            _ => {}
        }
    }
}

/// Two malformed versions of a fact: one lacks a required field, one has wrong types with texts in them.
fn malformed(world: &World, name: &str, client: &str) -> [Fact; 2] {
    let key = match name {
        "workspace.saved" | "programme.saved" | "automation.saved" | "automation.deleted" => "coach_id",
        "team.saved" => "team_id",
        "contact.saved" | "contact.merged" => "contact_id",
        "workflow.saved" => "workflow_id",
        _ => "client_id",
    };
    let lacking = planted(world, name, client).without(key);
    let mut mistyped = planted(world, name, client);
    for (field, value) in mistyped.detail.as_object_mut().unwrap() {
        match value {
            Value::Array(items) => items.push(json!([plant("item"), { "x": plant("item") }])),
            Value::Object(_) if ["scores", "grades"].contains(&field.as_str()) => {
                *value = json!({ "energy": plant("score"), "sleep": [plant("score")], "stress": number() });
            }
            _ => {}
        }
    }
    mistyped.detail[key] = json!({ "id": plant("id"), "list": [number()] });
    [lacking, mistyped]
}

#[tokio::test]
async fn no_unknown_input_is_stored() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").with("card", plant("card")).await;
    ada.endpoint(&receiver.url(), "contact_details").await;
    let key = ada.partner_key().await;

    // Valid facts, malformed ones, and facts that refer to missing records.
    world.apply([Fact::client("ada", "c1").with("full_name", "Control Client")]).await;
    let names: Vec<&str> = NAMES.split_whitespace().collect();
    let of_life = |name: &&&str| !["client.saved", "client.erased"].contains(*name);
    for name in names.iter().filter(of_life) {
        world.apply([planted(&world, name, "c1")]).await;
    }
    world.apply([planted(&world, "client.saved", "c2"), planted(&world, "client.saved", "gone")]).await;
    world.apply([planted(&world, "client.erased", "gone")]).await;
    assert!(world.set_aside().await.is_empty(), "unknown fields are no reason to refuse a fact");
    let bad: Vec<Fact> = names.iter().flat_map(|name| malformed(&world, name, "c1")).collect();
    let unknown = fact("check_in.exploded", planted(&world, "check_in.submitted", "c1").detail);
    world.apply(bad.into_iter().chain([unknown])).await;
    world.send("application-feed", &format!("{PLANT}message")).await;
    world
        .send("application-feed", &json!({ "detail-type": "client.saved", "detail": plant("detail") }).to_string())
        .await;
    let about_clients = names.iter().filter(|name| clean(&world, name, "c1").detail.get("client_id").is_some());
    let waiting: Vec<Fact> = about_clients
        .filter(|name| of_life(name))
        .map(|name| planted(&world, name, "never-seen"))
        .chain([planted(&world, "client.saved", "c9").with("coach_id", "nobody")])
        .collect();
    let waiting_count = waiting.len();
    world.apply(waiting).await;

    // Requests with fields, parameters and headers that are ignored or refused.
    let mut body = json!({ "email": "a@example.com", "send_welcome": false, "answers": [plant("answer")], "diary": plant("diary") });
    let created = key.post("/v1/clients", body.clone()).idempotent(&format!("{PLANT}key")).await.expect(201);
    body["height_in"] = plant("height");
    key.post("/v1/clients", body.clone()).idempotent(&format!("{PLANT}other-key")).await.refused_for("height_in");
    body["coach_id"] = plant("coach");
    key.post("/v1/clients", body).idempotent("tenant").await.expect(400);
    key.post("/v1/clients", json!({ "email": format!("{PLANT}no-address") })).await.refused_for("email");
    key.call("POST", "/v1/clients").idempotent("torn").body(format!("{{\"x\": \"{PLANT}torn\"")).await.expect(400);
    let path = format!("/v1/clients/{}", created.str("client_id"));
    key.patch(&path, json!({ "is_active": false, "notes": plant("notes") })).await.expect(200);
    key.get(&format!("/v1/clients?active={PLANT}flag&cursor={PLANT}cursor")).await;
    for secret in [format!("svc_live_{PLANT}token"), format!("{PLANT}token")] {
        world.anonymous().with_bearer(&secret).get("/v1/ping").await.refused(401, "unauthorized");
        world.anonymous().with("x-api-key", &secret).get("/v1/ping").await.refused(401, "unauthorized");
    }
    world.settle().await;

    let at_rest = world.at_rest().await;
    at_rest.assert_only_in(["Control Client"], &TABLES_OF_PEOPLE);
    at_rest.assert_absent([PLANT]);
    // Scores are evaluated at ingest: those of a check-in that waits for its client stay in the queue.
    at_rest.assert_only_in(EVALUATED, &["queue application-feed:"]);

    world.advance_s(WAITED_S).await;
    let at_rest = world.at_rest().await;
    at_rest.assert_absent([PLANT].into_iter().chain(EVALUATED));
    let set_aside = world.set_aside().await;
    assert_eq!(set_aside.len(), 2 * names.len() + 3 + waiting_count, "{set_aside:#?}");
}

#[tokio::test]
async fn no_credential_is_stored() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    receiver.otherwise(Answer::status(500));
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let mut secrets = Vec::new();
    for scope in ["partner", "crm"] {
        let permissions = (scope == "crm").then_some(["contacts.read"]);
        let made = ada.new_key(json!({ "name": "x", "scope": scope, "permissions": permissions })).await;
        let rotated = settings.call("POST", &format!("/settings/keys/{}/rotate", made.str("id"))).await.expect(201);
        secrets.extend([made.str("key").to_owned(), rotated.str("key").to_owned()]);
    }
    let key = world.anonymous().with_bearer(&secrets[1]);
    let endpoint = ada.endpoint(&format!("{}/confidential-path", receiver.url()), "contact_details").await;
    secrets.push(endpoint.secret.trim_start_matches("whsec_").to_owned());

    let handed = key.post("/v1/clients", json!({ "email": "a@example.com", "send_welcome": false })).await.expect(201);
    key.post("/v1/clients", json!({ "email": "b@example.com" })).idempotent("order-of-gwendolyn").await.expect(201);
    let invitations = [Invitation::from_reply(&handed), Invitation::from_mail(&world.mail().await[0])];
    secrets.extend(invitations.into_iter().flat_map(|Invitation { password, token }| [password, token]));
    secrets.push("order-of-gwendolyn".to_owned());
    let path = format!("/v1/clients/{}/login-link", handed.str("client_id"));
    for is_used in [false, true] {
        let minted = key.call("POST", &path).await.expect(200);
        let token = minted.str("login_url").rsplit_once('/').unwrap().1.to_owned();
        world.anonymous().get(&format!("/login/{token}")).await.expect(200);
        if is_used {
            let used = world.anonymous().call("POST", &format!("/login/{token}")).await.expect(303);
            secrets.push(used.header("location").unwrap().rsplit_once("#token=").unwrap().1.to_owned());
        }
        secrets.push(token);
    }
    world.settle().await;
    let session = settings.get("/settings/keys").await.expect(200);
    assert!(!secrets.iter().any(|secret| session.text.contains(secret)));
    for _ in 0..2 {
        world.at_rest().await.assert_absent(secrets.iter().map(String::as_str));
        world.advance_s(WAITED_S).await;
    }
    assert!(!world.log().contains("confidential-path"));
}

const NAME: &str = "Gwendolyn Testperson";
const EMAIL: &str = "gwendolyn.testperson@example.com";
const PHONE: &str = "+1 415 555 2671";

fn about_gwendolyn(fact: Fact) -> Fact {
    fact.with("email", EMAIL).with("phone", PHONE)
}

#[tokio::test]
async fn personal_data_is_only_in_the_tables_for_people() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    receiver.otherwise(Answer::status(500).body("no"));
    let ada = world.coach("ada").await;
    let events = ["new_client", "check_in_submitted", "phase_advanced", "message_received"];
    let body = json!({ "url": receiver.url(), "events": events, "payload_mode": "contact_details" });
    ada.settings().await.post("/settings/webhooks", body).await.expect(201);
    let key = ada.partner_key().await;
    world
        .apply([
            about_gwendolyn(Fact::client("ada", "c1")).with("full_name", NAME).with("goals", "goal-of-gwendolyn"),
            about_gwendolyn(Fact::contact("ada", CONTACT)).with("name", NAME),
        ])
        .await;
    for name in ["check_in.submitted", "phase.advanced", "message.received", "dose_schedule.saved", "dose.logged"] {
        world.apply([clean(&world, name, "c1")]).await;
    }
    let made = |email: &str| {
        let body = json!({
            "email": email, "full_name": NAME, "phone": PHONE, "health_notes": "notes-of-gwendolyn",
            "external_id": format!("id-of-gwendolyn-{email}"),
        });
        key.post("/v1/clients", body).idempotent(email)
    };
    made(&format!("a.{EMAIL}")).await.expect(201);
    world.faults(json!({ "function": "clients", "crash_after_commit": 1 })).await;
    made(&format!("b.{EMAIL}")).await.expect(500);
    made(EMAIL).await.refused(409, "email_taken");
    key.get(&format!("/v1/clients?email={EMAIL}")).await.expect(200);
    let people = [NAME, EMAIL, PHONE, "goal-of-gwendolyn", "notes-of-gwendolyn", "id-of-gwendolyn"];
    for wait_s in [61, WAITED_S] {
        world.settle().await;
        assert!(receiver.hooks().iter().any(|hook| String::from_utf8_lossy(&hook.body).contains(NAME)));
        let at_rest = world.at_rest().await;
        at_rest.assert_only_in(people, &TABLES_OF_PEOPLE);
        // Numbers are matched by their last digits, so the normalised form is not stored.
        at_rest.assert_absent(["4155552671"]);
        world.advance_s(wait_s).await;
    }
}

#[tokio::test]
async fn personal_data_in_a_receivers_answer_is_stored_sealed() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    receiver.otherwise(Answer::echo(422));
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "contact_details").await;
    world.apply([about_gwendolyn(Fact::client("ada", "c1")).with("full_name", NAME)]).await;
    let shown = &ada.deliveries(&endpoint).await[0]["attempts"][0]["response_excerpt"];
    assert!(shown.as_str().unwrap().contains(NAME), "the coach sees the excerpt");
    world.at_rest().await.assert_only_in([NAME, EMAIL], &TABLES_OF_PEOPLE);
}
