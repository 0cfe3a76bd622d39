//! Sweeps that die, meet store errors, overlap each other or meet facts: each due client's event is emitted exactly
//! once.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::sweep::costs::{ClientTemplate, SHARDS, seeded_by, shard_of};
use crate::world::sweep::{ComputedEvent, SweepScene, check_in};
use crate::world::{World, rendered, time, until_within};

/// Two automations with the same condition: one transaction emits both events.
const RULES: [&str; 2] = ["quiet-a", "quiet-b"];
const DAYS: i64 = 4;
/// Longer than the return of a message and the period of the schedule.
const RECOVERED: TimeDelta = TimeDelta::minutes(46);

/// A world with clients whose last check-in is four days before a chosen instant.
pub(crate) struct Quiet {
    pub(crate) scene: SweepScene,
    pub(crate) quarter: DateTime<Utc>,
    template: ClientTemplate,
}

impl Quiet {
    /// No clients yet, five minutes after a quarter of an hour.
    pub(crate) async fn new() -> Self {
        let scene = SweepScene::new().await;
        let world = &scene.world;
        let now = world.now().await;
        let quarter = seeded_by(now);
        scene.client("quiet", now - TimeDelta::days(30)).await;
        world.apply([check_in("quiet", "k", now - TimeDelta::hours(1))]).await;
        let trigger = json!({ "event": "check_in_inactivity", "days": DAYS });
        world.apply(RULES.map(|id| scene.automation(id, trigger.clone()))).await;
        scene.until(quarter + TimeDelta::minutes(5)).await;
        let template = ClientTemplate::of(world, "quiet").await;
        Self { scene, quarter, template }
    }

    pub(crate) fn world(&self) -> &World {
        &self.scene.world
    }

    /// The instant that many minutes after the quarter.
    pub(crate) fn at(&self, minutes: i64) -> DateTime<Utc> {
        self.quarter + TimeDelta::minutes(minutes)
    }

    /// Stores clients that are due at an instant.
    pub(crate) async fn due_at(&self, name: &str, count: usize, due: DateTime<Utc>) -> Vec<String> {
        let ids: Vec<String> = (0..count).map(|number| format!("{name}-{number:03}")).collect();
        self.template.copy(self.world(), &ids, |_, item| checked_in(item, due - TimeDelta::days(DAYS))).await;
        ids
    }

    /// Asserts one event for each of these clients and each rule, dated with the start of its match, and no others.
    fn assert_events(&self, expected: &BTreeMap<String, DateTime<Utc>>) {
        self.assert_events_of(&RULES, expected);
    }

    /// The same for other rules.
    pub(crate) fn assert_events_of(&self, rules: &[&str], expected: &BTreeMap<String, DateTime<Utc>>) {
        let mut received = BTreeMap::new();
        let mut ids = BTreeMap::new();
        for one in self.scene.received() {
            let of = (one.client, one.automation);
            // Duplicates share their id, and another id is another event.
            assert_eq!(*ids.entry(of.clone()).or_insert_with(|| one.webhook_id.clone()), one.webhook_id, "{of:?}");
            received.insert(of, one.at);
        }
        let of = |(client, at): (&String, &DateTime<Utc>)| {
            let pair = |rule: &&str| ((client.clone(), (*rule).to_owned()), rendered(*at));
            rules.iter().map(pair).collect::<Vec<_>>()
        };
        let expected: BTreeMap<_, _> = expected.iter().flat_map(of).collect();
        let missing: Vec<_> = expected.iter().filter(|(of, at)| received.get(*of) != Some(*at)).collect();
        let extra: Vec<_> = received.iter().filter(|(of, at)| expected.get(*of) != Some(*at)).collect();
        assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:?}\nextra: {extra:?}");
    }

    /// The clients' watches, by client.
    pub(crate) async fn watches(&self, name: &str) -> BTreeMap<String, Value> {
        let mut items = self.world().items("records", &format!("CLIENT#{name}")).await;
        items.retain(|item| item["sk"]["S"] == "DOSES_WATCH");
        let id = |item: &Value| item["pk"]["S"].as_str().unwrap().trim_start_matches("CLIENT#").to_owned();
        items.into_iter().map(|item| (id(&item), item)).collect()
    }

    async fn enqueue_shard(&self, shard: u32) {
        self.world().send("sweep-shards", &json!({ "shard": shard }).to_string()).await;
    }
}

