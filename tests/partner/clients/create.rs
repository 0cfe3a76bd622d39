//! `POST /v1/clients`: accepted bodies and their results.

mod caps;
pub(crate) mod crashes;
mod crm_contacts;
mod takeovers;
mod welcome;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordVerifier};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::world::{Caller, Reply, World, members};

/// Creates under an idempotency key of its own.
async fn create(world: &World, key: &Caller, body: Value) -> Reply {
    key.post("/v1/clients", body).idempotent(&world.number().to_string()).await
}

/// Creates with a new e-mail address and one more field.
async fn create_with(world: &World, key: &Caller, field: &str, value: Value) -> Reply {
    let mut body = json!({ "email": format!("c{}@example.com", world.number()), "send_welcome": false });
    body[field] = value;
    create(world, key, body).await
}

#[tokio::test]
async fn an_address_and_one_that_is_mapped_to_it_have_no_answer_in_common() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let post = |email: &str| key.post("/v1/clients", json!({ "email": email, "send_welcome": false }));
    for (number, mapped) in
        ["x@ｅxample.com", "x2@example．com", "x@ﬁne.example", "x@\u{212a}.example"].into_iter().enumerate()
    {
        let plain = ["x@example.com", "x2@example.com", "x@fine.example", "x@k.example"][number];
        post(mapped).await.refused_for("email");
        assert!(!post(plain).await.expect(201).is_replay(), "{mapped} does not lock {plain} out");
        assert!(post(plain).await.expect(201).is_replay());
        post(mapped).await.refused_for("email");
    }
}

#[tokio::test]
async fn a_missing_email_is_refused_with_both_field_names() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for body in [json!({}), json!({ "full_name": "Ada" }), json!({ "email": null })] {
        let refused = key.post("/v1/clients", body).await.refused_for("email");
        assert!(refused.error().contains("full_name"), "{}", refused.text);
    }
}

#[tokio::test]
async fn the_body_cannot_choose_the_tenant_and_unknown_fields_are_ignored() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for field in ["coach_id", "owner_id", "team_id"] {
        for value in [json!("ada"), Value::Null] {
            create_with(&world, &key, field, value).await.refused_for(field);
        }
    }
    for field in ["is_active", "client_id", "created_at", "nonsense", "Coach_id"] {
        create_with(&world, &key, field, json!({ "any": ["thing"] })).await.expect(201);
    }
}

#[tokio::test]
async fn an_email_alone_is_enough_and_its_local_part_is_the_name() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let made = create(&world, &key, json!({ "email": "Grace.Hopper+new@Example.com" })).await.expect(201);
    assert_eq!(made.str("full_name"), "Grace.Hopper+new");
    assert_eq!(made.str("email"), "Grace.Hopper+new@Example.com", "stored as sent");
}

#[tokio::test]
async fn an_email_belongs_to_one_account_over_the_whole_service_whatever_its_case() {
    let world = World::start().await;
    let ada = world.coach("ada").await.partner_key().await;
    let bob = world.coach("bob").await.partner_key().await;
    create(&world, &ada, json!({ "email": "Grace@Example.com" })).await.expect(201);
    create(&world, &ada, json!({ "email": "grace@example.com" })).await.refused(409, "email_taken");
    let refused = create(&world, &bob, json!({ "email": "GRACE@EXAMPLE.COM" })).await.refused(409, "email_taken");
    assert_eq!(refused.header("retry-after"), None, "not retryable unchanged");
    create(&world, &bob, json!({ "email": "grace@example.com.au" })).await.expect(201);
    assert_eq!(world.items("clients", "CLIENT#").await.len(), 2);
    assert_eq!(world.items("clients", "INTAKE#").await.len(), 2);
}

async fn intake_states(world: &World) -> Vec<String> {
    let intakes = world.items("clients", "INTAKE#").await;
    intakes.iter().map(|intake| intake["state"]["S"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that the only `client.created` lets the application sign the client in and open the intake, with neither
/// credential in plain.
async fn assert_application_can_sign_in(world: &World, password: &str, token: &str, state: &str) {
    let facts = world.changes("client.created").await;
    assert_eq!(facts.len(), 1);
    let fact = &facts[0];
    assert_eq!(members(fact), ["client", "coach_id", "credential", "id", "intake", "occurred_at"]);
    assert_eq!(members(&fact["credential"]), ["must_change", "phc", "scheme"]);
    assert_eq!((&fact["credential"]["scheme"], &fact["credential"]["must_change"]), (&json!("argon2id"), &json!(true)));
    let phc = fact["credential"]["phc"].as_str().unwrap();
    assert!(phc.starts_with("$argon2id$"));
    assert_password_hash(password, phc);
    assert_eq!(members(&fact["intake"]), ["id", "state", "token_sha256"]);
    assert_eq!(fact["intake"]["state"], state);
    assert_eq!(fact["intake"]["token_sha256"], hex::encode(Sha256::digest(token)));
    let text = fact.to_string();
    assert!(!text.contains(password) && !text.contains(token));
}

/// Checks the hash against the password with the argon2 crate.
#[track_caller]
pub(crate) fn assert_password_hash(password: &str, phc: &str) {
    Argon2::default().verify_password(password.as_bytes(), &PasswordHash::new(phc).unwrap()).unwrap();
}
