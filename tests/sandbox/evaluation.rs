//! `POST /v1/test/evaluate`: past-dated facts take the place of a clock.

use std::collections::BTreeMap;
use std::future::IntoFuture;

use chrono::{DateTime, TimeDelta, Utc};
use domain::mode::Mode;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::sandbox::{EVALUATE, start, store, visitor};
use crate::world::sweep::{automation, check_in, daily_log, dose, phase, schedule};
use crate::world::{Caller, Fact, Receiver, World, fact, rendered, the_one_answer};

const TYPES: [&str; 5] =
    ["compliance_drop", "compliance_milestone", "phase_eligible", "check_in_inactivity", "daily_log_inactivity"];
/// Most clients of a request.
const MOST: usize = 100;
/// Most facts of a request.
const BATCH: usize = 20;

/// An empty sandbox at noon, so that no date ends during a test.
async fn start_at_noon() -> World {
    let world = start(Mode::Test).await;
    let now = world.now().await;
    let noon = now.date_naive().and_hms_opt(12, 0, 0).unwrap().and_utc();
    world.down_until(if now < noon { noon } else { noon + TimeDelta::days(1) }).await;
    world
}

/// Evaluates, and returns the numbers of clients and events, and whether more may be due.
async fn evaluate(key: &Caller) -> (u64, u64, bool) {
    let body = key.post(EVALUATE, json!({})).await.expect(200).body;
    assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    (body["evaluated"].as_u64().unwrap(), body["events"].as_u64().unwrap(), body["more"].as_bool().unwrap())
}

/// A rule of each computed event.
fn rules() -> impl Iterator<Item = (&'static str, Value)> {
    let triggers = [
        json!({ "event": "compliance_drop", "threshold": 60 }),
        json!({ "event": "compliance_milestone", "threshold": 10 }),
        json!({ "event": "phase_eligible" }),
        json!({ "event": "check_in_inactivity", "days": 7 }),
        json!({ "event": "daily_log_inactivity", "days": 3 }),
    ];
    TYPES.into_iter().zip(triggers)
}

/// A client of two months with a check-in and a log of long ago, in a phase that lasts.
fn past(client: &str, now: DateTime<Utc>) -> Vec<Fact> {
    let ago = |days: i64| now - TimeDelta::days(days);
    let saved = Fact::client("ada", client)
        .with("created_at", rendered(ago(60)))
        .with("programme_id", "p")
        .with("current_phase", "Base")
        .with("phase_started_on", ago(60).date_naive().to_string());
    let first_log = daily_log(client, ago(40).date_naive());
    let facts = [saved, schedule(client, 1), check_in(client, &format!("{client}-1"), ago(40)), first_log];
    facts.map(|fact| fact.with("occurred_at", rendered(ago(40)))).into()
}

/// Facts of the last days with which the client starts to match every rule.
fn recent(client: &str, now: DateTime<Utc>) -> Vec<Fact> {
    let ago = |days: i64| now - TimeDelta::days(days);
    vec![
        // One of seven doses: below 60 percent and above 10.
        dose(client, ago(6).date_naive()),
        phase(client, "Build", ago(10)).with("occurred_at", rendered(ago(10))),
        check_in(client, &format!("{client}-2"), ago(10)).with("occurred_at", rendered(ago(10))),
        daily_log(client, ago(5).date_naive()).with("occurred_at", rendered(ago(5))),
    ]
}

fn programme() -> Fact {
    let of = |name: &str, days: u32| json!({ "name": name, "min_days": days, "min_compliance_pct": null });
    let phases = json!([of("Base", 1_000), of("Build", 5), of("Keep", 1)]);
    fact("programme.saved", json!({ "programme_id": "p", "phases": phases }))
}

/// Many clients of a coach, by their numbers.
fn crowd(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("client-{number:03}"))
}

/// Sends facts in batches.
async fn store_all(key: &Caller, facts: impl IntoIterator<Item = Fact>) {
    let facts: Vec<Fact> = facts.into_iter().collect();
    for facts in facts.chunks(BATCH) {
        store(key, facts.to_vec()).await;
    }
}

/// How often each watch of a coach has been written.
async fn versions(world: &World) -> BTreeMap<String, String> {
    let mut watches = world.items("records", "CLIENT#").await;
    watches.retain(|item| item["sk"]["S"] == "DOSES_WATCH");
    watches.iter().map(|watch| (watch["pk"]["S"].to_string(), watch["version"]["N"].to_string())).collect()
}

