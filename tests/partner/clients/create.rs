//! `POST /v1/clients`: accepted bodies and their results.

mod caps;
pub(crate) mod crashes;
mod crm_contacts;
mod idempotency;
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
async fn texts_are_accepted_at_their_limit_in_characters_and_refused_above() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for (field, limit) in
        [("full_name", 200), ("phone", 32), ("goals", 2000), ("health_notes", 2000), ("external_id", 128)]
    {
        for letter in ["x", "🙂"] {
            let text = letter.repeat(limit);
            let made = create_with(&world, &key, field, json!(text)).await.expect(201);
            let detail = key.get(&format!("/v1/clients/{}", made.str("client_id"))).await.expect(200);
            if let Some(shown) = detail.body.get(field) {
                assert_eq!(*shown, json!(text), "{field} is kept as it was given");
            }
            let refused = create_with(&world, &key, field, json!(letter.repeat(limit + 1))).await.refused_for(field);
            assert!(refused.error().contains(&limit.to_string()), "{}", refused.text);
        }
    }
}

#[tokio::test]
async fn an_email_of_160_characters_is_taken_and_one_of_161_refused() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let email = format!("{}@{}.{}.com", "a".repeat(64), "b".repeat(63), "c".repeat(27));
    assert_eq!(email.len(), 160);
    let made = create(&world, &key, json!({ "email": email })).await.expect(201);
    assert_eq!(made.str("email"), email);
    let refused = create(&world, &key, json!({ "email": email.replace(".com", "c.com") })).await.refused_for("email");
    assert!(refused.error().contains("160"), "{}", refused.text);
}

#[tokio::test]
async fn numbers_are_accepted_within_their_bounds_and_as_numbers_only() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for (field, limit) in [("height_in", 120), ("weight_lbs", 1500)] {
        for good in [json!(limit), json!(0.5), json!(70), json!(70.25), json!(1e1)] {
            let made = create_with(&world, &key, field, good.clone()).await.expect(201);
            let detail = key.get(&format!("/v1/clients/{}", made.str("client_id"))).await.expect(200);
            assert_eq!(detail.body[field].as_f64(), good.as_f64());
        }
        let as_close_to_0_as_a_number_gets = json!(f64::from_bits(1));
        create_with(&world, &key, field, as_close_to_0_as_a_number_gets).await.expect(201);
        for bad in
            [json!(0), json!(-1), json!(f64::from(limit) + 0.01), json!(1e300), json!("70"), json!(true), json!([70])]
        {
            let refused = create_with(&world, &key, field, bad.clone()).await.refused_for(field);
            assert!(refused.error().contains("number"), "{bad}: {}", refused.text);
        }
    }
}

#[tokio::test]
async fn wrong_types_empty_texts_and_nul_are_refused_by_name_and_null_counts_as_omitted() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for field in ["email", "full_name", "phone", "goals", "health_notes", "external_id"] {
        for bad in [json!(5), json!(true), json!([]), json!({}), json!(""), json!("a\u{0}b@example.com")] {
            create_with(&world, &key, field, bad).await.refused_for(field);
        }
    }
    for bad in [json!("false"), json!(0), json!(""), json!([])] {
        create_with(&world, &key, "send_welcome", bad).await.refused_for("send_welcome");
    }
    for field in ["full_name", "phone", "goals", "health_notes", "external_id", "height_in", "weight_lbs"] {
        create_with(&world, &key, field, Value::Null).await.expect(201);
    }
    let made = create_with(&world, &key, "send_welcome", Value::Null).await.expect(201);
    assert_eq!(made.body["welcome_email_sent"], true, "null is the default, which is true");
}

#[tokio::test]
async fn an_invalid_email_address_is_refused() {
    let world = World::start().await;
    let coach = world.coach("ada").await;
    let (key, crm) = (coach.partner_key().await, coach.crm_key().await);
    for bad in [
        "ada",
        "ada@",
        "@example.com",
        "ada@@example.com",
        " ada@example.com",
        "ada@example.com ",
        "a b@example.com",
        "Ada <ada@example.com>",
        // Mail software reads two addresses, or another one.
        "ada@x.example，bob＠y.example",
        "ada@evil.example＠good.example",
        "ada@x.example。",
        "x@１２７.0.0.1",
        "=?utf-8?q?a?=@x.example",
        "ada@localhost",
    ] {
        create(&world, &key, json!({ "email": bad })).await.refused_for("email");
        let contact = crm.post("/v1/crm/contacts", json!({ "name": "Ada", "email": bad }));
        contact.idempotent(&format!("{}", world.number())).await.refused_for("email");
    }
    assert_eq!(world.mail().await, Vec::<Value>::new());
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

#[tokio::test]
async fn the_application_gets_all_fields_of_the_body() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let body = json!({
        "email": "grace@example.com", "full_name": "Grace Hopper", "phone": "(212) 555-0123", "goals": "Sleep",
        "health_notes": "None", "height_in": 66.5, "weight_lbs": 120, "external_id": "emr-7",
    });
    let made = create(&world, &key, body.clone()).await.expect(201);
    world.settle().await;
    let facts = world.changes("client.created").await;
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0]["coach_id"], "ada");
    let mut expected = key.get(&format!("/v1/clients/{}", made.str("client_id"))).await.expect(200).body;
    expected["phone"] = body["phone"].clone();
    expected["external_id"] = body["external_id"].clone();
    assert_eq!(facts[0]["client"], expected);
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
