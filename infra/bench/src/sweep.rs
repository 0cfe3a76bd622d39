//! A sweep over rosters of different sizes in which as many clients are due.
//!
//! Who is due is so by the machine's own clock, which the functions' processes have: the coach, the rule and the clients are made some
//! days ago, with the stack's clock behind; then the stack is started anew in the present.

use std::path::Path;
use std::time::Duration;

use chrono::TimeDelta;
use http::Method;
use local_stack::linked;
use local_stack::progress::Progress;
use serde_json::{Value, json};

use crate::error::{BenchError, because};
use crate::fleet::Fleet;
use crate::seed::{client, workspace};
use crate::stand::{Call, Cost, Stand, text};

const COACH: &str = "coach_sweep";
/// The client that others are copies of.
const MODEL: &str = "model";
const DAYS_AGO: i64 = 5;
/// Clients who are due in each sweep, all of whom are told of.
const DUE: usize = 100;
/// One period of the schedule, and a minute.
const PERIOD: TimeDelta = TimeDelta::minutes(16);
/// The file in which a stack keeps how far its clock is ahead.
const CLOCK_FILE: &str = "clock";
const SHARDS: u32 = 4;

/// What a sweep cost.
pub(crate) struct Figures {
    pub(crate) roster: usize,
    pub(crate) due: usize,
    pub(crate) cpu: Duration,
    pub(crate) cost: Cost,
    /// The same sweep when nobody is due.
    pub(crate) idle_cpu: Duration,
    pub(crate) idle_cost: Cost,
    pub(crate) peak_memory_bytes: u64,
}

/// Measures a sweep over each of some rosters, which are in ascending order.
pub(crate) async fn measure(
    progress: &mut Progress,
    rosters: &[usize],
    dir: &Path,
    binaries: &Path,
) -> Result<Vec<Figures>, BenchError> {
    progress.show(0, "clients of the past");
    let items = in_the_past(dir).await?;
    std::fs::write(dir.join(CLOCK_FILE), "0").map_err(because("set the clock"))?;
    let fleet = Fleet::new(binaries);
    let stand = Stand::start(dir, &fleet.functions()).await?;
    let result = sweeps(progress, rosters, &stand, &fleet, &items).await;
    stand.end().await;
    fleet.close().await;
    result
}

/// The model's items in `clients` and `records`.
struct Items {
    client: Value,
    doses: Vec<Value>,
}

async fn in_the_past(dir: &Path) -> Result<Items, BenchError> {
    std::fs::create_dir_all(dir).map_err(because(dir))?;
    let behind_ms = -TimeDelta::days(DAYS_AGO).num_milliseconds();
    // A directory of a stack has its form first: an empty start makes it.
    Stand::start(dir, &linked::all()).await?.end().await;
    std::fs::write(dir.join(CLOCK_FILE), format!("{behind_ms:20}\n")).map_err(because("set the clock"))?;
    let stand = Stand::start(dir, &linked::all()).await?;
    stand.facts(vec![("workspace.saved", workspace(COACH))]).await?;
    let endpoint = json!({ "url": "http://127.0.0.1:9/hook", "events": [], "payload_mode": "identifiers" });
    let made = stand.call(Call::post("/settings/webhooks", endpoint).by(stand.session(COACH)?)).await?;
    let automation = json!({
        "automation_id": "quiet", "coach_id": COACH, "name": "Quiet", "active": true,
        "trigger": { "event": "daily_log_inactivity", "days": 3 },
        "steps": [{ "kind": "webhook", "endpoint_id": text(&made, "id")? }],
    });
    stand.facts(vec![("automation.saved", automation)]).await?;
    // Who is due is told of, and nothing is sent: deliveries have a measurement of their own.
    let gone = Call::new(Method::DELETE, format!("/settings/webhooks/{}", text(&made, "id")?));
    stand.call(gone.by(stand.session(COACH)?)).await?;
    stand.facts(vec![("client.saved", client(COACH, MODEL, stand.now() - TimeDelta::days(30)))]).await?;
    let log = json!({ "client_id": MODEL, "date": stand.now().date_naive() });
    stand.facts(vec![("daily_log.saved", log)]).await?;
    stand.advance(PERIOD * 2).await?;
    let pk = format!("CLIENT#{MODEL}");
    let (mut clients, mut doses) = (stand.partition("clients", &pk).await?, stand.partition("records", &pk).await?);
    doses.retain(|item| item["sk"]["S"].as_str().is_some_and(|sk| sk.starts_with("DOSES")));
    let client = clients.pop().ok_or_else(|| BenchError::new("the model was not stored"))?;
    stand.end().await;
    Ok(Items { client, doses })
}

