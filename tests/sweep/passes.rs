//! Passes: after a change of a coach's rules, programme or zone, the next sweep evaluates all clients of the coach
//! once, silently where the change seeds. Facts do not wait for the pass.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Days, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::feed::stalls;
use crate::sweep::crashes::Quiet;
use crate::world::sweep::{SweepScene, check_in};
use crate::world::{Bill, Fact, World, fact, list, rendered, until, until_within};

/// Page size of a pass.
const PAGE: usize = 200;
/// Several pages. `cargo test -p behaviour --features long-simulation thousand` evaluates more of them.
const CROWD: usize = if cfg!(feature = "long-simulation") { 900 } else { 420 };

/// An automation on clients without a check-in for `days` days.
fn inactive(quiet: &Quiet, id: &str, days: u32) -> Fact {
    quiet.scene.automation(id, json!({ "event": "check_in_inactivity", "days": days }))
}

fn versions(watches: &BTreeMap<String, Value>) -> BTreeMap<&str, u64> {
    watches.iter().map(|(id, watch)| (id.as_str(), watch["version"]["N"].as_str().unwrap().parse().unwrap())).collect()
}

/// Asserts that each watch has a state of each automation.
fn assert_states_of(watches: &BTreeMap<String, Value>, automations: &[&str]) {
    for (id, watch) in watches {
        let states = watch["states"]["M"]["of"]["M"].as_object().unwrap();
        let missing: Vec<_> = automations.iter().filter(|automation| !states.contains_key(**automation)).collect();
        assert!(missing.is_empty(), "{id}: {missing:?} of {watch}");
    }
}

/// Asserts how often each watch has been written since.
#[track_caller]
fn assert_written(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>, times: u64) {
    let after = versions(after);
    for (id, version) in versions(before) {
        assert_eq!(after[id], version + times, "{id}");
    }
}

/// Number of pages of active clients read since an instant.
async fn pages_since(quiet: &Quiet, at: DateTime<Utc>) -> usize {
    let mut invocations = quiet.world().calls("sweep").await;
    invocations.retain(|invocation| invocation["started_us"].as_i64().unwrap() >= at.timestamp_micros());
    let calls = invocations.iter().flat_map(|invocation| list(invocation["calls"].clone()));
    calls.filter(|call| call["operation"] == "Query" && call["tables"] == json!(["partner-api-clients"])).count()
}

#[tokio::test]
async fn an_automation_for_a_thousand_delays_no_fact_and_is_seeded_by_the_next_sweep() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    // Four days without a check-in end later, ended two days ago, or never began. Of the new automation's two days,
    // some have passed and some not.
    quiet.due_at("match", CROWD, quiet.at(24 * 60)).await;
    quiet.due_at("calm", CROWD, quiet.at(72 * 60)).await;
    let soon = quiet.at(60);
    let ids = quiet.due_at("soon", 200, soon + TimeDelta::days(2)).await;
    let before = quiet.watches("").await;
    quiet.scene.until(quiet.at(16)).await;
    let saved_at = world.now().await;
    world.apply([inactive(&quiet, "new", 2)]).await;
    let bill = Bill::of(&world.calls("ingest").await[0]);
    assert!(bill.calls <= 6, "however many clients there are: {bill:?}");
    assert_written(&before, &quiet.watches("").await, 0);
    let facts = ids[..10].iter().map(|id| check_in(id, &format!("{id}-k"), saved_at));
    world.apply(facts).await;
    let watches = quiet.watches("soon").await;
    assert!(ids[..10].iter().all(|id| watches[id]["last_check_in_at"]["S"] == rendered(saved_at)));
    assert_eq!(pages_since(&quiet, saved_at).await, 0, "there was no sweep yet");

    quiet.scene.until(quiet.at(31)).await;
    let after = quiet.watches("").await;
    assert_states_of(&after, &["quiet-a", "quiet-b", "new"]);
    for name in ["match", "calm"] {
        let of = |watches: &BTreeMap<String, Value>| {
            let watches = watches.clone().into_iter().filter(|(id, _)| id.starts_with(name));
            watches.collect::<BTreeMap<_, _>>()
        };
        assert_written(&of(&before), &of(&after), 1);
    }
    assert_eq!(quiet.scene.received(), []);
    quiet.scene.until(quiet.at(76)).await;
    quiet.assert_events_of(&["new"], &ids[10..].iter().map(|id| (id.clone(), soon)).collect());
}

