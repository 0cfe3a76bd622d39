//! `find`, `coach` and `delivery`.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{operate, ran};
use crate::world::{Answer, CRM_PERMISSIONS, Fact, Receiver, World, fact, uuid};

/// The matches of a text: kind, id and coach.
async fn found(world: &World, text: &str) -> Value {
    let answer = operate(world, &["find", text]).await.expect();
    let matches = answer["matches"].as_array().unwrap().iter();
    matches.map(|found| json!([found["kind"], found["id"], found["coach_id"]])).collect()
}

#[tokio::test]
async fn find_says_whose_any_id_is() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let (ada, _eve) = (world.coach("ada").await, world.coach("eve").await);
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    world.apply([Fact::client("ada", "c1"), Fact::contact("ada", &uuid(7)).with("email", "Lee@Example.com")]).await;
    let delivery = ada.deliveries(&endpoint).await.remove(0);
    let settings = ada.settings().await;
    let new = json!({ "name": "sync", "scope": "crm", "permissions": CRM_PERMISSIONS });
    let key = settings.post("/settings/keys", new).await.expect(201);
    let (key_id, display) = (key.str("id"), key.str("display"));

    assert_eq!(found(&world, "ada").await, json!([["coach", "ada", "ada"]]));
    assert_eq!(found(&world, "c1").await, json!([["client", "c1", "ada"]]));
    assert_eq!(found(&world, &uuid(7)).await, json!([["contact", uuid(7), "ada"]]));
    assert_eq!(found(&world, &endpoint.id).await, json!([["endpoint", endpoint.id, "ada"]]));
    let (id, event) = (delivery["id"].as_str().unwrap(), delivery["webhook_id"].as_str().unwrap());
    assert_eq!(found(&world, id).await, json!([["delivery", id, "ada"]]));
    assert_eq!(found(&world, event).await, json!([["delivery", id, "ada"], ["event", event, "ada"]]));
    let of_key = json!([["key", key_id, "ada"]]);
    for text in [key_id, display, display.rsplit('…').next().unwrap()] {
        assert_eq!(found(&world, text).await, of_key, "{text}");
    }
    let hash = |address: &str| hex::encode(Sha256::digest(address));
    assert_eq!(found(&world, &hash("c1@clients.example")).await, json!([["client", "c1", "ada"]]));
    assert_eq!(found(&world, &hash("lee@example.com").to_uppercase()).await, json!([["contact", uuid(7), "ada"]]));
    let refused = world.anonymous().with_bearer(key.str("key")).get("/v1/crm/contacts/nobody").await;
    let request = refused.header("x-request-id").unwrap();
    assert_eq!(found(&world, request).await, json!([["request", request, "ada"]]));

    let nothing = operate(&world, &["find", "nobody"]).await;
    assert!(nothing.stderr.contains("read all"), "{}", nothing.stderr);
    nothing.refused(1, "not_found");
}

#[tokio::test]
async fn an_ambiguous_text_finds_all_that_it_may_be() {
    let world = World::start().await;
    world.coach("both").await;
    world.coach("ada").await;
    world.apply([Fact::client("ada", "both")]).await;
    assert_eq!(found(&world, "both").await, json!([["coach", "both", "both"], ["client", "both", "ada"]]));
}

#[tokio::test]
async fn a_coach_is_shown_with_numbers_and_hosts_alone() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let url = format!("{}hook?token=s3cret", receiver.url());
    let endpoint = ada.endpoint(&url, "identifiers").await;
    ada.partner_key().await;
    world.apply([Fact::client("ada", "c1"), Fact::client("ada", "c2").with("is_active", false)]).await;
    let shown = operate(&world, &["coach", "ada"]).await;
    assert!(!shown.stdout.contains("s3cret") && !shown.stdout.contains("hook"), "{}", shown.stdout);
    let expected = json!({
        "coach_id": "ada", "clients": { "stored": 2, "active": 1 }, "keys": { "live": 1 },
        "entitlements": { "partner_api": true, "pro_crm": true, "gym": true }, "crm_configured": true,
        "endpoints": [{ "id": endpoint.id, "host": "127.0.0.1", "status": "enabled", "breaker_open_until": null, "failing_since": null }],
        "unsent": 0, "oldest_unsent_at": null,
    });
    assert_eq!(shown.expect(), expected);
    operate(&world, &["coach", "eve"]).await.refused(1, "not_found");
}

#[tokio::test]
async fn what_waits_in_the_outbox_is_counted_for_its_coach() {
    let world = World::start().await;
    world.coach("ada").await;
    world.coach("eve").await;
    world.faults(json!({ "function": "relay", "store_failures": 1_000_000 })).await;
    world.publish([Fact::client("ada", "c1")]).await;
    let key = world.coach("ada").await.partner_key().await;
    crate::world::until("the client is stored", async || key.get("/v1/clients/c1").await.status == 200).await;
    let shown = operate(&world, &["coach", "ada"]).await.expect();
    assert!(shown["unsent"].as_u64() >= Some(1) && shown["oldest_unsent_at"].is_string(), "{shown}");
    assert_eq!(operate(&world, &["coach", "eve"]).await.expect()["unsent"], 0);
}

#[tokio::test]
async fn a_delivery_is_shown_with_its_attempts_and_the_place_of_its_order() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "contact_details").await;
    receiver.script([Answer::status(503).body("Grace Hopper"), Answer::status(200)]);
    world.apply([Fact::client("ada", "c1").with("full_name", "Grace Hopper")]).await;
    let delivery = ada.deliveries(&endpoint).await.remove(0);
    let id = delivery["id"].as_str().unwrap();
    for place in [&["--endpoint", &endpoint.id][..], &["--coach", "ada"], &[]] {
        let shown = operate(&world, &[&["delivery", id], place].concat()).await;
        assert_eq!(shown.stderr.contains("read all"), place.is_empty(), "{}", shown.stderr);
        assert!(!shown.stdout.contains("Grace"), "{}", shown.stdout);
        let shown = shown.expect();
        let attempt = &shown["attempts"][0];
        let summary = json!([shown["id"], shown["endpoint_id"], shown["coach_id"], shown["client_id"], shown["type"]]);
        assert_eq!(summary, json!([id, endpoint.id, "ada", "c1", "new_client"]));
        assert_eq!(json!([shown["status"], shown["chain"], shown["order"]]), json!(["pending", 1, "waiting"]));
        assert_eq!(json!([attempt["status_code"], attempt["error"]]), json!([503, null]));
        assert_eq!(shown["webhook_id"], delivery["webhook_id"]);
        assert!(shown["next_attempt_at"].is_string() && attempt["duration_ms"].is_number(), "{shown}");
    }
    world.advance_s(10).await;
    let ended = operate(&world, &["delivery", id, "--endpoint", &endpoint.id]).await.expect();
    assert_eq!(json!([ended["status"], ended["order"], ended["next_attempt_at"]]), json!(["delivered", null, null]));
}

#[tokio::test]
async fn control_characters_of_stored_text_do_not_reach_the_terminal() {
    let world = World::start().await;
    world.coach("ada").await;
    world.apply([fact("workspace.saved", json!({ "coach_id": "ada", "name": "\u{1b}[2J" }))]).await;
    let port = world.aws_url().rsplit(':').next().unwrap().to_owned();
    let shown = super::command(super::READER).args(["dead", "list", "--local", "--aws-port", &port]).output().await;
    let shown = ran(shown.unwrap());
    assert!(shown.code == 0 && !shown.stdout.contains('\u{1b}'), "{shown:?}");
}
