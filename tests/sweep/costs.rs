//! What the sweep costs: as much as there are clients due, however many there are. And what a fact costs before it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Days, DurationRound, NaiveDate, TimeDelta, Timelike, Utc};
use serde_json::{Value, json};

use crate::world::sweep::{Watched, check_in, daily_log, dose, dose_deleted, schedule};
use crate::world::{Bill, Fact, World, costs, fact, list, rendered};

/// Shards of the due index.
pub(crate) const SHARDS: u32 = 4;

/// The five kinds of computed events, by rules that a client who does everything does not match, but for the milestone.
pub(crate) fn all_rules(place: &Watched) -> Vec<Fact> {
    let rules = [
        ("drop", json!({ "event": "compliance_drop", "threshold": 60, "window_days": 7 })),
        ("milestone", json!({ "event": "compliance_milestone", "threshold": 90, "window_days": 7 })),
        ("phase", json!({ "event": "phase_eligible" })),
        ("check_in", json!({ "event": "check_in_inactivity", "days": 4 })),
        ("log", json!({ "event": "daily_log_inactivity", "days": 3 })),
    ];
    rules.into_iter().map(|(id, trigger)| place.automation(id, trigger)).collect()
}

/// A client in its phase since the day before yesterday, with a dose on each of so many days and a daily log today.
pub(crate) async fn client(place: &Watched, id: &str, doses: u64, checked_in: DateTime<Utc>) {
    let world = &place.world;
    let now = world.now().await;
    let back = |days| now.date_naive().checked_sub_days(Days::new(days)).unwrap();
    let phases = json!([{ "name": "Build", "min_days": 5, "min_compliance_pct": 80 },
        { "name": "Keep", "min_days": 1, "min_compliance_pct": null }]);
    world.facts([fact("programme.saved", json!({ "programme_id": "p", "coach_id": "ada", "phases": phases }))]).await;
    place.client(id, now - TimeDelta::days(60)).await;
    let client = Fact::client("ada", id)
        .with("created_at", rendered(now - TimeDelta::days(60)))
        .with("programme_id", "p")
        .with("current_phase", "Build")
        .with("phase_started_on", back(2).to_string());
    world.facts([client]).await;
    world.facts((0..doses).map(|days| dose(id, back(days)))).await;
    world.facts([daily_log(id, back(0)), check_in(id, &format!("{id}-k"), checked_in)]).await;
}

/// When a sweep has seeded what is saved shortly before noon: the first automation of a coach waits for a minute.
pub(crate) fn seeded_by(now: DateTime<Utc>) -> DateTime<Utc> {
    now.duration_round(TimeDelta::hours(1)).unwrap() + TimeDelta::minutes(15)
}

/// Where a client is in the due index.
pub(crate) fn shard_of(id: &str) -> u32 {
    format!("CLIENT#{id}").bytes().map(u32::from).sum::<u32>() % SHARDS
}

/// A client's items, which a scan of many clients would take long to find.
async fn partition(world: &World, table: &str, id: &str) -> Vec<Value> {
    let query = json!({
        "TableName": format!("partner-api-{table}"), "KeyConditionExpression": "pk = :pk", "ConsistentRead": true,
        "ExpressionAttributeValues": { ":pk": { "S": format!("CLIENT#{id}") } },
    });
    list(world.anonymous().aws("DynamoDB_20120810.Query", &query).await["Items"].clone())
}

/// The items of a client of whom there are to be more: its record, and what a sweep reads of it.
pub(crate) struct Model {
    id: String,
    client: Value,
    records: Vec<Value>,
}

impl Model {
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

    /// Stores copies under other ids, each changed in its record and its watch.
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

/// What all invocations of the sweep came to.
#[derive(Debug, Default)]
struct Cost {
    read_units: f64,
    write_units: f64,
    /// How many there were of each operation on each table.
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

