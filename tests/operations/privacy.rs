//! Stored and logged data: no credential in plain, and personal data only in the tables for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};

use crate::world::{Answer, Fact, Receiver, World, bytes_of};

const NAME: &str = "Gwendolyn Testperson";
const EMAIL: &str = "Gwendolyn.Testperson@Example.com";
const PHONE: &str = "+1 415 555 2671";
const NOTES: &str = "allergic-to-testing";
/// The tables for clients and contacts.
const TABLES_OF_PEOPLE: [&str; 2] = ["clients", "crm"];

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle))
}

/// Asserts that no item contains one of these values, as text or in base64, outside the excepted tables.
async fn assert_not_stored(world: &World, values: &[&str], except: &[&str]) {
    let tables = world.tables().await;
    for value in values.iter().filter(|_| !except.is_empty()) {
        let kept = |(table, item): &(String, Value)| {
            except.contains(&table.as_str()) && contains(&bytes_of(item), value.as_bytes())
        };
        assert!(tables.iter().any(kept), "{value} is looked for in a way that finds it");
    }
    for (table, item) in tables.iter().filter(|(table, _)| !except.contains(&table.as_str())) {
        let bytes = bytes_of(item);
        for value in values {
            assert!(!contains(&bytes, value.as_bytes()), "{table} contains {value}: {item}");
            // The last character depends on what follows the value.
            let encoded = STANDARD_NO_PAD.encode(value);
            assert!(
                !contains(&bytes, &encoded.as_bytes()[..encoded.len() - 2]),
                "{table} contains {value} in base64: {item}"
            );
        }
    }
}

#[track_caller]
fn assert_not_logged(log: &str, values: &[&str]) {
    assert!(log.contains("\"outcome\":"), "the log has outcomes of requests");
    let log = log.to_lowercase();
    for value in values {
        assert!(!log.contains(&value.to_lowercase()), "the log contains {value}");
    }
}

/// The password and intake token in a mail.
fn credentials_in(mail: &Value) -> (String, String) {
    let text = mail["text"].as_str().unwrap();
    let after = |mark: &str| text.split(mark).nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    (after("Password:"), after("/intake/"))
}

#[tokio::test]
async fn credentials_are_stored_nowhere_and_personal_data_only_in_its_tables() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    // Deliveries and their bodies stay waiting.
    receiver.otherwise(Answer::status(500).body("no"));
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&format!("{}/secret-path", receiver.url()), "contact_details").await;
    let made_key = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    let key = world.anonymous().with_bearer(made_key.str("key"));
    let lead = Fact::contact("ada", "00000000-0000-7000-8000-000000000001").with("phone", PHONE).with("name", NAME);
    world.apply([lead]).await;
    let body = |email: &str, send_welcome: bool| {
        json!({
            "email": email, "full_name": NAME, "phone": PHONE, "goals": NOTES, "health_notes": NOTES, "external_id": NOTES,
            "send_welcome": send_welcome,
        })
    };
    // One creation dies with its claim at a stage and its change unsent, one was mailed, one returned its credentials.
    world.faults(json!({ "crash_after_commit": 1 })).await;
    key.post("/v1/clients", body(EMAIL, true)).idempotent(EMAIL).await.expect(500);
    key.post("/v1/clients", body(&format!("b{EMAIL}"), true)).await.expect(201);
    let handed = key.post("/v1/clients", body(&format!("c{EMAIL}"), false)).await.expect(201);
    let refused = key.post("/v1/clients", body(&format!("c{EMAIL}"), false)).idempotent("again").await;
    refused.refused(409, "email_taken");
    world.settle().await;
    let (mailed_password, mailed_token) = credentials_in(&world.mail().await[0]);
    let handed_token = handed.str("intake_url").rsplit_once('/').unwrap().1;
    let secret = endpoint.secret.strip_prefix("whsec_").unwrap();
    let credentials =
        [made_key.str("key"), &mailed_password, &mailed_token, handed.str("temp_password"), handed_token, secret];
    let people = [NAME, EMAIL, PHONE, NOTES];
    assert_not_stored(&world, &["4155552671"], &[]).await;
    assert!(!world.table("outbox").await.is_empty() && !world.table("idempotency").await.is_empty());
    assert!(world.table("deliveries").await.len() >= 3);
    assert_not_stored(&world, &credentials, &[]).await;
    assert_not_stored(&world, &people, &TABLES_OF_PEOPLE).await;

    world.advance_s(61).await;
    key.post("/v1/clients", body(EMAIL, true)).idempotent(EMAIL).await.expect(201);
    world.settle().await;
    let (password, token) = credentials_in(world.mail().await.last().unwrap());
    assert_not_stored(&world, &credentials, &[]).await;
    assert_not_stored(&world, &[&password, &token], &[]).await;
    assert_not_stored(&world, &people, &TABLES_OF_PEOPLE).await;

    let log = world.log();
    assert_not_logged(&log, &credentials);
    assert_not_logged(&log, &people);
    assert_not_logged(&log, &[&password, &token, "secret-path"]);
}

#[tokio::test]
async fn logs_of_failures_hold_no_credential_and_no_personal_data() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    ada.endpoint(&format!("{}/secret-path", receiver.url()), "contact_details").await;
    let made_key = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    let key = world.anonymous().with_bearer(made_key.str("key"));
    let body = json!({ "email": EMAIL, "full_name": NAME, "phone": PHONE, "goals": NOTES });
    for plan in [
        json!({ "store_failures": 60 }),
        json!({ "store_failures": 0, "store_conflicts": 60 }),
        json!({ "store_conflicts": 0, "store_lost_answers": 60 }),
        json!({ "store_lost_answers": 0, "mail_failures": 20 }),
    ] {
        world.faults(plan).await;
        key.post("/v1/clients", body.clone()).await;
        world.anonymous().with_bearer(&format!("{}x", made_key.str("key"))).get("/v1/ping").await;
        key.get(&format!("/v1/clients?email={EMAIL}")).await;
        world.advance_s(120).await;
    }
    key.call("POST", "/v1/clients").body(format!("{{\"email\": \"{EMAIL}\", {NOTES}")).await.expect(400);
    world.apply([Fact::client("ada", "c1").with("full_name", NAME).with("email", EMAIL).with("phone", 5)]).await;
    world.settle().await;
    assert_not_logged(&world.log(), &[made_key.str("key"), NAME, EMAIL, PHONE, NOTES, "secret-path"]);
}
