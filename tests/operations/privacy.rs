//! The log of failed requests holds neither a credential nor personal data. `raw_texts` covers data at rest.

use serde_json::json;

use crate::world::{Fact, Receiver, World};

#[tokio::test]
async fn logs_of_failures_hold_no_credential_and_no_personal_data() {
    let world = World::start().await;
    let receiver = Receiver::start().await;
    let ada = world.coach("ada").await;
    ada.endpoint(&format!("{}/secret-path", receiver.url()), "contact_details").await;
    let made_key = ada.new_key(json!({ "name": "x", "scope": "partner" })).await;
    let key = world.anonymous().with_bearer(made_key.str("key"));
    let (email, external_id) = ("Gwendolyn.Testperson@Example.com", "patient-gwendolyn");
    let body = json!({
        "email": email, "full_name": "Gwendolyn Testperson", "phone": "+1 415 555 2671", "goals": "allergic-to-testing",
        "external_id": external_id,
    });
    for plan in [
        json!({ "store_failures": 60 }),
        json!({ "store_failures": 0, "store_conflicts": 60 }),
        json!({ "store_conflicts": 0, "store_lost_answers": 60 }),
        json!({ "store_lost_answers": 0, "mail_failures": 20 }),
    ] {
        world.faults(plan).await;
        key.post("/v1/clients", body.clone()).await;
        world.anonymous().with_bearer(&format!("{}x", made_key.str("key"))).get("/v1/ping").await;
        key.get(&format!("/v1/clients?email={email}")).await;
        key.get(&format!("/v1/clients?external_id={external_id}")).await;
        key.get("/v1/clients?name=Gwendolyn").await;
        world.advance_s(120).await;
    }
    let torn = body.to_string();
    key.call("POST", "/v1/clients").body(torn.trim_end_matches('}').to_owned()).await.expect(400);
    let stored = Fact::client("ada", "c1").with("full_name", body["full_name"].clone()).with("email", email);
    world.apply([stored.with("phone", 5)]).await;
    world.settle().await;
    let log = world.log().to_lowercase();
    assert!(log.contains("\"outcome\":"), "the log has outcomes of requests");
    let sent = body.as_object().unwrap().values().map(|value| value.as_str().unwrap());
    for value in sent.chain([made_key.str("key"), "secret-path"]) {
        assert!(!log.contains(&value.to_lowercase()), "the log contains {value}");
    }
}