#[tokio::test]
async fn each_computed_event_comes_of_past_dated_facts_between_two_evaluations_within_a_minute() {
    let (world, receiver) = (start_at_noon().await, Receiver::start().await);
    let ada = visitor(&world, "ada");
    let key = ada.partner_key().await;
    let named = ada.endpoint(&receiver.url(), "contact_details").await;
    let began = world.now().await;
    store(&key, [programme()]).await;
    store(&key, past("c1", began)).await;
    store(&key, rules().map(|(id, trigger)| automation("ada", id, trigger, &[&named])).collect::<Vec<_>>()).await;
    assert_eq!(evaluate(&key).await, (1, 0, false), "the first evaluation is silent");
    store(&key, recent("c1", began)).await;
    assert_eq!(evaluate(&key).await, (1, 5, false));
    assert_eq!(evaluate(&key).await, (0, 0, false), "nobody is due");
    world.settle().await;
    let hooks: Vec<_> =
        receiver.hooks().into_iter().filter(|hook| hook.header("x-service-event") != "new_client").collect();
    assert_eq!(hooks.len(), 5);
    for (event, _) in rules() {
        let [hook] = &receiver.hooks_of(event)[..] else { panic!("one {event}") };
        assert!(hook.is_signed_with(&named.secret));
        assert_eq!(hook.header("x-service-mode"), "test");
        let body = hook.json();
        assert_eq!(body["type"], event);
        let person = json!({
            "id": "c1", "name": "Client c1", "email": "c1@clients.example", "phone": null, "external_id": null,
        });
        assert_eq!((&body["data"]["client"], &body["data"]["automation"]["id"]), (&person, &json!(event)));
    }
    let of = |event: &str, member: &str| receiver.hooks_of(event)[0].json()["data"][member].clone();
    assert_eq!(of("compliance_drop", "compliance_pct"), 14);
    assert_eq!(of("compliance_milestone", "compliance_pct"), 14);
    assert_eq!(of("phase_eligible", "current_phase"), "Build");
    assert_eq!(of("check_in_inactivity", "days_inactive"), 10);
    // The dates between the log and today.
    assert_eq!(of("daily_log_inactivity", "days_inactive"), 4);
    assert!(world.now().await - began < TimeDelta::minutes(1));
    // A sweep emits nothing more.
    world.advance_s(16 * 60).await;
    assert_eq!(receiver.hooks().len(), hooks.len() + receiver.hooks_of("new_client").len());
}

#[tokio::test]
async fn an_evaluation_emits_what_a_sweep_emits() {
    let (world, receiver) = (start_at_noon().await, Receiver::start().await);
    let (ada, bob) = (visitor(&world, "ada"), visitor(&world, "bob"));
    let (key, other) = (ada.partner_key().await, bob.partner_key().await);
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    let swept = bob.endpoint(&receiver.url(), "identifiers").await;
    let now = world.now().await;
    for (key, client, endpoint) in [(&key, "by-hand", &endpoint), (&other, "swept", &swept)] {
        store(key, [vec![programme()], past(client, now)].concat()).await;
        store(key, rules().map(|(id, trigger)| automation("", id, trigger, &[endpoint])).collect::<Vec<_>>()).await;
    }
    evaluate(&key).await;
    world.advance_s(16 * 60).await;
    for (key, client) in [(&key, "by-hand"), (&other, "swept")] {
        store(key, recent(client, now)).await;
    }
    assert_eq!(evaluate(&key).await, (1, 5, false));
    world.advance_s(16 * 60).await;
    let of = |client: &str| {
        let hooks = receiver.hooks().into_iter().filter(|hook| hook.header("x-service-event") != "new_client");
        let hooks = hooks.filter(|hook| hook.json()["data"]["client"]["id"] == client);
        let mut bodies: Vec<Value> = hooks.map(|hook| hook.json()).collect();
        bodies.sort_by_key(|body| body["type"].to_string());
        for body in &mut bodies {
            // A match that a fact started is dated by its evaluation.
            body["timestamp"].take();
            body["data"]["client"].take();
        }
        bodies
    };
    assert_eq!(of("by-hand").len(), 5);
    assert_eq!(of("by-hand"), of("swept"));
}

#[tokio::test]
async fn a_workspace_without_rules_or_clients_has_nothing_to_emit() {
    let world = start_at_noon().await;
    let (ada, crm) = (visitor(&world, "ada"), visitor(&world, "bob").crm_key().await);
    assert_eq!(evaluate(&crm).await, (0, 0, false));
    let key = ada.partner_key().await;
    store(&key, [Fact::client("ada", "c1")]).await;
    assert_eq!(evaluate(&key).await.1, 0);
    assert_eq!(evaluate(&key).await, (0, 0, false));
    key.post(EVALUATE, json!({ "client_id": "c1" })).await.refused(400, "invalid_request");
    key.post(EVALUATE, json!([])).await.refused(400, "invalid_json");
    key.call("POST", EVALUATE).await.expect(200);
}

