//! Measures sweeps over rosters of different sizes with the same number of due clients.
//!
//! The functions' processes use the machine's clock, so clients must be due by that clock. A first stack with its clock
//! set back creates the coach, the automation and a model client. A second stack on the same data runs in the present.

use std::path::Path;
use std::time::Duration;

use chrono::TimeDelta;
use http::Method;
use local_stack::linked;
use serde_json::{Value, json};

use crate::error::{BenchError, context};
use crate::fleet::Fleet;
use crate::progress::Progress;
use crate::seed::{client, workspace};
use crate::stack::{ApiCall, BenchStack, Cost, text};

const COACH: &str = "coach_sweep";
/// The client whose items are copied for all other clients.
const MODEL: &str = "model";
const DAYS_AGO: i64 = 5;
/// Due clients in each sweep, each of whom emits an event.
const DUE: usize = 100;
/// One period of the schedule plus a minute.
const PERIOD: TimeDelta = TimeDelta::minutes(16);
/// The file in which a stack stores its clock's offset.
const CLOCK_FILE: &str = "clock";
const SHARDS: u32 = 4;

/// The measured cost of a sweep.
pub(crate) struct SweepFigures {
    pub(crate) roster: usize,
    pub(crate) due: usize,
    pub(crate) cpu: Duration,
    pub(crate) cost: Cost,
    /// The same sweep without due clients.
    pub(crate) idle_cpu: Duration,
    pub(crate) idle_cost: Cost,
    pub(crate) peak_memory_bytes: u64,
}

/// Measures a sweep over each roster size, in ascending order.
pub(crate) async fn measure(
    progress: &mut Progress,
    rosters: &[usize],
    dir: &Path,
    binaries: &Path,
) -> Result<Vec<SweepFigures>, BenchError> {
    progress.show(0, "model client");
    let items = create_model(dir).await?;
    std::fs::write(dir.join(CLOCK_FILE), "0").map_err(context("set the clock"))?;
    let fleet = Fleet::new(binaries);
    let stack = BenchStack::start(dir, &fleet.functions()).await?;
    let result = sweeps(progress, rosters, &stack, &fleet, &items).await;
    stack.end().await;
    fleet.close().await;
    result
}

/// The model's items in `clients` and `records`.
struct ModelItems {
    client: Value,
    doses: Vec<Value>,
}

async fn create_model(dir: &Path) -> Result<ModelItems, BenchError> {
    std::fs::create_dir_all(dir).map_err(context(dir))?;
    let behind_ms = -TimeDelta::days(DAYS_AGO).num_milliseconds();
    // The first start initialises the directory, so that the clock's file can be written.
    BenchStack::start(dir, &linked::all()).await?.end().await;
    std::fs::write(dir.join(CLOCK_FILE), format!("{behind_ms:20}\n")).map_err(context("set the clock"))?;
    let stack = BenchStack::start(dir, &linked::all()).await?;
    stack.apply_facts(vec![("workspace.saved", workspace(COACH))]).await?;
    let endpoint = json!({ "url": "http://127.0.0.1:9/hook", "events": [], "payload_mode": "identifiers" });
    let made = stack.call(ApiCall::post("/settings/webhooks", endpoint).bearer(stack.session(COACH)?)).await?;
    let automation = json!({
        "automation_id": "quiet", "coach_id": COACH, "name": "Quiet", "active": true,
        "trigger": { "event": "daily_log_inactivity", "days": 3 },
        "steps": [{ "kind": "webhook", "endpoint_id": text(&made, "id")? }],
    });
    stack.apply_facts(vec![("automation.saved", automation)]).await?;
    // Without an endpoint, events are emitted but not delivered: deliveries are measured separately.
    let deletion = ApiCall::new(Method::DELETE, format!("/settings/webhooks/{}", text(&made, "id")?));
    stack.call(deletion.bearer(stack.session(COACH)?)).await?;
    stack.apply_facts(vec![("client.saved", client(COACH, MODEL, stack.now() - TimeDelta::days(30)))]).await?;
    let log = json!({ "client_id": MODEL, "date": stack.now().date_naive() });
    stack.apply_facts(vec![("daily_log.saved", log)]).await?;
    stack.advance(PERIOD * 2).await?;
    let pk = format!("CLIENT#{MODEL}");
    let (mut clients, mut doses) = (stack.partition("clients", &pk).await?, stack.partition("records", &pk).await?);
    doses.retain(|item| item["sk"]["S"].as_str().is_some_and(|sk| sk.starts_with("DOSES")));
    let client = clients.pop().ok_or_else(|| BenchError::new("the model was not stored"))?;
    stack.end().await;
    Ok(ModelItems { client, doses })
}

