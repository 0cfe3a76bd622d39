//! Costs of the sweep, which grow with the due clients only, and of the facts before it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Days, DurationRound, NaiveDate, TimeDelta, Timelike, Utc};
use futures::future::join;
use serde_json::{Value, json};

use crate::world::sweep::{SweepScene, check_in, daily_log, dose, dose_deleted, schedule};
use crate::world::{Bill, Fact, World, assert_cost, fact, list, rendered};

/// Shards of the due index.
pub(crate) const SHARDS: u32 = 4;

/// Rules for the five computed events. A client who does everything matches the milestone only.
pub(crate) fn all_rules(scene: &SweepScene) -> Vec<Fact> {
    let rules = [
        ("drop", json!({ "event": "compliance_drop", "threshold": 60, "window_days": 7 })),
        ("milestone", json!({ "event": "compliance_milestone", "threshold": 90, "window_days": 7 })),
        ("phase", json!({ "event": "phase_eligible" })),
        ("check_in", json!({ "event": "check_in_inactivity", "days": 4 })),
        ("log", json!({ "event": "daily_log_inactivity", "days": 3 })),
    ];
    rules.into_iter().map(|(id, trigger)| scene.automation(id, trigger)).collect()
}

/// A client in its phase since the day before yesterday, with `doses` days of doses and a daily log today.
pub(crate) async fn client(scene: &SweepScene, id: &str, doses: u64, checked_in: DateTime<Utc>) {
    let world = &scene.world;
    let now = world.now().await;
    let back = |days| now.date_naive().checked_sub_days(Days::new(days)).unwrap();
    let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": 80 },
        { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
    world.apply([fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }))]).await;
    scene.client(id, now - TimeDelta::days(60)).await;
    let client = Fact::client("ada", id)
        .with("created_at", rendered(now - TimeDelta::days(60)))
        .with("programme_id", "p")
        .with("current_phase", "Build")
        .with("phase_started_on", back(2).to_string());
    world.apply([client]).await;
    world.apply((0..doses).map(|days| dose(id, back(days)))).await;
    world.apply([daily_log(id, back(0)), check_in(id, &format!("{id}-k"), checked_in)]).await;
}

/// Time by which a sweep has seeded what is saved shortly before noon. A coach's first automation waits for a minute.
pub(crate) fn seeded_by(now: DateTime<Utc>) -> DateTime<Utc> {
    now.duration_round(TimeDelta::hours(1)).unwrap() + TimeDelta::minutes(15)
}

/// The client's shard of the due index.
pub(crate) fn shard_of(id: &str) -> u32 {
    format!("CLIENT#{id}").bytes().map(u32::from).sum::<u32>() % SHARDS
}

/// A client's items, by query: a scan over many clients is slow.
async fn partition(world: &World, table: &str, id: &str) -> Vec<Value> {
    let query = json!({
        "TableName": format!("partner-api-{table}"), "KeyConditionExpression": "pk = :pk", "ConsistentRead": true,
        "ExpressionAttributeValues": { ":pk": { "S": format!("CLIENT#{id}") } },
    });
    list(world.anonymous().aws("DynamoDB_20120810.Query", &query).await["Items"].clone())
}

/// Template items for copies of a client: its record and the items that a sweep reads.
pub(crate) struct ClientTemplate {
    id: String,
    client: Value,
    records: Vec<Value>,
}

impl ClientTemplate {
    pub(crate) async fn of(world: &World, id: &str) -> Self {
        let mut clients = partition(world, "clients", id).await;
        let mut records = partition(world, "records", id).await;
        records.retain(|item| item["sk"]["S"].as_str().unwrap().starts_with("DOSES"));
        assert_eq!(clients.len(), 1);
        Self { id: id.to_owned(), client: clients.remove(0), records }
    }

    fn renamed(&self, item: &Value, id: &str) -> Value {
        let mut item = item.clone();
        for value in item.as_object_mut().unwrap().values_mut() {
            if let Some(Value::String(text)) = value.get_mut("S")
                && text.contains(&self.id)
            {
                *text = text.replace(&self.id, id);
            }
        }
        item
    }

