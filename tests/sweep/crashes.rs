//! Sweeps that die, meet a store that errs, meet each other or meet facts: of each client who is due is told exactly once.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::sweep::costs::{Model, SHARDS, seeded_by, shard_of};
use crate::world::sweep::{Told, Watched, check_in};
use crate::world::{World, rendered, time};

/// Two automations wait for the same: both are told of in one transaction.
const RULES: [&str; 2] = ["quiet-a", "quiet-b"];
const DAYS: i64 = 4;
/// A message comes again, and the schedule comes round, within this time.
const RECOVERED: TimeDelta = TimeDelta::minutes(46);

/// Clients who have not checked in for four days at a chosen instant.
pub(crate) struct Quiet {
    pub(crate) place: Watched,
    pub(crate) quarter: DateTime<Utc>,
    model: Model,
}

impl Quiet {
    /// Nobody yet, five minutes after a quarter of an hour.
    pub(crate) async fn new() -> Self {
        let place = Watched::new().await;
        let world = &place.world;
        let now = world.now().await;
        let quarter = seeded_by(now);
        place.client("quiet", now - TimeDelta::days(30)).await;
        world.facts([check_in("quiet", "k", now - TimeDelta::hours(1))]).await;
        let trigger = json!({ "event": "check_in_inactivity", "days": DAYS });
        world.facts(RULES.map(|id| place.automation(id, trigger.clone()))).await;
        place.until(quarter + TimeDelta::minutes(5)).await;
        let model = Model::of(world, "quiet").await;
        Self { place, quarter, model }
    }

    pub(crate) fn world(&self) -> &World {
        &self.place.world
    }

    /// So many minutes after the quarter.
    pub(crate) fn at(&self, minutes: i64) -> DateTime<Utc> {
        self.quarter + TimeDelta::minutes(minutes)
    }

    /// Clients, each due at an instant.
    pub(crate) async fn due_at(&self, name: &str, count: usize, due: DateTime<Utc>) -> Vec<String> {
        let ids: Vec<String> = (0..count).map(|number| format!("{name}-{number:03}")).collect();
        self.model.copy(self.world(), &ids, |_, item| checked_in(item, due - TimeDelta::days(DAYS))).await;
        ids
    }

    /// Each of these clients is told of once for each rule, at the instant at which it came to match, and nobody else is.
    fn are_told(&self, expected: &BTreeMap<String, DateTime<Utc>>) {
        self.are_told_by(&RULES, expected);
    }

    /// The same of other rules.
    pub(crate) fn are_told_by(&self, rules: &[&str], expected: &BTreeMap<String, DateTime<Utc>>) {
        let mut told = BTreeMap::new();
        let mut ids = BTreeMap::new();
        for one in self.place.told() {
            let of = (one.client, one.automation);
            // What is delivered more than once has one id, and what has another id is another event.
            assert_eq!(*ids.entry(of.clone()).or_insert_with(|| one.webhook_id.clone()), one.webhook_id, "{of:?}");
            told.insert(of, one.at);
        }
        let of = |(client, at): (&String, &DateTime<Utc>)| {
            let pair = |rule: &&str| ((client.clone(), (*rule).to_owned()), rendered(*at));
            rules.iter().map(pair).collect::<Vec<_>>()
        };
        let expected: BTreeMap<_, _> = expected.iter().flat_map(of).collect();
        let missing: Vec<_> = expected.iter().filter(|(of, at)| told.get(*of) != Some(*at)).collect();
        let extra: Vec<_> = told.iter().filter(|(of, at)| expected.get(*of) != Some(*at)).collect();
        assert!(missing.is_empty() && extra.is_empty(), "missing: {missing:?}\nextra: {extra:?}");
    }

    /// The watches of clients, by client.
    pub(crate) async fn watches(&self, name: &str) -> BTreeMap<String, Value> {
        let mut items = self.world().items("records", &format!("CLIENT#{name}")).await;
        items.retain(|item| item["sk"]["S"] == "DOSES_WATCH");
        let id = |item: &Value| item["pk"]["S"].as_str().unwrap().trim_start_matches("CLIENT#").to_owned();
        items.into_iter().map(|item| (id(&item), item)).collect()
    }

    async fn order(&self, shard: u32) {
        self.world().send("sweep-shards", &json!({ "shard": shard }).to_string()).await;
    }
}

/// The client whose item this is checked in last at an instant, and is due in four days.
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

/// Faults that are counted down as calls meet them.
const COUNTED: [&str; 6] = [
    "crash_after_commit",
    "crash_before_call",
    "store_failures",
    "store_lost_answers",
    "store_conflicts",
    "spared_calls",
];

#[tokio::test]
async fn whatever_a_sweep_meets_each_client_is_told_of_once() {
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
        // A message whose function died comes again after twelve minutes.
        quiet.place.until(quiet.at(begins + 14)).await;
        let left = world.local_faults().await;
        for fault in COUNTED.into_iter().filter(|fault| faults.get(fault).is_some()) {
            assert_eq!(left[fault], 0, "{name}: it was met");
        }
        world.faults(json!({ "duplicate_messages": false })).await;
        begins += 15;
    }
    quiet.place.until(quiet.at(begins) + RECOVERED).await;
    quiet.are_told(&due);
    let ids: Vec<String> = due.keys().cloned().collect();
    let watches = quiet.watches("").await;
    for id in &ids {
        assert!(watches[id]["sweep_due_at"].is_null(), "{id} waits for a check-in, not for time");
    }
    // Whatever there is of states, nothing is told by a sweep that judges all of them anew.
    for shard in 0..SHARDS {
        quiet.order(shard).await;
    }
    world
        .facts([quiet
            .place
            .automation("later", json!({ "event": "compliance_milestone", "threshold": 1, "window_days": 7 }))])
        .await;
    quiet.place.until(quiet.at(begins) + RECOVERED * 2).await;
    quiet.are_told(&due);
}

