//! Requests that die between their facts. A repeat stores what is left, and each fact counts once.

use std::collections::BTreeSet;

use domain::mode::Mode;
use serde_json::{Value, json};

use super::{day, endpoint, message};
use crate::sandbox::{FACTS, batch, start, visitor};
use crate::world::sweep::daily_log;
use crate::world::{Call, Caller, Fact, Receiver, Reply, World, fact, list};

/// More than the calls of a request with the facts of a round.
const MOST_CALLS: usize = 80;

/// A new client with a history, of which three facts emit an event each.
fn facts(client: &str) -> Vec<Fact> {
    let check_in = json!({
        "client_id": client, "check_in_id": format!("check-in-{client}"), "submitted_at": "2026-05-01T07:00:00Z",
        "scores": {}, "grades": {},
    });
    vec![
        Fact::client("ada", client),
        fact("check_in.submitted", check_in),
        daily_log(client, day()),
        message(client, &format!("message-{client}")),
    ]
}

/// Asserts that a client has each fact of [`facts`] once.
async fn assert_stored_once(world: &World, key: &Caller, receiver: &Receiver, client: &str, at: &str) {
    world.settle().await;
    for path in ["check-ins", "daily-logs"] {
        let read = key.get(&format!("/v1/clients/{client}/{path}")).await.expect(200);
        assert_eq!(read.body["count"], 1, "{path} {at}");
    }
    let of_client = receiver.hooks().into_iter().filter(|hook| hook.json()["data"]["client"]["id"] == client);
    let mut events: Vec<String> = of_client.map(|hook| hook.header("x-service-event").to_owned()).collect();
    events.sort();
    assert_eq!(events, ["check_in_submitted", "message_received", "new_client"], "{at}");
}

/// Lets a fault meet a request at each of its calls in turn, until none is left. `repeat` sends the request again after
/// an answer without results.
async fn fault_at_each_call(
    fault: &str,
    with_ids: bool,
    send: impl Fn(&Caller, &str, &Value) -> Call,
    repeat: impl AsyncFn(&World, Call) -> Reply,
) {
    let (world, receiver) = (start(Mode::Test).await, Receiver::start().await);
    let ada = visitor(&world, "ada");
    let key = ada.partner_key().await;
    endpoint(&ada, &receiver, "identifiers").await;
    for spared in 0..MOST_CALLS {
        let (client, at) = (format!("client-{spared}"), format!("{fault} after {spared} calls"));
        let mut facts = facts(&client);
        if with_ids {
            facts = facts.into_iter().enumerate().map(|(n, fact)| fact.with("id", format!("{client}-{n}"))).collect();
        }
        let request = || send(&key, &client, &batch(facts.clone()));
        world.faults(json!({ "function": "sandbox", "spared_calls": spared, fault: 1 })).await;
        let reply = request().await;
        let is_met = world.remaining_faults().await[fault] == 0;
        world.clear_faults().await;
        let reply = if reply.status == 200 { reply } else { repeat(&world, request()).await.expect(200) };
        let results = list(reply.body["data"].clone());
        assert_eq!(results.len(), 4, "{at}");
        for shown in &results {
            let result = shown["result"].as_str().unwrap();
            assert!(["stored", "unchanged"].contains(&result), "{at}: {shown}");
        }
        assert_stored_once(&world, &key, &receiver, &client, &at).await;
        let again = request().await.expect(200);
        if again.is_replay() {
            assert_eq!(again.text, reply.text, "{at}");
        }
        assert_stored_once(&world, &key, &receiver, &client, &at).await;
        if !is_met {
            assert!(spared > 10, "{at}: the request makes more calls");
            let results: BTreeSet<String> = results.iter().map(|shown| shown["result"].to_string()).collect();
            assert_eq!(results, BTreeSet::from(["\"stored\"".to_owned()]), "nothing came between");
            return;
        }
        world.advance_to_next_minute().await;
    }
    panic!("{fault}: the request makes more than {MOST_CALLS} calls");
}

#[tokio::test]
async fn a_repeat_under_its_idempotency_key_stores_each_fact_once_whatever_call_dies() {
    for fault in ["crash_before_call", "crash_after_commit"] {
        let send = |key: &Caller, client: &str, body: &Value| key.post(FACTS, body.clone()).idempotent(client);
        let repeat = async |world: &World, call: Call| {
            // The claim of the request that died has to lapse.
            world.answered(async || call.clone().await).await
        };
        fault_at_each_call(fault, false, send, repeat).await;
    }
}

#[tokio::test]
async fn a_repeat_with_the_same_ids_stores_each_fact_once_whatever_call_dies() {
    let send = |key: &Caller, _: &str, body: &Value| key.post(FACTS, body.clone());
    let repeat = async |_: &World, call: Call| call.await;
    fault_at_each_call("crash_before_call", true, send, repeat).await;
}

#[tokio::test]
async fn a_lost_answer_of_the_store_has_no_fact_stored_twice() {
    let send = |key: &Caller, client: &str, body: &Value| key.post(FACTS, body.clone()).idempotent(client);
    let repeat = async |world: &World, call: Call| world.answered(async || call.clone().await).await;
    fault_at_each_call("store_lost_answers", false, send, repeat).await;
}
