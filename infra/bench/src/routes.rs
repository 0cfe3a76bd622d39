//! What a request of each kind costs its function: calls, capacity units, CPU time, instructions.

use std::path::Path;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use serde_json::json;

use crate::error::BenchError;
use crate::fleet::Fleet;
use crate::process::{Mode, instructions};
use crate::seed::{CALENDAR, CLIENT, LEAD, OPPORTUNITY, Seeded};
use crate::stand::{Call, Cost, Stand, Variables};

/// Requests before those that are measured.
const WARM_UP: usize = 20;
/// Requests below callgrind, and those before them.
const COUNTED: usize = 10;
const COUNTED_WARM_UP: usize = 3;

/// A kind of request.
pub(crate) struct Route {
    pub(crate) name: &'static str,
    pub(crate) function: &'static str,
    /// How many are measured. Some leave things behind.
    repeats: usize,
    call: fn(usize, &Seeded) -> Call,
}

/// What it costs.
pub(crate) struct Figures {
    pub(crate) cost: Cost,
    pub(crate) cpu: Duration,
    /// None where there is no valgrind.
    pub(crate) instructions: Option<u64>,
}

const fn route(name: &'static str, function: &'static str, repeats: usize, call: fn(usize, &Seeded) -> Call) -> Route {
    Route { name, function, repeats, call }
}

/// One of each kind.
pub(crate) const ROUTES: [Route; 21] = [
    route("GET /v1/ping", "ping", 300, |n, by| Call::get("/v1/ping").by(by.partner(n))),
    route("GET /v1/clients", "clients", 300, |n, by| Call::get("/v1/clients?limit=50").by(by.partner(n))),
    route("GET /v1/clients?email=", "clients", 300, |n, by| {
        Call::get(format!("/v1/clients?email={CLIENT}@bench.example")).by(by.partner(n))
    }),
    route("GET /v1/clients/{clientId}", "clients", 300, |n, by| {
        Call::get(format!("/v1/clients/{CLIENT}")).by(by.partner(n))
    }),
    route("GET .../compliance", "client-records", 300, |n, by| {
        Call::get(format!("/v1/clients/{CLIENT}/compliance")).by(by.partner(n))
    }),
    route("GET .../check-ins", "client-records", 300, |n, by| {
        Call::get(format!("/v1/clients/{CLIENT}/check-ins")).by(by.partner(n))
    }),
    route("GET .../daily-logs", "client-records", 300, |n, by| {
        Call::get(format!("/v1/clients/{CLIENT}/daily-logs")).by(by.partner(n))
    }),
    route("PATCH /v1/clients/{clientId}", "clients", 200, |n, by| {
        Call::patch(format!("/v1/clients/{CLIENT}"), json!({ "is_active": n % 2 == 1 })).by(by.partner(n))
    }),
    route("POST /v1/clients", "clients", 60, |n, by| {
        let body =
            json!({ "full_name": "New Client", "email": format!("new{n}@bench.example"), "send_welcome": false });
        Call::post("/v1/clients", body).by(by.partner(n))
    }),
    route("POST .../login-link", "login-links", 200, |n, by| {
        Call::post(format!("/v1/clients/{CLIENT}/login-link"), json!({})).by(by.partner(n))
    }),
    route("GET /v1/crm/contacts", "crm-contacts", 300, |n, by| Call::get("/v1/crm/contacts").by(by.crm(n))),
    route("POST /v1/crm/contacts", "crm-contacts", 200, |n, by| {
        let body = json!({ "name": "New Lead", "email": format!("lead{n}@bench.example") });
        Call::post("/v1/crm/contacts", body).by(by.crm(n)).once(format!("contact-{n}"))
    }),
    route("GET /v1/crm/opportunities", "crm-opportunities", 300, |n, by| {
        Call::get("/v1/crm/opportunities").by(by.crm(n))
    }),
    route("PATCH /v1/crm/opportunities/{id}", "crm-opportunities", 200, |n, by| {
        let stage = if n.is_multiple_of(2) { "qualified" } else { "new" };
        let path = format!("/v1/crm/opportunities/{OPPORTUNITY}");
        Call::patch(path, json!({ "stage": stage })).by(by.crm(n)).once(format!("opportunity-{n}"))
    }),
    route("GET /v1/crm/calendars", "crm-bookings", 300, |n, by| Call::get("/v1/crm/calendars").by(by.crm(n))),
    route("POST /v1/crm/bookings/availability", "crm-bookings", 200, |n, by| {
        let body = json!({ "leadId": LEAD, "calendarId": CALENDAR });
        Call::post("/v1/crm/bookings/availability", body).by(by.crm(n))
    }),
    route("POST /v1/crm/bookings", "crm-bookings", 200, |n, by| {
        let (date, time) = slot(n);
        let body = json!({ "leadId": LEAD, "calendarId": CALENDAR, "date": date, "time": time });
        Call::post("/v1/crm/bookings", body).by(by.crm(n)).once(format!("booking-{n}"))
    }),
    route("GET /v1/crm/workflows", "crm-workflows", 300, |n, by| Call::get("/v1/crm/workflows").by(by.crm(n))),
    // One coach calls the settings: all of these fit into a minute's limit.
    route("GET /settings/keys", "settings", 80, |_, by| Call::get("/settings/keys").by(&by.session)),
    route("GET /settings/webhooks", "settings", 80, |_, by| Call::get("/settings/webhooks").by(&by.session)),
    route("GET /openapi.json", "docs", 100, |_, _| Call::get("/openapi.json")),
];

/// A time for the n-th booking: one an hour, on days of which each has two events at other times.
#[expect(clippy::disallowed_methods, reason = "what can be booked depends on the day")]
fn slot(n: usize) -> (NaiveDate, String) {
    let n = i64::try_from(n).unwrap_or_default();
    let day = (chrono::Utc::now() + TimeDelta::days(2 + n / 8)).date_naive();
    (day, format!("{:02}:30", 2 * (n % 8) + 5))
}

/// Measures one kind of request. `number` tells its first request apart from all others so far.
pub(crate) async fn measure(
    route: &Route,
    stand: &Stand,
    fleet: &Fleet,
    by: &Seeded,
    counts: Option<&Path>,
) -> Result<Figures, BenchError> {
    let mut number = 0;
    let mut send = async |count: usize| {
        for _ in 0..count {
            stand.call((route.call)(number, by)).await?;
            number += 1;
        }
        Ok::<_, BenchError>(())
    };
    send(WARM_UP).await?;
    stand.settle().await?;
    let (before, calls) = (fleet.used(route.function).await.cpu, stand.totals(route.function));
    send(route.repeats).await?;
    let cpu = (fleet.used(route.function).await.cpu - before) / u32::try_from(route.repeats).unwrap_or(1);
    let cost = Cost::between(calls, stand.totals(route.function), route.repeats);
    stand.settle().await?;

    let mut counted = Vec::new();
    if let Some(dir) = counts {
        let file = dir.join(format!("callgrind.out.{}", route.name.replace(['/', ' '], "_")));
        for count in [COUNTED_WARM_UP, COUNTED_WARM_UP + COUNTED] {
            fleet.run_as(Mode::Counted(file.clone()), Variables::new());
            fleet.restart(route.function).await?;
            send(count).await?;
            fleet.end(route.function).await;
            counted.push(instructions(&file)?);
        }
        fleet.run_as(Mode::Plain, Variables::new());
        stand.settle().await?;
    }
    let instructions = match counted[..] {
        [few, many] => Some(many.saturating_sub(few) / COUNTED as u64),
        _ => None,
    };
    Ok(Figures { cost, cpu, instructions })
}