    /// Stores copies under other ids. `change` adapts each copy's record and watch.
    pub(crate) async fn copy(&self, world: &World, ids: &[String], change: impl Fn(usize, &mut Value)) {
        let (mut clients, mut records) = (Vec::new(), Vec::new());
        for (number, id) in ids.iter().enumerate() {
            let mut client = self.renamed(&self.client, id);
            change(number, &mut client);
            clients.push(client);
            for item in &self.records {
                let mut item = self.renamed(item, id);
                if item["sk"]["S"] == "DOSES_WATCH" {
                    item["sweep_shard"]["S"] = json!(shard_of(id).to_string());
                    change(number, &mut item);
                }
                records.push(item);
            }
        }
        world.put_items("clients", &clients).await;
        world.put_items("records", &records).await;
    }
}

/// Total over all invocations of the sweep.
#[derive(Debug, Default)]
struct Cost {
    read_units: f64,
    write_units: f64,
    /// Number of calls by operation and table.
    calls: BTreeMap<String, usize>,
}

impl Cost {
    async fn since(world: &World, at: DateTime<Utc>) -> Self {
        let mut cost = Self::default();
        for invocation in world.calls("sweep").await {
            if invocation["started_us"].as_i64().unwrap() < at.timestamp_micros() {
                continue;
            }
            for call in list(invocation["calls"].clone()) {
                assert_eq!(call["status"], 200, "{call}");
                cost.read_units += call["read_units"].as_f64().unwrap();
                cost.write_units += call["write_units"].as_f64().unwrap();
                let tables: Vec<String> = list(call["tables"].clone())
                    .iter()
                    .map(|table| table.as_str().unwrap().replace("partner-api-", " "))
                    .collect();
                let name = format!("{}{}", call["operation"].as_str().unwrap(), tables.concat());
                *cost.calls.entry(name).or_default() += 1;
            }
        }
        cost
    }

    /// Number of calls whose name has this prefix.
    fn count(&self, begins: &str) -> usize {
        self.calls.iter().filter(|(name, _)| name.starts_with(begins)).map(|(_, count)| count).sum()
    }
}

/// Costs of a sweep with nobody due, and with 100 clients due of whom 60 match.
async fn sweeps_of(roster: usize) -> (Cost, Cost) {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    let now = world.now().await;
    let quarter = seeded_by(now);
    let at = |minutes| quarter + TimeDelta::minutes(minutes);
    client(&scene, "calm", 7, now).await;
    client(&scene, "quiet", 7, at(70) - TimeDelta::days(4)).await;
    client(&scene, "logged", 6, now).await;
    world.apply(all_rules(&scene)).await;
    scene.until(at(5)).await;
    let ids: Vec<String> = (0..roster).map(|number| format!("calm{number:06}")).collect();
    let calm = ClientTemplate::of(world, "calm").await;
    calm.copy(world, &ids, |_, _| {}).await;

    scene.until(at(59)).await;
    scene.until(at(61)).await;
    let none_due = Cost::since(world, at(59)).await;

    world.apply([dose("logged", (now - TimeDelta::days(6)).date_naive())]).await;
    for (template, copies) in [("quiet", 29), ("logged", 29), ("calm", 40)] {
        let ids: Vec<String> = (0..copies).map(|number| format!("{template}-due{number:02}")).collect();
        let due = at(65).timestamp_millis().to_string();
        let change = |_, item: &mut Value| {
            if template == "calm" && item["sweep_due_at"].is_object() {
                item["sweep_due_at"]["N"] = json!(due);
            }
        };
        ClientTemplate::of(world, template).await.copy(world, &ids, change).await;
    }
    scene.until(at(74)).await;
    assert!(scene.received().is_empty());
    scene.until(at(76)).await;
    let due = Cost::since(world, at(74)).await;
    let received: BTreeSet<String> = scene.received().into_iter().map(|event| event.client).collect();
    assert_eq!((received.len(), scene.received().len()), (60, 60));
    assert!(received.iter().all(|client| !client.starts_with("calm")));
    (none_due, due)
}

/// The small roster and the big one. `cargo test -p behaviour --features long-simulation costs` uses the full sizes.
const ROSTERS: [usize; 2] = if cfg!(feature = "long-simulation") { [1_000, 100_000] } else { [200, 2_000] };

