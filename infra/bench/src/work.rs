//! Background work: facts, deliveries and sweeps.

use chrono::TimeDelta;
use http::Method;
use local_stack::demo::facts::{CLIENT_ID, Fact, client};
use runtime::BoxError;
use serde_json::{Value, json};

use crate::bench::{Bench, Work};

/// Kinds of work below.
pub(crate) const ROWS: usize = FACTS.len() + RECEIVERS.len() + 2;

const REPEATS: usize = 200;
const SWEEPS: usize = 20;
/// The schedule's period: each has one sweep.
const SWEEP_PERIOD: TimeDelta = TimeDelta::minutes(15);
const CLIENTS: usize = 1_000;
const DUE: usize = 100;
/// Numbers of receivers of an event.
const RECEIVERS: [usize; 2] = [1, 10];

/// A fact's name, and the n-th detail.
type FactKind = (&'static str, fn(usize, &Bench) -> Value);

const FACTS: [FactKind; 5] = [
    ("dose.logged", |n, bench| dose(CLIENT_ID, n, bench)),
    ("daily_log.saved", |n, bench| json!({ "client_id": CLIENT_ID, "date": date(n, bench) })),
    ("check_in.submitted", |n, bench| {
        let id = format!("check-in-{n}");
        json!({ "client_id": CLIENT_ID, "check_in_id": id, "submitted_at": bench.now(), "scores": {}, "grades": {} })
    }),
    ("message.received", message),
    ("client.saved", |n, bench| {
        let (_, mut detail) = client(bench.now());
        detail["goals"] = json!(format!("Goal {n}"));
        detail
    }),
];

/// Measures `ingest` by kinds of facts about a known client.
pub(crate) async fn measure_facts(bench: &Bench) -> Result<(), BoxError> {
    for (name, detail) in FACTS {
        let work = Work { name: format!("Fact `{name}`"), functions: &["ingest"], repeats: REPEATS };
        let run = async |n: usize| bench.put_facts(vec![bench.fact(name, detail(n, bench))]).await;
        bench.measure(work, run).await?;
    }
    Ok(())
}

/// Measures an event from the outbox to the success that is recorded for each receiver.
pub(crate) async fn measure_deliveries(bench: &Bench) -> Result<(), BoxError> {
    // The demo has one endpoint.
    let mut endpoints = 1;
    for receivers in RECEIVERS {
        while endpoints < receivers {
            let url = format!("{}/_local/receiver/hooks/bench{endpoints}", bench.base_url());
            let body = json!({ "url": url, "events": ["message_received"], "payload_mode": "contact_details" });
            bench.settings(&Method::POST, "/settings/webhooks", &body).await?;
            endpoints += 1;
        }
        let name = format!("Event for {receivers} receiver{}", if receivers == 1 { "" } else { "s" });
        let work = Work { name, functions: &["relay", "deliver"], repeats: REPEATS };
        let run = async |n: usize| {
            let before = delivered(bench).await?;
            bench.put_facts(vec![bench.fact("message.received", message(n + 1_000 * receivers, bench))]).await?;
            let new = delivered(bench).await? - before;
            if new == receivers as u64 { Ok(()) } else { Err(format!("{new} of {receivers} were delivered").into()) }
        };
        bench.measure(work, run).await?;
    }
    Ok(())
}

/// Returns the number of deliveries with a recorded success.
async fn delivered(bench: &Bench) -> Result<u64, BoxError> {
    let webhooks = bench.settings(&Method::GET, "/settings/webhooks", &Value::Null).await?;
    let endpoints = webhooks["endpoints"].as_array().ok_or("the settings list no webhooks")?;
    Ok(endpoints.iter().filter_map(|endpoint| endpoint["last_24h"]["delivered"].as_u64()).sum())
}

/// Measures passes of the sweep over many clients.
pub(crate) async fn measure_sweeps(bench: &Bench) -> Result<(), BoxError> {
    let clients = (0..CLIENTS).map(|number| {
        let (name, mut detail) = client(bench.now());
        detail["client_id"] = json!(sweep_client(number));
        detail["email"] = json!(format!("{}@bench.example", sweep_client(number)));
        bench.fact(name, detail)
    });
    bench.put_facts(clients.collect()).await?;
    // The first evaluation of a client finds out when the client is due next.
    bench.advance(SWEEP_PERIOD * 2).await?;

    let sweep = async |_| bench.advance(SWEEP_PERIOD).await;
    let work = |due: &str| {
        let name = format!("Sweep, {CLIENTS} clients, {due} due");
        Work { name, functions: &["sweep"], repeats: SWEEPS }
    };
    bench.measure(work("nobody"), sweep).await?;
    let make_due = async |n: usize| {
        let logged = |number| bench.fact("dose.logged", dose(&sweep_client(number), n, bench));
        bench.put_facts((0..DUE).map(logged).collect::<Vec<Fact>>()).await
    };
    bench.measure_prepared(work(&DUE.to_string()), make_due, sweep).await
}

fn sweep_client(number: usize) -> String {
    format!("client_sweep_{number}")
}

fn dose(client: &str, n: usize, bench: &Bench) -> Value {
    let id = format!("{client}-dose-{n}");
    json!({ "client_id": client, "dose_log_id": id, "dose_id": "dose_magnesium", "date": date(n, bench) })
}

fn message(n: usize, bench: &Bench) -> Value {
    json!({ "client_id": CLIENT_ID, "message_id": format!("message-{n}"), "received_at": bench.now() })
}

/// Returns the date of the n-th log, before the history of the demo's client.
fn date(n: usize, bench: &Bench) -> chrono::NaiveDate {
    (bench.now() - TimeDelta::days(20 + n as i64)).date_naive()
}
