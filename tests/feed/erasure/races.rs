//! `client.erased` during a creation, a switch, a fact or a delivery. Each stalls before each of its calls in turn and
//! resumes after the erasure; none of its data stays.

use std::future::IntoFuture;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::feed::erasure::{ENDED_S, ErasureScene, MARK, application_client, erased, life};
use crate::feed::stalls;
use crate::world::{Answer, Fact, Receiver, World, list, until};

/// Waits until nothing of the client's record is left.
async fn until_erased(world: &World, client: &str) {
    let items = async || world.items("clients", &format!("CLIENT#{client}")).await;
    until("the erasure", async || items().await.iter().all(|item| item["full_name"].is_null())).await;
}

#[tokio::test]
async fn a_creation_that_stalls_during_its_clients_erasure_restores_nothing() {
    for spared_calls in 5..8 {
        let scene = ErasureScene::new().await;
        let world = &scene.world;
        let email = format!("a.{MARK}@example.com");
        world.faults(json!({ "function": "clients", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        let body = json!({ "email": email, "full_name": MARK });
        let stalled = tokio::spawn(scene.key.post("/v1/clients", body).idempotent(&email).into_future());
        tokio::select! {
            () = world.until_stalled() => {}
            () = until("the request ends", async || stalled.is_finished()) => {}
        }
        let clients = world.items("clients", "INTAKE#").await;
        let Some(client) = clients.first().map(|item| item["pk"]["S"].as_str().unwrap().replace("INTAKE#", "")) else {
            continue;
        };
        world.apply([erased(&client)]).await;
        world.clear_faults().await;
        stalled.await.unwrap();
        world.advance_s(ENDED_S).await;
        scene.assert_forgotten(&[&client]).await;
        assert!(world.items("clients", "INTAKE#").await.is_empty());
        assert_eq!(scene.key.get("/v1/ping").await.body["active_clients"], 0);
    }
}

#[tokio::test]
async fn a_search_that_stalls_during_an_erasure_finds_the_remaining_client() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    for spared_calls in 0..4 {
        let (client, stays) = (format!("c{spared_calls}"), format!("stays-{spared_calls}"));
        let email = format!("{client}.{MARK}@example.com");
        let other = Fact::client("ada", &stays).with("email", email.as_str());
        world.apply([application_client(&client), other]).await;
        world.faults(json!({ "function": "clients", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        let search = tokio::spawn(scene.key.get(&format!("/v1/clients?email={email}")).into_future());
        tokio::select! {
            () = world.until_stalled() => {}
            () = until("the request ends", async || search.is_finished()) => {}
        }
        world.publish([erased(&client)]).await;
        until_erased(world, &client).await;
        world.clear_faults().await;
        let found = search.await.unwrap().expect(200);
        let ids: Vec<Value> =
            list(found.body["clients"].clone()).iter().map(|found| found["client_id"].clone()).collect();
        assert!(ids.contains(&json!(stays)), "after {spared_calls} calls: {}", found.text);
        world.apply([erased(&stays)]).await;
    }
}

/// A function stalls before each of its calls in turn on the last of these facts, while the client is erased.
async fn erase_while_busy(function: &str, fewest_calls: usize, facts: impl Fn(&str) -> Vec<Fact>) {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    let mut clients = Vec::new();
    for spared_calls in 0..20 {
        let client = format!("c{spared_calls}");
        let mut known = facts(&client);
        let late = known.pop().unwrap();
        if !known.is_empty() {
            world.apply(known).await;
        }
        let late = late.with("occurred_at", world.timestamp_in(60).await);
        let stalled = stalls(world, function, spared_calls, late).await;
        world.publish([erased(&client)]).await;
        until_erased(world, &client).await;
        world.clear_faults().await;
        clients.push(client);
        world.advance_s(ENDED_S).await;
        if !stalled {
            break;
        }
    }
    assert!((fewest_calls..20).contains(&clients.len()), "{function} stalled {} times", clients.len());
    let clients: Vec<&str> = clients.iter().map(String::as_str).collect();
    scene.assert_forgotten(&clients).await;
    assert_eq!([scene.sealed("deliveries").await, scene.sealed("outbox").await], [0, 0]);
    assert_eq!(scene.key.get("/v1/ping").await.body["active_clients"], 0);
}

#[tokio::test]
async fn entries_emitted_during_their_clients_erasure_are_erased_too() {
    let emit = |function| erase_while_busy(function, 4, |client| vec![application_client(client)]);
    futures::future::join(emit("relay"), emit("deliver")).await;
}

#[tokio::test]
async fn data_stored_during_its_clients_erasure_is_erased_too() {
    let apply = |late: Option<usize>| {
        erase_while_busy("ingest", 3, move |client| {
            let late = late.map_or_else(|| application_client(client), |number| life(client, MARK).swap_remove(number));
            vec![application_client(client), late]
        })
    };
    futures::future::join_all((0..7).map(Some).chain([None]).map(apply)).await;
}

#[tokio::test]
async fn a_switch_that_stalls_during_its_clients_erasure_changes_nothing() {
    let scene = ErasureScene::new().await;
    let world = &scene.world;
    for spared_calls in 0..3 {
        let client = format!("c{spared_calls}");
        world.apply([application_client(&client)]).await;
        world.faults(json!({ "function": "clients", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
        let switch = scene.key.patch(&format!("/v1/clients/{client}"), json!({ "is_active": false }));
        let switch = tokio::spawn(switch.into_future());
        world.until_stalled().await;
        world.apply([erased(&client)]).await;
        world.clear_faults().await;
        switch.await.unwrap().refused(404, "not_found");
        scene.assert_forgotten(&[&client]).await;
    }
    world.settle().await;
    assert!(world.changes("client.activation_changed").await.is_empty());
    assert_eq!(scene.key.get("/v1/ping").await.body["active_clients"], 0);
}

/// The second attempt begins or is due while the erasure stalls. Returns whether the log shows a body that was sent.
async fn assert_sent_attempts_logged(spared_calls: usize) -> bool {
    const TAKEN_AFTER: Duration = Duration::from_secs(2);
    /// Later than the second attempt's due time.
    const DUE_S: i64 = 7;
    let (world, receiver) = (World::start_in_real_time().await, Receiver::start().await);
    receiver.script([Answer::status(500)]);
    receiver.otherwise(Answer::status(200).after(TAKEN_AFTER));
    let ada = world.coach("ada").client_cap(4).await;
    let endpoint = ada.endpoint(&receiver.url(), "contact_details").await;
    world.apply([application_client("c1")]).await;
    let due = world.now().await + TimeDelta::seconds(DUE_S);
    world.faults(json!({ "function": "ingest", "spared_calls": spared_calls, "stalled_calls": 3 })).await;
    world.publish([erased("c1")]).await;
    until("a second attempt", async || receiver.hooks().len() == 2 || world.now().await >= due).await;
    world.clear_faults().await;
    world.settle().await;
    world.advance_s(ENDED_S).await;
    let deliveries = ada.deliveries(&endpoint).await;
    let attempts = list(deliveries[0]["attempts"].clone());
    let answered: Vec<&Value> =
        attempts.iter().map(|line| &line["status_code"]).filter(|code| !code.is_null()).collect();
    let was_sent = receiver.hooks().len() == 2;
    if was_sent {
        assert_eq!(
            (answered, &deliveries[0]["status"]),
            (vec![&json!(500), &json!(200)], &json!("delivered")),
            "after {spared_calls} calls"
        );
        assert_eq!(attempts.len(), 2, "after {spared_calls} calls: {attempts:?}");
    } else {
        assert_eq!(
            (answered, &deliveries[0]["status"]),
            (vec![&json!(500)], &json!("failed")),
            "after {spared_calls} calls"
        );
    }
    was_sent
}

#[tokio::test]
async fn an_attempt_that_starts_during_its_clients_erasure_is_logged_with_its_result() {
    let sent = futures::future::join_all((4..14).map(assert_sent_attempts_logged)).await;
    assert!(sent.contains(&true) && sent.contains(&false), "{sent:?}");
}

#[tokio::test]
async fn an_event_that_the_relay_publishes_after_an_erasure_is_not_attempted() {
    /// The place of `message.received` in a client's life.
    const MESSAGE: usize = 6;
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let ada = world.coach("ada").await;
    let endpoint = ada.endpoint(&receiver.url(), "contact_details").await;
    world.apply([application_client("c1")]).await;
    world.faults(json!({ "function": "relay", "stalled_calls": 1 })).await;
    world.publish([life("c1", MARK).swap_remove(MESSAGE)]).await;
    world.until_stalled().await;
    world.publish([erased("c1")]).await;
    until_erased(&world, "c1").await;
    world.clear_faults().await;
    world.settle().await;
    assert_eq!(receiver.hooks().len(), 1, "the new client alone");
    assert_eq!(ada.deliveries(&endpoint).await.len(), 1);
}