async fn sweeps(
    progress: &mut Progress,
    rosters: &[usize],
    stand: &Stand,
    fleet: &Fleet,
    items: &Items,
) -> Result<Vec<Figures>, BenchError> {
    // Whatever the days between have brought.
    stand.settle().await?;
    stand.advance(PERIOD * 2).await?;
    let (mut figures, mut stored) = (Vec::new(), 0);
    for &roster in rosters {
        progress.show(figures.len() as u64, &format!("{roster} clients"));
        calm(stand, items, stored..roster).await?;
        stored = roster;
        let (idle_cpu, idle_cost) = sweep(stand, fleet).await?;
        due(stand, items, roster).await?;
        let (cpu, cost) = sweep(stand, fleet).await?;
        let peak_memory_bytes = fleet.used("sweep").await.peak_memory_bytes;
        figures.push(Figures { roster, due: DUE, cpu, cost, idle_cpu, idle_cost, peak_memory_bytes });
    }
    Ok(figures)
}

/// Lets the schedule come round once.
async fn sweep(stand: &Stand, fleet: &Fleet) -> Result<(Duration, Cost), BenchError> {
    let (before, calls) = (fleet.used("sweep").await.cpu, stand.totals("sweep"));
    stand.advance(PERIOD).await?;
    let cost = Cost::between(calls, stand.totals("sweep"), 1);
    Ok((fleet.used("sweep").await.cpu.saturating_sub(before), cost))
}

/// Clients who are not due for years: of them a sweep could read no more than what the index holds.
async fn calm(stand: &Stand, items: &Items, numbers: std::ops::Range<usize>) -> Result<(), BenchError> {
    let due_at = (stand.now() + TimeDelta::days(1_000)).timestamp_millis().to_string();
    let numbers: Vec<usize> = numbers.collect();
    for numbers in numbers.chunks(1_000) {
        let ids: Vec<String> = numbers.iter().map(|number| format!("calm{number:07}")).collect();
        let copies: Vec<Value> = ids.iter().flat_map(|id| watches(items, id, Some(&due_at))).collect();
        stand.put_items("records", &copies).await?;
    }
    Ok(())
}

/// Clients whose last log is three days old, as it was when they were last judged.
async fn due(stand: &Stand, items: &Items, roster: usize) -> Result<(), BenchError> {
    let ids: Vec<String> = (0..DUE).map(|number| format!("due{roster}-{number:03}")).collect();
    let clients: Vec<Value> = ids.iter().map(|id| renamed(&items.client, id)).collect();
    stand.put_items("clients", &clients).await?;
    let records: Vec<Value> = ids
        .iter()
        .flat_map(|id| {
            let doses = items.doses.iter().filter(|item| !is_watch(item)).map(|item| renamed(item, id));
            doses.chain(watches(items, id, None)).collect::<Vec<_>>()
        })
        .collect();
    stand.put_items("records", &records).await
}

fn is_watch(item: &Value) -> bool {
    item["sk"]["S"] == "DOSES_WATCH"
}

fn watches<'a>(items: &'a Items, id: &'a str, due_at: Option<&'a str>) -> impl Iterator<Item = Value> + 'a {
    items.doses.iter().filter(|item| is_watch(item)).map(move |item| {
        let mut watch = renamed(item, id);
        let shard = format!("CLIENT#{id}").bytes().map(u32::from).sum::<u32>() % SHARDS;
        watch["sweep_shard"] = json!({ "S": shard.to_string() });
        if let Some(due_at) = due_at {
            watch["sweep_due_at"] = json!({ "N": due_at });
        }
        watch
    })
}

/// An item of the model as one of another client.
fn renamed(item: &Value, id: &str) -> Value {
    let mut item = item.clone();
    for value in item.as_object_mut().into_iter().flatten().map(|(_, value)| value) {
        if let Some(Value::String(text)) = value.get_mut("S") {
            for prefix in ["", "CLIENT#"] {
                if *text == format!("{prefix}{MODEL}") {
                    *text = format!("{prefix}{id}");
                }
            }
        }
    }
    item
}