async fn sweeps(
    progress: &mut Progress,
    rosters: &[usize],
    stack: &BenchStack,
    fleet: &Fleet,
    items: &ModelItems,
) -> Result<Vec<SweepFigures>, BenchError> {
    // Handles everything that became due between the two stacks.
    stack.settle().await?;
    stack.advance(PERIOD * 2).await?;
    let (mut figures, mut stored) = (Vec::new(), 0);
    for &roster in rosters {
        progress.show(figures.len() as u64, &format!("{roster} clients"));
        store_idle_clients(stack, items, stored..roster).await?;
        stored = roster;
        let (idle_cpu, idle_cost) = sweep(stack, fleet).await?;
        store_due_clients(stack, items, roster).await?;
        let (cpu, cost) = sweep(stack, fleet).await?;
        let peak_memory_bytes = fleet.usage("sweep").await.peak_memory_bytes;
        figures.push(SweepFigures { roster, due: DUE, cpu, cost, idle_cpu, idle_cost, peak_memory_bytes });
    }
    Ok(figures)
}

/// Runs one sweep by advancing the clock one period, and measures it.
async fn sweep(stack: &BenchStack, fleet: &Fleet) -> Result<(Duration, Cost), BenchError> {
    let (before, calls) = (fleet.usage("sweep").await.cpu, stack.totals("sweep"));
    stack.advance(PERIOD).await?;
    let cost = Cost::between(calls, stack.totals("sweep"), 1);
    Ok((fleet.usage("sweep").await.cpu.saturating_sub(before), cost))
}

/// Stores clients who are not due for years. They have only the item that is in the due index, since a sweep reads no
/// other.
async fn store_idle_clients(
    stack: &BenchStack,
    items: &ModelItems,
    numbers: std::ops::Range<usize>,
) -> Result<(), BenchError> {
    let due_at = (stack.now() + TimeDelta::days(1_000)).timestamp_millis().to_string();
    let numbers: Vec<usize> = numbers.collect();
    for numbers in numbers.chunks(1_000) {
        let ids: Vec<String> = numbers.iter().map(|number| format!("calm{number:07}")).collect();
        let copies: Vec<Value> = ids.iter().flat_map(|id| watch_copies(items, id, Some(&due_at))).collect();
        stack.put_items("records", &copies).await?;
    }
    Ok(())
}

/// Stores clients with an inactivity of three days that has not been evaluated yet.
async fn store_due_clients(stack: &BenchStack, items: &ModelItems, roster: usize) -> Result<(), BenchError> {
    let ids: Vec<String> = (0..DUE).map(|number| format!("due{roster}-{number:03}")).collect();
    let clients: Vec<Value> = ids.iter().map(|id| copy_for(&items.client, id)).collect();
    stack.put_items("clients", &clients).await?;
    let records: Vec<Value> = ids
        .iter()
        .flat_map(|id| {
            let doses = items.doses.iter().filter(|item| !is_watch(item)).map(|item| copy_for(item, id));
            doses.chain(watch_copies(items, id, None)).collect::<Vec<_>>()
        })
        .collect();
    stack.put_items("records", &records).await
}

fn is_watch(item: &Value) -> bool {
    item["sk"]["S"] == "DOSES_WATCH"
}

fn watch_copies<'a>(items: &'a ModelItems, id: &'a str, due_at: Option<&'a str>) -> impl Iterator<Item = Value> + 'a {
    items.doses.iter().filter(|item| is_watch(item)).map(move |item| {
        let mut watch = copy_for(item, id);
        let shard = format!("CLIENT#{id}").bytes().map(u32::from).sum::<u32>() % SHARDS;
        watch["sweep_shard"] = json!({ "S": shard.to_string() });
        if let Some(due_at) = due_at {
            watch["sweep_due_at"] = json!({ "N": due_at });
        }
        watch
    })
}

/// Copies an item of the model client to another client.
fn copy_for(item: &Value, id: &str) -> Value {
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
