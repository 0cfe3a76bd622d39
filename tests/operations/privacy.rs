//! The log of failed requests holds neither a credential nor personal data. `raw_texts` covers data at rest.

use serde_json::json;

use crate::world::{Fact, Receiver, World};

const NAME: &str = "Gwendolyn Testperson";
const EMAIL: &str = "Gwendolyn.Testperson@Example.com";
const PHONE: &str = "+1 415 555 2671";
const NOTES: &str = "allergic-to-testing";
const EXTERNAL_ID: &str = "patient-gwendolyn";

#[track_caller]
fn assert_not_logged(log: &str, values: &[&str]) {
    assert!(log.contains("\"outcome\":"), "the log has outcomes of requests");
    let log = log.to_lowercase();
    for value in values {
        assert!(!log.contains(&value.to_lowercase()), "the log contains {value}");
    }
}

#[tokio::test]
async fn logs_of_failures_hold_no_credential_and_no_personal_data() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    ada.endpoint(&format!("{}/secret-path", receiver.url()), "contact_details").await;
    let made_key = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    let key = world.anonymous().with_bearer(made_key.str("key"));
    let body = json!({ "email": EMAIL, "full_name": NAME, "phone": PHONE, "goals": NOTES, "external_id": EXTERNAL_ID });
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
        key.get(&format!("/v1/clients?external_id={EXTERNAL_ID}")).await;
        world.advance_s(120).await;
    }
    key.call("POST", "/v1/clients").body(format!("{{\"email\": \"{EMAIL}\", {NOTES}")).await.expect(400);
    world.apply([Fact::client("ada", "c1").with("full_name", NAME).with("email", EMAIL).with("phone", 5)]).await;
    world.settle().await;
    assert_not_logged(&world.log(), &[made_key.str("key"), NAME, EMAIL, PHONE, NOTES, EXTERNAL_ID, "secret-path"]);
}
