//! The incidents of the runbook, solved by its steps.

use serde_json::{Value, json};

use super::operate;
use crate::world::{Answer, Fact, Receiver, World, fact};

const DAY_S: u64 = 86_400;
/// Longer than a fact waits for what it refers to.
const ROUNDS_S: u64 = 1_200;

/// Runs a command of the runbook, which acts without asking back.
async fn typed(world: &World, line: &str, reason: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    let consent = if reason.is_empty() { vec![] } else { vec!["--reason", reason, "--yes"] };
    operate(world, &[words, consent].concat()).await.expect()
}

/// "A receiver was down": from the end of a key to a delivery that arrives.
#[tokio::test]
async fn a_receiver_that_was_dead_for_days_gets_what_it_missed() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    let new = json!({ "name": "sync", "scope": "partner", "permissions": ["clients.read"] });
    let key = ada.settings().await.post("/settings/keys", new).await.expect(201);
    receiver.otherwise(Answer::status(503));
    for day in 0..7 {
        world.apply([Fact::client("ada", &format!("c{day}"))]).await;
        world.advance_s(DAY_S).await;
    }
    let ending = key.str("display").rsplit('…').next().unwrap();
    let found = typed(&world, &format!("find {ending}"), "").await;
    let coach = found["matches"][0]["coach_id"].as_str().unwrap();
    let shown = typed(&world, &format!("coach {coach}"), "").await;
    let shown = &shown["endpoints"][0];
    assert_eq!(json!([shown["id"], shown["status"]]), json!([endpoint.id, "disabled"]));
    let timeline = typed(&world, "client c0 --timeline", "").await["timeline"].clone();
    let missed = timeline.as_array().unwrap().iter().find(|line| line["kind"] == "delivery").unwrap();
    assert_eq!(missed["status"], "failed");
    let delivery = format!("{} --endpoint {}", missed["id"].as_str().unwrap(), endpoint.id);
    let attempts = typed(&world, &format!("delivery {delivery}"), "").await["attempts"].clone();
    assert!(attempts.as_array().unwrap().iter().all(|attempt| attempt["status_code"] == 503), "{attempts}");

    receiver.otherwise(Answer::status(200));
    typed(&world, &format!("endpoint enable {} --coach {coach}", endpoint.id), "The receiver is back").await;
    typed(&world, &format!("delivery retry {delivery}"), "The receiver is back").await;
    world.settle().await;
    let delivered = typed(&world, &format!("delivery {delivery}"), "").await;
    assert_eq!(json!([delivered["status"], delivered["chain"]]), json!(["delivered", 2]));
    let webhook_id = delivered["webhook_id"].as_str().unwrap();
    assert!(receiver.hooks().last().unwrap().headers["webhook-id"] == webhook_id);
}

/// "Dead facts": what is broken is dropped, what waited too long is sent again once its cause is gone.
#[tokio::test]
async fn a_poisoned_fact_is_dropped_and_one_that_came_too_early_is_stored() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let poisoned = Fact::client("ada", "c1").with("full_name", 7).with("health_notes", "Rheumatism of Grace Hopper");
    let early = fact("client.saved", Fact::client("eve", "c2").detail);
    world.apply([poisoned, early]).await;
    world.advance_s(ROUNDS_S).await;
    let listed = typed(&world, "dead list --queue facts", "").await;
    let dead = listed["dead"].as_array().unwrap();
    assert!(dead.len() == 2 && !listed.to_string().contains("Grace"), "{listed}");
    let of = |client: &str| dead.iter().find(|letter| letter["client_id"] == client).unwrap()["id"].as_str().unwrap();
    let shown = typed(&world, &format!("dead show {}", of("c1")), "").await;
    assert!(shown["reason"].as_str().unwrap().contains("full_name"), "{shown}");
    assert!(shown["members"].as_array().unwrap().contains(&json!("full_name")), "{shown}");
    typed(&world, &format!("dead drop {}", of("c1")), "The application sends it again").await;

    let eve = world.coach("eve").await.partner_key().await;
    typed(&world, &format!("dead redrive {}", of("c2")), "The workspace has arrived").await;
    world.settle().await;
    eve.get("/v1/clients/c2").await.expect(200);
    key.get("/v1/clients/c1").await.refused(404, "not_found");
    assert_eq!(typed(&world, "dead list", "").await, json!({ "dead": [], "complete": true }));
}

/// "A key leaked": found by its end, and revoked.
#[tokio::test]
async fn a_leaked_key_is_found_by_its_last_characters_and_revoked() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let new = json!({ "name": "sync", "scope": "partner", "permissions": ["clients.read"] });
    let key = ada.settings().await.post("/settings/keys", new).await.expect(201);
    let leaked = key.str("key");
    let stranger = world.anonymous().with_bearer(leaked);
    stranger.get("/v1/clients").await.expect(200);
    let found = typed(&world, &format!("find {}", &leaked[leaked.len() - 4..]), "").await;
    let id = found["matches"][0]["id"].as_str().unwrap();
    typed(&world, &format!("key revoke {id}"), "The key was in a public repository").await;
    assert_eq!(stranger.get("/v1/clients").await.status, 401);
    assert_eq!(typed(&world, "coach ada", "").await["keys"]["live"], 0);
}