    /// Calls of these operations.
    fn count(&self, begins: &str) -> usize {
        self.calls.iter().filter(|(name, _)| name.starts_with(begins)).map(|(_, count)| count).sum()
    }
}

/// Clients of whom nobody is due, and 100 of whom 60 are to be told of. What a sweep costs then and what it costs before.
async fn sweeps_of(roster: usize) -> (Cost, Cost) {
    let place = Watched::new().await;
    let world = &place.world;
    let now = world.now().await;
    let quarter = seeded_by(now);
    let at = |minutes| quarter + TimeDelta::minutes(minutes);
    client(&place, "calm", 7, now).await;
    client(&place, "quiet", 7, at(70) - TimeDelta::days(4)).await;
    client(&place, "logged", 6, now).await;
    world.facts(all_rules(&place)).await;
    place.until(at(5)).await;
    let ids: Vec<String> = (0..roster).map(|number| format!("calm{number:06}")).collect();
    let calm = Model::of(world, "calm").await;
    calm.copy(world, &ids, |_, _| {}).await;

    place.until(at(59)).await;
    place.until(at(61)).await;
    let none_due = Cost::since(world, at(59)).await;

    world.facts([dose("logged", (now - TimeDelta::days(6)).date_naive())]).await;
    for (model, copies) in [("quiet", 29), ("logged", 29), ("calm", 40)] {
        let ids: Vec<String> = (0..copies).map(|number| format!("{model}-due{number:02}")).collect();
        let due = at(65).timestamp_millis().to_string();
        let change = |_, item: &mut Value| {
            if model == "calm" && item["sweep_due_at"].is_object() {
                item["sweep_due_at"]["N"] = json!(due);
            }
        };
        Model::of(world, model).await.copy(world, &ids, change).await;
    }
    place.until(at(74)).await;
    assert!(place.told().is_empty());
    place.until(at(76)).await;
    let due = Cost::since(world, at(74)).await;
    let told: BTreeSet<String> = place.told().into_iter().map(|told| told.client).collect();
    assert_eq!((told.len(), place.told().len()), (60, 60));
    assert!(told.iter().all(|client| !client.starts_with("calm")));
    (none_due, due)
}

/// The big roster. `cargo test -p behaviour --features long-simulation sweep_costs` has it whole.
const MANY: usize = if cfg!(feature = "long-simulation") { 100_000 } else { 10_000 };

#[tokio::test]
async fn a_sweep_costs_as_much_as_there_are_clients_due_however_many_there_are() {
    let (_, of_few) = sweeps_of(1_000).await;
    let (none_due, of_many) = sweeps_of(MANY).await;

    assert!(none_due.read_units <= f64::from(SHARDS), "{none_due:?}");
    assert_eq!((none_due.write_units, none_due.count("")), (0.0, SHARDS as usize), "a look into each shard");

    for cost in [&of_few, &of_many] {
        assert_eq!((cost.read_units, cost.write_units, cost.count("")), (176.0, 580.0, 284));
        assert_eq!(cost.count("TransactWriteItems"), 100, "one for each client who is due");
        assert_eq!(cost.count("PutItem") + cost.count("UpdateItem") + cost.count("BatchWriteItem"), 0);
        assert_eq!(cost.count("GetItem clients"), 60, "one for each client who is told of");
        // A look and a page for each shard, and the watch with the doses of each client.
        assert_eq!(cost.count("Query records"), 2 * SHARDS as usize + 100);
    }
    let ratio = of_many.read_units / of_few.read_units;
    assert!((0.95..=1.05).contains(&ratio), "{ratio}");
    assert_eq!(of_many.write_units, of_few.write_units);
}

/// One kind of fact, and what it costs in `ingest` at most.
struct Kind {
    /// What has to come before it.
    first: Option<fn(u64, DateTime<Utc>) -> Fact>,
    /// The n-th, of the client `c`, said at an instant.
    fact: fn(u64, DateTime<Utc>) -> Fact,
    /// Calls, those in sequence, read units, write units.
    most: Most,
}

type Most = (usize, usize, f64, f64);

fn past(number: u64, now: DateTime<Utc>) -> NaiveDate {
    now.date_naive().checked_sub_days(Days::new(20 + number)).unwrap()
}

/// Later than every date before it.
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
        most: (5, 3, 5.0, 15.0),
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
    let place = Watched::new().await;
    let world = &place.world;
    let now = world.now().await;
    client(&place, "c", 7, now).await;
    world.facts(all_rules(&place)).await;
    place.until(seeded_by(now) + TimeDelta::minutes(1)).await;
    for Kind { first, fact, most } in KINDS {
        for is_due in [false, true] {
            let (calls, in_sequence, read_units, write_units) = most;
            let request = async || {
                let number = world.number();
                // Whatever went before is judged, and what comes now not before the next minute, nor by a sweep.
                world.advance_to_next_minute().await;
                while world.now().await.minute() % 15 > 10 {
                    world.advance_s(60).await;
                }
                world.facts([dose("c", past(number + 1_000, now))]).await;
                let now = world.now().await;
                if let Some(first) = first {
                    world.facts([first(number, now)]).await;
                }
                if is_due {
                    world.advance_to_next_minute().await;
                }
                world.facts([fact(number, now)]).await;
            };
            let affordable =
                |bill: &Bill| bill.calls <= calls && bill.read_units <= read_units && bill.write_units <= write_units;
            costs(world, "ingest", request, affordable, in_sequence).await;
        }
    }
}