/// Sets the client's last check-in, so that the client is due four days later.
fn checked_in(item: &mut Value, at: DateTime<Utc>) {
    for name in ["latest_check_in_at", "last_check_in_at"] {
        if item[name].is_object() {
            item[name]["S"] = json!(rendered(at));
        }
    }
    if item["sweep_due_at"].is_object() {
        item["sweep_due_at"]["N"] = json!((at + TimeDelta::days(DAYS)).timestamp_millis().to_string());
    }
}

/// Faults whose counter decreases with each affected call.
const COUNTED: [&str; 6] = [
    "crash_after_commit",
    "crash_before_call",
    "store_failures",
    "store_lost_answers",
    "store_conflicts",
    "spared_calls",
];

#[tokio::test]
async fn each_match_is_emitted_once_under_any_fault_of_a_sweep() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let mut due = BTreeMap::new();
    let mut begins = 15;
    for (name, faults) in [
        ("first-commit", json!({ "crash_after_commit": 1 })),
        ("every-shard", json!({ "crash_after_commit": 5 })),
        ("half-way", json!({ "spared_calls": 60, "crash_after_commit": 1 })),
        ("again", json!({ "crash_after_commit": 6 })),
        ("look", json!({ "crash_before_call": 1 })),
        ("before-a-call", json!({ "spared_calls": 45, "crash_before_call": 3 })),
        ("failures", json!({ "spared_calls": 8, "store_failures": 20 })),
        ("some-failures", json!({ "spared_calls": 30, "store_failures": 25 })),
        ("lost", json!({ "spared_calls": 8, "store_lost_answers": 20 })),
        ("some-lost", json!({ "spared_calls": 30, "store_lost_answers": 25 })),
        ("conflicts", json!({ "spared_calls": 8, "store_conflicts": 60 })),
        ("doubled", json!({ "duplicate_messages": true })),
    ] {
        let since = quiet.at(begins - 5);
        for id in quiet.due_at(name, 20, since).await {
            due.insert(id, since);
        }
        world.faults(json!({ "function": "sweep" })).await;
        world.faults(faults.clone()).await;
        // A message whose function died returns after twelve minutes.
        quiet.scene.until(quiet.at(begins + 14)).await;
        let left = world.remaining_faults().await;
        for fault in COUNTED.into_iter().filter(|fault| faults.get(fault).is_some()) {
            assert_eq!(left[fault], 0, "{name}: it was met");
        }
        world.faults(json!({ "duplicate_messages": false })).await;
        begins += 15;
    }
    quiet.scene.until(quiet.at(begins) + RECOVERED).await;
    quiet.assert_events(&due);
    let ids: Vec<String> = due.keys().cloned().collect();
    let watches = quiet.watches("").await;
    for id in &ids {
        assert!(watches[id]["sweep_due_at"].is_null(), "{id} waits for a check-in, not for time");
    }
    // Each sweep evaluates all clients anew, whatever their states, and emits nothing.
    for shard in 0..SHARDS {
        quiet.enqueue_shard(shard).await;
    }
    world
        .apply([quiet
            .scene
            .automation("later", json!({ "event": "compliance_milestone", "threshold": 1, "window_days": 7 }))])
        .await;
    quiet.scene.until(quiet.at(begins) + RECOVERED * 2).await;
    quiet.assert_events(&due);
}