#[tokio::test]
async fn a_killed_pass_is_completed_by_the_next_and_evaluates_nobody_twice() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    quiet.due_at("match", 500, quiet.at(24 * 60)).await;
    let soon = quiet.at(240);
    let ids = quiet.due_at("soon", 200, soon + TimeDelta::days(2)).await;
    let before = quiet.watches("").await;
    quiet.scene.until(quiet.at(14)).await;
    world.apply([inactive(&quiet, "new", 2)]).await;
    for (spared, least) in [(300, 100), (700, 300)] {
        world.faults(json!({ "function": "sweep", "spared_calls": spared, "stalled_calls": 4 })).await;
        let journey = world.anonymous().post("/_local/clock", json!({ "advance_s": 15 * 60 }));
        // A call whose connection breaks panics, in its own task.
        let journey = tokio::spawn(async move { journey.await.status });
        world.until_stalled().await;
        world.kill_and_restart().await;
        assert!(journey.await.is_err());
        let (before, after) = (versions(&before), quiet.watches("").await);
        let evaluated = versions(&after).into_iter().filter(|(id, version)| *version > before[id]).count();
        assert!((least..before.len()).contains(&evaluated), "{evaluated} are evaluated");
    }
    let now = world.now().await;
    quiet.scene.until(now + TimeDelta::minutes(46)).await;
    let after = quiet.watches("").await;
    assert_states_of(&after, &["quiet-a", "quiet-b", "new"]);
    assert_written(&before, &after, 1);
    assert_eq!(quiet.scene.received(), []);
    quiet.scene.until(soon + TimeDelta::minutes(16)).await;
    quiet.assert_events_of(&["new"], &ids.into_iter().map(|id| (id, soon)).collect());
}

#[tokio::test]
async fn rules_that_change_during_a_pass_are_evaluated_for_all_clients() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    quiet.due_at("match", 450, quiet.at(24 * 60)).await;
    let before = quiet.watches("").await;
    quiet.scene.until(quiet.at(14)).await;
    world.apply([inactive(&quiet, "first", 2)]).await;
    world.faults(json!({ "function": "sweep", "spared_calls": 600, "stalled_calls": 2 })).await;
    let journey = world.anonymous().post("/_local/clock", json!({ "advance_s": 2 * 60 }));
    let journey = tokio::spawn(async move { journey.await.status });
    world.until_stalled().await;
    world.publish([inactive(&quiet, "second", 3)]).await;
    let stored = async || world.table("workspaces").await.iter().any(|item| item["sk"]["S"] == "AUTOMATION#second");
    until_within(Duration::from_secs(20), "a fact does not wait for a pass", stored).await;
    world.faults(json!({ "stalled_calls": 0 })).await;
    assert_eq!(journey.await.unwrap(), 200);
    quiet.scene.until(quiet.at(31)).await;
    let after = quiet.watches("").await;
    assert_states_of(&after, &["quiet-a", "quiet-b", "first", "second"]);
    let (before, after) = (versions(&before), versions(&after));
    assert!(before.iter().all(|(id, version)| (1..=2).contains(&(after[id] - version))), "once by each of the rules");
    assert_eq!(quiet.scene.received(), []);
}

/// Number of calls of the last `ingest` invocation before its transaction.
async fn before_the_transaction(world: &World) -> usize {
    let calls = list(world.calls("ingest").await[0]["calls"].clone());
    calls.iter().position(|call| call["operation"] == "TransactWriteItems").unwrap()
}

#[tokio::test]
async fn a_client_evaluated_while_an_automation_is_stored_is_evaluated_by_it_too() {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    for client in ["due", "calm"] {
        scene.client(client, world.now().await).await;
    }
    world.apply([scene.automation("a0", json!({ "event": "daily_log_inactivity", "days": 300 }))]).await;
    let spared_calls = before_the_transaction(world).await;
    scene.sweep().await;
    let now = world.now().await;
    world.apply(["due", "calm"].map(|client| check_in(client, &format!("ci-{client}"), now))).await;
    scene.sweep().await;
    world.apply([check_in("due", "again", world.now().await)]).await;
    world.advance_s(61).await;
    let version = async || {
        let items = world.items("records", "CLIENT#due").await;
        items.iter().find(|item| item["sk"]["S"] == "DOSES_WATCH").map(|item| item["version"].clone())
    };
    let evaluated = version().await;
    world.faults(json!({ "function": "ingest", "spared_calls": spared_calls, "stalled_calls": 1 })).await;
    world.publish([scene.automation("a1", json!({ "event": "check_in_inactivity", "days": 2 }))]).await;
    world.until_stalled().await;
    for shard in 0..4 {
        world.send("sweep-shards", &json!({ "shard": shard }).to_string()).await;
    }
    until("the evaluation", async || version().await != evaluated).await;
    world.clear_faults().await;
    world.settle().await;
    scene.sweep().await;
    world.down_for(TimeDelta::days(4)).await;
    scene.sweep().await;
    assert_eq!(scene.pairs(), ["calm", "due"].map(|client| ("a1".to_owned(), client.to_owned())));
}