#[tokio::test]
async fn a_kill_amid_a_sweep_of_hundreds_loses_and_doubles_nobody() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let due = quiet.at(10);
    let ids = quiet.due_at("killed", 300, due).await;
    quiet.place.until(quiet.at(14)).await;
    let mut most_left = 299;
    // Each of four shards judges 32 clients at once, by two reads and a write: of 300 calls some are writes. Those whose call is stalled stay,
    // whatever others get done until the kill.
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
    quiet.place.until(now + RECOVERED).await;
    quiet.are_told(&ids.into_iter().map(|id| (id, due)).collect());
}

#[tokio::test]
async fn sweeps_of_one_shard_at_once_and_facts_amid_them_tell_nobody_twice() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let (mut due, mut checked_in) = (BTreeMap::new(), BTreeMap::new());
    for minute in [6, 7, 8] {
        let (since, later) = (quiet.at(minute), quiet.at(minute + 2));
        let over = quiet.due_at(&format!("over-{minute}"), 24, since).await;
        let ahead = quiet.due_at(&format!("ahead-{minute}"), 8, later).await;
        quiet.place.until(since + TimeDelta::seconds(1)).await;
        let facts = over.iter().step_by(2).chain(&ahead).map(|id| check_in(id, &format!("{id}-k"), since));
        let orders = async {
            for _ in 0..5 {
                futures::future::join_all((0..SHARDS).map(|shard| quiet.order(shard))).await;
            }
        };
        futures::future::join(world.put(facts), orders).await;
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
    quiet.place.until(quiet.at(16)).await;
    // A check-in that is stored before the evaluation ends the match.
    let told: Vec<String> = quiet.place.told().into_iter().map(|told| told.client).collect();
    checked_in.retain(|id, _| told.contains(id));
    due.extend(checked_in);
    quiet.are_told(&due);
    // Who checked in is told of again four days later.
    quiet.place.until(quiet.at(16) + TimeDelta::days(DAYS)).await;
    let later = |told: &&Told| told.client != "quiet" && time(&json!(told.at)) > quiet.at(16);
    assert_eq!(quiet.place.told().iter().filter(later).count(), RULES.len() * 3 * (12 + 8));
}

#[tokio::test]
async fn a_check_in_amid_an_evaluation_ends_the_match_and_begins_another_later() {
    let quiet = Quiet::new().await;
    let world = quiet.world();
    let since = quiet.at(6);
    let mut later = BTreeMap::new();
    quiet.place.until(since + TimeDelta::seconds(1)).await;
    // The page, two of the rules, the watch with its doses, the client, the transaction.
    for spared in 0..6 {
        let id = quiet.due_at(&format!("stalled-{spared}"), 1, since).await.remove(0);
        world.faults(json!({ "function": "sweep", "spared_calls": spared, "stalled_calls": 1 })).await;
        quiet.order(shard_of(&id)).await;
        world.until_stalled().await;
        world.put([check_in(&id, &format!("{id}-k"), since)]).await;
        let stored = async { while quiet.watches(&id).await[&id]["last_check_in_at"]["S"] != rendered(since) {} };
        timeout(Duration::from_secs(20), stored).await.expect("a fact does not wait for a sweep");
        world.faults(json!({ "stalled_calls": 0 })).await;
        world.settle().await;
        // The check-in made the client due: another of the shard is to be alone with its stalled call.
        quiet.order(shard_of(&id)).await;
        world.settle().await;
        later.insert(id, since + TimeDelta::days(DAYS));
    }
    quiet.place.until(quiet.at(16)).await;
    quiet.are_told(&BTreeMap::new());
    quiet.place.until(quiet.at(16) + TimeDelta::days(DAYS)).await;
    let mut told = quiet.place.told();
    told.retain(|told| told.client != "quiet");
    assert_eq!(told.len(), RULES.len() * later.len());
    assert!(told.iter().all(|told| told.at == rendered(later[&told.client])));
}

#[tokio::test]
async fn a_message_that_names_no_shard_does_not_come_back() {
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
    quiet.place.until(quiet.at(16)).await;
    quiet.are_told(&ids.into_iter().map(|id| (id, due)).collect());
}

/// What stands in a corrupt item, and is not to stand in the log.
const INNERMOST: &str = "innermost-thoughts";

/// With an item in the due index that cannot be read, others are judged, and the log names the item.
async fn is_left_aside(changes: &[(&str, &str, Value)]) {
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
        quiet.place.until(quiet.at(begins + 1)).await;
        quiet.are_told(&due);
        let log = world.log()[logged..].to_owned();
        let of_it: Vec<&str> = log.lines().filter(|line| line.contains("ERROR")).collect();
        assert_eq!(of_it.len(), 1, "{name}: {log}");
        assert!(of_it[0].contains(&id) && !log.contains(INNERMOST), "{name}: {log}");
        world.take_item("records", item["pk"]["S"].as_str().unwrap()).await;
        begins += 15;
    }
}

#[tokio::test]
async fn a_corrupt_watch_keeps_nobody_else_from_being_judged() {
    is_left_aside(&[
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
async fn a_corrupt_entry_of_the_due_index_keeps_nobody_else_from_being_judged() {
    is_left_aside(&[("no-coach", "coach_id", json!({ "S": "" })), ("number", "coach_id", json!({ "N": "1" }))]).await;
}
