//! `POST /v1/clients`: addresses, and what comes of a request.

mod caps;
pub(crate) mod crashes;
mod crm_contacts;
mod takeovers;
mod welcome;

use serde_json::{Value, json};

use crate::partner::start_with_key;
use crate::world::{Caller, Reply, World};

/// Creates under an idempotency key of its own.
async fn create(world: &World, key: &Caller, body: Value) -> Reply {
    key.post("/v1/clients", body).idempotent(&world.number().to_string()).await
}

#[tokio::test]
async fn an_address_and_one_that_is_mapped_to_it_have_no_answer_in_common() {
    let (_world, key) = start_with_key().await;
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
