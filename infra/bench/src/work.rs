//! Background work: facts, deliveries and sweeps.

use chrono::{NaiveDate, TimeDelta};
use http::Method;
use local_stack::demo::CLIENT_ID;
use local_stack::demo::facts::Fact;
use runtime::BoxError;
use serde_json::{Value, json};

use crate::bench::{Bench, Done, REPEATS, Work};

/// Kinds of work below.
pub(crate) const ROWS: usize = FACTS.len() + RECEIVERS.len() + 2;

/// The schedule's period: each has one sweep.
const SWEEP_PERIOD: TimeDelta = TimeDelta::minutes(15);
const CLIENTS: usize = 1_000;
/// Numbers of receivers of an event.
const RECEIVERS: [usize; 2] = [1, 10];

/// The n-th fact about a client.
const FACTS: [fn(&str, usize, &Bench) -> Fact; 5] = [
    dose,
    |id, n, bench| ("daily_log.saved".to_owned(), json!({ "client_id": id, "date": date(n, bench) })),
    |id, n, bench| {
        let (check_in, at) = (format!("check-in-{n}"), bench.now());
        let detail =
            json!({ "client_id": id, "check_in_id": check_in, "submitted_at": at, "scores": {}, "grades": {} });
        ("check_in.submitted".to_owned(), detail)
    },
    message,
    saved,
];

fn saved(id: &str, n: usize, bench: &Bench) -> Fact {
    let (name, mut detail) = bench.demo_fact("records", |detail| detail["client_id"] == CLIENT_ID);
    detail["client_id"] = json!(id);
    detail["email"] = json!(format!("{id}@bench.example"));
    detail["goals"] = json!(format!("Goal {n}"));
    (name, detail)
}

fn dose(client: &str, n: usize, bench: &Bench) -> Fact {
    let (id, date) = (format!("{client}-dose-{n}"), date(n, bench));
    (
        "dose.logged".to_owned(),
        json!({ "client_id": client, "dose_log_id": id, "dose_id": "dose_magnesium", "date": date }),
    )
}

fn message(client: &str, n: usize, bench: &Bench) -> Fact {
    let (id, at) = (format!("message-{n}"), bench.now());
    ("message.received".to_owned(), json!({ "client_id": client, "message_id": id, "received_at": at }))
}

/// Returns the date of the n-th log, before the history of the demo's client.
fn date(n: usize, bench: &Bench) -> NaiveDate {
    (bench.now() - TimeDelta::days(20 + n as i64)).date_naive()
}

/// Measures `ingest` by kinds of facts about a known client.
pub(crate) async fn measure_facts(bench: &Bench) -> Done {
    for fact in FACTS {
        let (name, _) = fact(CLIENT_ID, 0, bench);
        let work = Work { name: format!("Fact `{name}`"), functions: &["ingest"], repeats: REPEATS };
        bench.measure(work, async |_| Ok(()), async |n| bench.put_facts([fact(CLIENT_ID, n, bench)]).await).await?;
    }
    Ok(())
}

/// Measures an event from the outbox to the success that is recorded for each receiver.
pub(crate) async fn measure_deliveries(bench: &Bench) -> Done {
    for receivers in RECEIVERS {
        // The demo has one endpoint.
        for number in delivered(bench).await?.0..receivers {
            let url = format!("{}/_local/receiver/hooks/bench{number}", bench.running.stack.base_url);
            let body = json!({ "url": url, "events": ["message_received"], "payload_mode": "contact_details" });
            bench.call(&Method::POST, "/settings/webhooks", &body).await?;
        }
        let name = format!("Event, receivers: {receivers}");
        let work = Work { name, functions: &["relay", "deliver"], repeats: REPEATS };
        let run = async |n: usize| {
            let before = delivered(bench).await?.1;
            bench.put_facts([message(CLIENT_ID, 1_000 * receivers + n, bench)]).await?;
            let new = delivered(bench).await?.1 - before;
            if new == receivers as u64 { Ok(()) } else { Err(format!("{new} of {receivers} were delivered").into()) }
        };
        bench.measure(work, async |_| Ok(()), run).await?;
    }
    Ok(())
}

/// Returns the number of endpoints, and of their deliveries with a recorded success.
async fn delivered(bench: &Bench) -> Result<(usize, u64), BoxError> {
    let webhooks = bench.call(&Method::GET, "/settings/webhooks", &Value::Null).await?;
    let endpoints = webhooks["endpoints"].as_array().ok_or("the settings list no endpoints")?;
    let delivered = endpoints.iter().filter_map(|endpoint| endpoint["last_24h"]["delivered"].as_u64());
    Ok((endpoints.len(), delivered.sum()))
}

/// Measures passes of the sweep over many clients.
pub(crate) async fn measure_sweeps(bench: &Bench) -> Done {
    let id = |number: usize| format!("client_sweep_{number}");
    bench.put_facts((0..CLIENTS).map(|number| saved(&id(number), 0, bench))).await?;
    // The first evaluation of a client finds out when the client is due next.
    bench.advance(SWEEP_PERIOD * 2).await?;
    for due in [0, 100] {
        let work = Work { name: format!("Sweep, {CLIENTS} clients, {due} due"), functions: &["sweep"], repeats: 20 };
        let make_due = async |n: usize| bench.put_facts((0..due).map(|number| dose(&id(number), n, bench))).await;
        bench.measure(work, make_due, async |_| bench.advance(SWEEP_PERIOD).await).await?;
    }
    Ok(())
}