#[tokio::test]
async fn a_kill_during_a_sweep_of_hundreds_loses_and_duplicates_no_event() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let due = quiet.at(10);
    let ids = quiet.due_at("killed", 300, due).await;
    quiet.scene.until(quiet.at(14)).await;
    let mut most_left = 299;
    // Each of four shards evaluates 32 clients at once, with two reads and a write each, so some of 300 calls are
    // writes. Clients with a stalled call stay due until the kill.
    for (spared, stalled) in [(300, 24), (5, 1)] {
        world.faults(json!({ "function": "sweep", "spared_calls": spared, "stalled_calls": stalled })).await;
        let journey = world.anonymous().post("/_local/clock", json!({ "advance_s": 15 * 60 }));
        // A call whose connection breaks panics, in its own task.
        let journey = tokio::spawn(async move { journey.await.status });
        world.until_stalled().await;
        world.kill_and_restart().await;
        assert!(journey.await.is_err());
        let left = quiet.watches("killed").await.values().filter(|watch| !watch["sweep_due_at"].is_null()).count();
        assert!((1..=most_left).contains(&left), "{left} are left, and not 1 to {most_left}");
        most_left = left;
    }
    let now = world.now().await;
    quiet.scene.until(now + RECOVERED).await;
    quiet.assert_events(&ids.into_iter().map(|id| (id, due)).collect());
}

#[tokio::test]
async fn simultaneous_sweeps_of_a_shard_with_facts_emit_no_duplicate() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let (mut due, mut checked_in) = (BTreeMap::new(), BTreeMap::new());
    for minute in [6, 7, 8] {
        let (since, later) = (quiet.at(minute), quiet.at(minute + 2));
        let over = quiet.due_at(&format!("over-{minute}"), 24, since).await;
        let ahead = quiet.due_at(&format!("ahead-{minute}"), 8, later).await;
        quiet.scene.until(since + TimeDelta::seconds(1)).await;
        let facts = over.iter().step_by(2).chain(&ahead).map(|id| check_in(id, &format!("{id}-k"), since));
        let orders = async {
            for _ in 0..5 {
                futures::future::join_all((0..SHARDS).map(|shard| quiet.enqueue_shard(shard))).await;
            }
        };
        futures::future::join(world.publish(facts), orders).await;
        world.settle().await;
        let watches = quiet.watches(&format!("over-{minute}")).await;
        for (number, id) in over.into_iter().enumerate() {
            let next = &watches[&id]["sweep_due_at"]["N"];
            if number % 2 == 0 {
                // A check-in makes its client due, now or in four days.
                assert!(!next.is_null(), "{id}");
                checked_in.insert(id, since);
            } else {
                assert!(next.is_null(), "{id} is through: {next}");
                due.insert(id, since);
            }
        }
    }
    quiet.scene.until(quiet.at(16)).await;
    // A check-in that is stored before the evaluation ends the match.
    let received: Vec<String> = quiet.scene.received().into_iter().map(|event| event.client).collect();
    checked_in.retain(|id, _| received.contains(id));
    due.extend(checked_in);
    quiet.assert_events(&due);
    // The client's next event is due four days after the check-in.
    world.down_until(quiet.at(0) + TimeDelta::days(DAYS)).await;
    quiet.scene.until(quiet.at(16) + TimeDelta::days(DAYS)).await;
    let later = |event: &&ComputedEvent| event.client != "quiet" && time(&json!(event.at)) > quiet.at(16);
    assert_eq!(quiet.scene.received().iter().filter(later).count(), RULES.len() * 3 * (12 + 8));
}

#[tokio::test]
async fn a_check_in_during_an_evaluation_ends_the_match_and_starts_a_later_one() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let since = quiet.at(6);
    let mut later = BTreeMap::new();
    quiet.scene.until(since + TimeDelta::seconds(1)).await;
    // The page, two of the rules, the watch with its doses, the client, the transaction.
    for spared in 0..6 {
        let id = quiet.due_at(&format!("stalled-{spared}"), 1, since).await.remove(0);
        world.faults(json!({ "function": "sweep", "spared_calls": spared, "stalled_calls": 1 })).await;
        quiet.enqueue_shard(shard_of(&id)).await;
        world.until_stalled().await;
        world.publish([check_in(&id, &format!("{id}-k"), since)]).await;
        let stored = async || quiet.watches(&id).await[&id]["last_check_in_at"]["S"] == rendered(since);
        until_within(Duration::from_secs(20), "a fact does not wait for a sweep", stored).await;
        world.faults(json!({ "stalled_calls": 0 })).await;
        world.settle().await;
        // The check-in has made the client due. The next one needs a stalled call of the shard to itself.
        quiet.enqueue_shard(shard_of(&id)).await;
        world.settle().await;
        later.insert(id, since + TimeDelta::days(DAYS));
    }
    quiet.scene.until(quiet.at(16)).await;
    quiet.assert_events(&BTreeMap::new());
    world.down_until(quiet.at(0) + TimeDelta::days(DAYS)).await;
    quiet.scene.until(quiet.at(16) + TimeDelta::days(DAYS)).await;
    let mut received = quiet.scene.received();
    received.retain(|event| event.client != "quiet");
    assert_eq!(received.len(), RULES.len() * later.len());
    assert!(received.iter().all(|event| event.at == rendered(later[&event.client])));
}