#[tokio::test]
async fn the_clients_of_another_workspace_are_left_alone() {
    let world = start_at_noon().await;
    let (ada, bob) = (visitor(&world, "ada"), visitor(&world, "bob"));
    let (key, other) = (ada.partner_key().await, bob.partner_key().await);
    let trigger = json!({ "event": "check_in_inactivity", "days": 1 });
    store(&other, [Fact::client("bob", "of-bob"), automation("bob", "r", trigger.clone(), &[])]).await;
    let before = versions(&world).await;
    store(&key, [Fact::client("ada", "of-ada"), automation("ada", "r", trigger, &[])]).await;
    assert_eq!(evaluate(&key).await.0, 1);
    let after = versions(&world).await;
    for (watch, version) in &before {
        assert_eq!(after[watch], *version, "{watch}");
    }
    assert_eq!(evaluate(&other).await.0, 1);
}

#[tokio::test]
async fn a_request_evaluates_at_most_a_hundred_clients_and_says_if_more_are_due() {
    const CLIENTS: usize = 140;
    /// Clients at each end of the list that are not due, so that no page ends where the hundred are full.
    const CALM: usize = 5;
    let world = start_at_noon().await;
    let key = visitor(&world, "ada").partner_key().await;
    let clients = crowd(CLIENTS).map(|client| Fact::client("ada", &client).with("backfill", true));
    store_all(&key, clients).await;
    store(&key, [automation("ada", "r", json!({ "event": "daily_log_inactivity", "days": 1 }), &[])]).await;
    assert_eq!(evaluate(&key).await, (MOST as u64, 0, true));
    assert_eq!(evaluate(&key).await, ((CLIENTS - MOST) as u64, 0, false));
    let today = world.now().await.date_naive();
    let due: Vec<String> = crowd(CLIENTS).skip(CALM).take(CLIENTS - 2 * CALM).collect();
    store_all(&key, due.iter().map(|client| daily_log(client, today))).await;
    let before = versions(&world).await;
    let (evaluated, _, more) = evaluate(&key).await;
    assert!(evaluated <= MOST as u64 && more, "{evaluated}");
    let after = versions(&world).await;
    let written = before.iter().filter(|(watch, version)| after[*watch] != **version).count();
    assert_eq!(written as u64, evaluated, "the answer counts them");
    let (mut all, mut requests, mut more) = (evaluated, 1, more);
    while more {
        let next = evaluate(&key).await;
        assert!(next.0 <= MOST as u64);
        (all, requests, more) = (all + next.0, requests + 1, next.2);
        assert!(requests < 5, "more stays true");
    }
    assert_eq!(all, due.len() as u64);
}

#[tokio::test]
async fn evaluations_at_once_and_repeats_under_a_key_emit_once() {
    let (world, receiver) = (start_at_noon().await, Receiver::start().await);
    let ada = visitor(&world, "ada");
    let key = ada.partner_key().await;
    let endpoint = ada.endpoint(&receiver.url(), "identifiers").await;
    let now = world.now().await;
    store(&key, [programme()]).await;
    let rules: Vec<Fact> = rules().map(|(id, trigger)| automation("ada", id, trigger, &[&endpoint])).collect();
    store(&key, rules).await;
    for client in ["c1", "c2", "c3"] {
        store(&key, past(client, now)).await;
    }
    evaluate(&key).await;
    for client in ["c1", "c2", "c3"] {
        store(&key, recent(client, now)).await;
    }
    let calls = (0..6).map(|number| key.post(EVALUATE, json!({})).idempotent(if number < 3 { "one" } else { "two" }));
    let replies: Vec<_> = join_all(calls.map(IntoFuture::into_future)).await;
    for same in replies.chunks(3) {
        the_one_answer(same);
    }
    world.settle().await;
    let computed: Vec<String> = TYPES
        .iter()
        .flat_map(|event| receiver.hooks_of(event))
        .map(|hook| hook.header("webhook-id").to_owned())
        .collect();
    assert_eq!(computed.len(), 15, "five for each client");
    let counted: u64 = replies
        .iter()
        .filter(|reply| reply.status == 200 && !reply.is_replay())
        .map(|reply| reply.body["events"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 15);
}