#[tokio::test]
async fn a_sweeps_cost_depends_on_due_clients_and_not_on_the_roster() {
    let [few, many] = ROSTERS;
    let ((_, of_few), (none_due, of_many)) = join(sweeps_of(few), sweeps_of(many)).await;

    assert!(none_due.read_units <= f64::from(SHARDS), "{none_due:?}");
    assert_eq!((none_due.write_units, none_due.count("")), (0.0, SHARDS as usize), "one query of each shard");

    for cost in [&of_few, &of_many] {
        assert_eq!((cost.read_units, cost.write_units, cost.count("")), (176.0, 580.0, 284));
        assert_eq!(cost.count("TransactWriteItems"), 100, "one for each due client");
        assert_eq!(cost.count("PutItem") + cost.count("UpdateItem") + cost.count("BatchWriteItem"), 0);
        assert_eq!(cost.count("GetItem clients"), 60, "one for each emitted client");
        // A look and a page for each shard, and a watch with doses for each client.
        assert_eq!(cost.count("Query records"), 2 * SHARDS as usize + 100);
    }
    let ratio = of_many.read_units / of_few.read_units;
    assert!((0.95..=1.05).contains(&ratio), "{ratio}");
    assert_eq!(of_many.write_units, of_few.write_units);
}

/// A kind of fact and its maximum costs in `ingest`.
struct Kind {
    /// A fact that has to be applied before.
    first: Option<fn(u64, DateTime<Utc>) -> Fact>,
    /// The n-th fact about the client `c` at an instant.
    fact: fn(u64, DateTime<Utc>) -> Fact,
    /// Calls, calls in sequence, read units, write units.
    most: Most,
}

type Most = (usize, usize, f64, f64);

fn past(number: u64, now: DateTime<Utc>) -> NaiveDate {
    now.date_naive().checked_sub_days(Days::new(20 + number)).unwrap()
}

/// Later than every earlier date.
fn ahead(number: u64, now: DateTime<Utc>) -> NaiveDate {
    now.date_naive().checked_add_days(Days::new(number)).unwrap()
}

const KINDS: [Kind; 9] = [
    Kind { first: None, fact: |number, now| daily_log("c", ahead(number, now)), most: (5, 3, 3.0, 5.0) },
    Kind { first: None, fact: |number, now| daily_log("c", past(number, now)), most: (5, 3, 3.0, 3.0) },
    Kind { first: None, fact: |number, now| dose("c", past(number, now)), most: (5, 3, 4.0, 11.0) },
    Kind {
        first: Some(|number, now| dose("c", past(number, now))),
        fact: |number, now| dose_deleted("c", past(number, now)),
        most: (5, 3, 4.0, 11.0),
    },
    Kind { first: None, fact: |_, _| schedule("c", 2), most: (5, 3, 3.0, 8.0) },
    Kind { first: None, fact: |number, now| check_in("c", &format!("k{number}"), now), most: (7, 4, 6.0, 14.0) },
    Kind {
        first: Some(|number, now| check_in("c", &format!("k{number}"), now)),
        fact: |number, _| fact("check_in.deleted", json!({ "client_id": "c", "check_in_id": format!("k{number}") })),
        most: (5, 3, 5.0, 11.0),
    },
    Kind {
        first: None,
        fact: |_, now| {
            let detail =
                json!({ "client_id": "c", "from_phase": "Build", "to_phase": "Keep", "advanced_at": rendered(now) });
            fact("phase.advanced", detail)
        },
        most: (5, 3, 5.0, 17.0),
    },
    Kind {
        first: None,
        fact: |number, now| {
            let client = Fact::client("ada", "c").with("current_phase", "Build");
            client.with("phase_started_on", past(number, now).to_string())
        },
        most: (5, 3, 4.0, 14.0),
    },
];

#[tokio::test]
async fn a_fact_costs_a_few_calls_whether_or_not_its_client_is_due() {
    let scene = SweepScene::new().await;
    let world = &scene.world;
    let now = world.now().await;
    client(&scene, "c", 7, now).await;
    world.apply(all_rules(&scene)).await;
    scene.until(seeded_by(now) + TimeDelta::minutes(1)).await;
    for Kind { first, fact, most } in KINDS {
        for is_due in [false, true] {
            let (calls, in_sequence, read_units, write_units) = most;
            let request = async || {
                let number = world.number();
                // Earlier facts are evaluated by now, and no sweep evaluates the next one before the next minute.
                world.advance_to_next_minute().await;
                while world.now().await.minute() % 15 > 10 {
                    world.advance_s(60).await;
                }
                world.apply([dose("c", past(number + 1_000, now))]).await;
                let now = world.now().await;
                if let Some(first) = first {
                    world.apply([first(number, now)]).await;
                }
                if is_due {
                    world.advance_to_next_minute().await;
                }
                world.apply([fact(number, now)]).await;
            };
            let affordable =
                |bill: &Bill| bill.calls <= calls && bill.read_units <= read_units && bill.write_units <= write_units;
            assert_cost(world, "ingest", request, affordable, in_sequence).await;
        }
    }
}