#[tokio::test]
async fn a_message_without_a_shard_is_not_retried() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let due = quiet.at(10);
    let ids = quiet.due_at("beside", 8, due).await;
    for body in
        ["nonsense", "{}", "[]", "null", "{\"shard\":-1}", "{\"shard\":256}", "{\"shard\":\"1\"}", "{\"shard\":200}"]
    {
        world.send("sweep-shards", body).await;
    }
    world.settle().await;
    let left: Vec<_> = world.messages().into_iter().filter(|(queue, _)| queue.contains("sweep")).collect();
    assert_eq!(left, []);
    quiet.scene.until(quiet.at(16)).await;
    quiet.assert_events(&ids.into_iter().map(|id| (id, due)).collect());
}

/// Text in a corrupt item that must not be logged.
const INNERMOST: &str = "innermost-thoughts";

/// A corrupt item in the due index: other clients are evaluated, and the log names the item.
async fn assert_skipped(changes: &[(&str, &str, Value)]) {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let whole = quiet.due_at("corrupt", 1, quiet.at(1)).await.remove(0);
    let whole = quiet.watches(&whole).await.remove(&whole).unwrap();
    let mut due = BTreeMap::from([("corrupt-000".to_owned(), quiet.at(1))]);
    let mut begins = 15;
    for (name, field, value) in changes {
        let since = quiet.at(begins - 5);
        let id = format!("corrupt-{name}");
        let mut item = whole.clone();
        item["pk"]["S"] = json!(format!("CLIENT#{id}"));
        if *name == "coach" {
            (item["pk"]["S"], item["sk"]["S"]) = (json!(format!("COACH#{id}")), json!("WATCH"));
            item["coach_id"]["S"] = json!(id);
        }
        item["sweep_due_at"]["N"] = json!(since.timestamp_millis().to_string());
        item[*field] = value.clone();
        for id in quiet.due_at(name, 16, since).await {
            due.insert(id, since);
        }
        let logged = world.log().len();
        world.put_item("records", &item).await;
        quiet.scene.until(quiet.at(begins + 1)).await;
        quiet.assert_events(&due);
        let log = world.log()[logged..].to_owned();
        let of_it: Vec<&str> = log.lines().filter(|line| line.contains("ERROR")).collect();
        assert_eq!(of_it.len(), 1, "{name}: {log}");
        assert!(of_it[0].contains(&id) && !log.contains(INNERMOST), "{name}: {log}");
        world.take_item("records", item["pk"]["S"].as_str().unwrap()).await;
        begins += 15;
    }
}

#[tokio::test]
async fn a_corrupt_watch_does_not_stop_other_evaluations() {
    assert_skipped(&[
        ("states", "states", json!({ "S": INNERMOST })),
        ("active", "is_active", json!({ "S": INNERMOST })),
        ("created", "created_at", json!({ "S": INNERMOST })),
        ("version", "version", json!({ "S": INNERMOST })),
        ("date", "last_daily_log_on", json!({ "S": INNERMOST })),
        ("unknown-coach", "coach_id", json!({ "S": "nobody" })),
        ("coach", "is_watched", json!({ "S": INNERMOST })),
    ])
    .await;
}

#[tokio::test]
async fn a_corrupt_entry_of_the_due_index_does_not_stop_other_evaluations() {
    assert_skipped(&[("no-coach", "coach_id", json!({ "S": "" })), ("number", "coach_id", json!({ "N": "1" }))]).await;
}