#[tokio::test]
async fn the_time_zone_with_the_later_time_counts_whichever_is_stored_last() {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    let mut stalled_at = 0;
    for spared_calls in 0..12 {
        let moved = async |seconds: i64, zone: &str| {
            let occurred_at = world.timestamp_in(10 * spared_calls + seconds).await;
            world.coach("ada").with("time_zone", zone).into_fact().with("occurred_at", occurred_at)
        };
        world.apply([moved(1, "Europe/Paris").await]).await;
        let stalled = stalls(world, "ingest", spared_calls, moved(2, "Asia/Tokyo").await).await;
        let stored = async |table: &str, sort_key: &str, field: &str| {
            let items = world.items(table, "COACH#ada").await;
            items.iter().find(|item| item["sk"]["S"] == sort_key).map(|item| item[field]["S"].clone())
        };
        if !stalled {
            break;
        }
        stalled_at += 1;
        world.publish([moved(3, "Europe/Berlin").await]).await;
        let berlin = Some(json!("Europe/Berlin"));
        until("the zone", async || stored("workspaces", "WORKSPACE", "time_zone").await == berlin).await;
        world.clear_faults().await;
        world.settle().await;
        let zone = stored("records", "WATCH", "zone").await;
        assert_eq!(zone, Some(json!("Europe/Berlin")), "after {spared_calls} calls");
    }
    assert!((3..12).contains(&stalled_at), "it stalled {stalled_at} times");
}

#[tokio::test]
async fn twenty_automations_saved_in_a_burst_cause_one_pass() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    quiet.due_at("match", 450, quiet.at(24 * 60)).await;
    let before = quiet.watches("").await;
    quiet.scene.until(quiet.at(14)).await;
    let ids: Vec<String> = (0..18).map(|number| format!("burst-{number:02}")).collect();
    world.apply(ids.iter().map(|id| inactive(&quiet, id, 2))).await;
    let saved_at = world.now().await;
    quiet.scene.until(quiet.at(31)).await;
    let after = quiet.watches("").await;
    assert_states_of(&after, &ids.iter().map(String::as_str).collect::<Vec<_>>());
    assert_written(&before, &after, 1);
    assert_eq!(pages_since(&quiet, saved_at).await, before.len().div_ceil(PAGE));
    assert_eq!(quiet.scene.received(), []);
}

#[tokio::test]
async fn a_client_that_fails_in_a_pass_is_evaluated_by_a_later_sweep() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let soon = quiet.at(120);
    let ids = quiet.due_at("soon", 60, soon + TimeDelta::days(2)).await;
    let before = quiet.watches("").await;
    let mut minutes = 14;
    for (name, faults) in [
        ("failures", json!({ "spared_calls": 14, "store_failures": 90 })),
        ("lost", json!({ "spared_calls": 14, "store_lost_answers": 90 })),
        ("conflicts", json!({ "spared_calls": 14, "store_conflicts": 400 })),
    ] {
        world.advance_to(quiet.at(minutes)).await;
        world.faults(json!({ "function": "sweep" })).await;
        world.apply([inactive(&quiet, name, 2)]).await;
        world.faults(faults).await;
        quiet.scene.until(quiet.at(minutes + 2)).await;
        world.clear_faults().await;
        minutes += 30;
        world.advance_to(quiet.at(minutes)).await;
        assert_states_of(&quiet.watches("").await, &[name]);
    }
    assert!(before.len() > 60);
    assert_eq!(quiet.scene.received(), []);
    quiet.scene.until(quiet.at(136)).await;
    let due = ids.into_iter().map(|id| (id, soon)).collect();
    quiet.assert_events_of(&["failures", "lost", "conflicts"], &due);
}

/// While a coach has no automation on computed events, the clients are in no index. Only the pass finds them.
#[tokio::test]
async fn a_client_that_fails_in_the_pass_for_the_first_automation_is_evaluated_by_a_later_sweep() {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    let now = world.now().await;
    let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": null },
        { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
    world.apply([fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }))]).await;
    let started_on = now.date_naive().checked_sub_days(Days::new(3)).unwrap();
    let client = Fact::client("ada", "c1")
        .with("created_at", rendered(now - TimeDelta::days(9)))
        .with("programme_id", "p")
        .with("current_phase", "Build")
        .with("phase_started_on", started_on.to_string());
    world.apply([client]).await;
    for _ in 0..2 {
        scene.sweep().await;
    }
    let stored = world.items("workspaces", "COACH#ada").await;
    let programme = stored.iter().find(|item| item["sk"]["S"] == "PROGRAMME#p").unwrap();
    let mut unreadable = programme.clone();
    unreadable["phases"] = json!({ "N": "1" });
    world.put_item("workspaces", &unreadable).await;
    world.apply([scene.automation("eligible", json!({ "event": "phase_eligible" }))]).await;
    scene.sweep().await;
    world.put_item("workspaces", programme).await;
    scene.until(now + TimeDelta::days(3)).await;
    assert_eq!(scene.pairs(), [("eligible".to_owned(), "c1".to_owned())]);
}
