//! Measures the cost of each kind of request: calls, capacity units, CPU time, instructions.

use std::path::Path;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use serde_json::json;

use crate::error::BenchError;
use crate::fleet::Fleet;
use crate::process::{Mode, instructions};
use crate::seed::{CALENDAR, CLIENT, Credentials, LEAD, OPPORTUNITY};
use crate::stack::{ApiCall, BenchStack, Cost, Variables};

/// Unmeasured requests before the measurement.
const WARM_UP: usize = 20;
/// Measured requests under callgrind.
const COUNTED: usize = 10;
/// Unmeasured requests under callgrind before them.
const COUNTED_WARM_UP: usize = 3;

/// A kind of request.
pub(crate) struct Route {
    pub(crate) name: &'static str,
    pub(crate) function: &'static str,
    /// Number of measured requests, fewer for those that create records.
    repeats: usize,
    call: fn(usize, &Credentials) -> ApiCall,
}

/// The measured cost of a route.
pub(crate) struct RouteFigures {
    pub(crate) cost: Cost,
    pub(crate) cpu: Duration,
    /// `None` without valgrind.
    pub(crate) instructions: Option<u64>,
}

const fn route(
    name: &'static str,
    function: &'static str,
    repeats: usize,
    call: fn(usize, &Credentials) -> ApiCall,
) -> Route {
    Route { name, function, repeats, call }
}

/// One route of each kind.
pub(crate) const ROUTES: [Route; 22] = [
    route("GET /v1/ping", "ping", 300, |n, auth| ApiCall::get("/v1/ping").bearer(auth.partner(n))),
    route("GET /v1/clients", "clients", 300, |n, auth| ApiCall::get("/v1/clients?limit=50").bearer(auth.partner(n))),
    route("GET /v1/clients?email=", "clients", 300, |n, auth| {
        ApiCall::get(format!("/v1/clients?email={CLIENT}@bench.example")).bearer(auth.partner(n))
    }),
    route("GET /v1/clients/{clientId}", "clients", 300, |n, auth| {
        ApiCall::get(format!("/v1/clients/{CLIENT}")).bearer(auth.partner(n))
    }),
    route("GET /v1/clients/{clientId}/compliance", "client-records", 300, |n, auth| {
        ApiCall::get(format!("/v1/clients/{CLIENT}/compliance")).bearer(auth.partner(n))
    }),
    route("GET /v1/clients/{clientId}/check-ins", "client-records", 300, |n, auth| {
        ApiCall::get(format!("/v1/clients/{CLIENT}/check-ins")).bearer(auth.partner(n))
    }),
    route("GET /v1/clients/{clientId}/daily-logs", "client-records", 300, |n, auth| {
        ApiCall::get(format!("/v1/clients/{CLIENT}/daily-logs")).bearer(auth.partner(n))
    }),
    route("PATCH /v1/clients/{clientId}", "clients", 200, |n, auth| {
        ApiCall::patch(format!("/v1/clients/{CLIENT}"), json!({ "is_active": n % 2 == 1 })).bearer(auth.partner(n))
    }),
    route("POST /v1/clients", "clients", 60, |n, auth| {
        let body =
            json!({ "full_name": "New Client", "email": format!("new{n}@bench.example"), "send_welcome": false });
        ApiCall::post("/v1/clients", body).bearer(auth.partner(n))
    }),
    route("POST /v1/clients/{clientId}/login-link", "login-links", 200, |n, auth| {
        ApiCall::post(format!("/v1/clients/{CLIENT}/login-link"), json!({})).bearer(auth.partner(n))
    }),
    route("GET /v1/crm/contacts", "crm-contacts", 300, |n, auth| ApiCall::get("/v1/crm/contacts").bearer(auth.crm(n))),
    route("POST /v1/crm/contacts", "crm-contacts", 200, |n, auth| {
        let body = json!({ "name": "New Lead", "email": format!("lead{n}@bench.example") });
        ApiCall::post("/v1/crm/contacts", body).bearer(auth.crm(n)).idempotency_key(format!("contact-{n}"))
    }),
    route("GET /v1/crm/opportunities", "crm-opportunities", 300, |n, auth| {
        ApiCall::get("/v1/crm/opportunities").bearer(auth.crm(n))
    }),
    route("PATCH /v1/crm/opportunities/{id}", "crm-opportunities", 200, |n, auth| {
        let stage = if n.is_multiple_of(2) { "qualified" } else { "new" };
        let path = format!("/v1/crm/opportunities/{OPPORTUNITY}");
        ApiCall::patch(path, json!({ "stage": stage })).bearer(auth.crm(n)).idempotency_key(format!("opportunity-{n}"))
    }),
    route("GET /v1/crm/calendars", "crm-bookings", 300, |n, auth| {
        ApiCall::get("/v1/crm/calendars").bearer(auth.crm(n))
    }),
    route("GET /v1/crm/bookings", "crm-bookings", 300, |n, auth| ApiCall::get("/v1/crm/bookings").bearer(auth.crm(n))),
    route("POST /v1/crm/bookings/availability", "crm-bookings", 200, |n, auth| {
        let body = json!({ "leadId": LEAD, "calendarId": CALENDAR });
        ApiCall::post("/v1/crm/bookings/availability", body).bearer(auth.crm(n))
    }),
    route("POST /v1/crm/bookings", "crm-bookings", 200, |n, auth| {
        let (date, time) = slot(n);
        let body = json!({ "leadId": LEAD, "calendarId": CALENDAR, "date": date, "time": time });
        ApiCall::post("/v1/crm/bookings", body).bearer(auth.crm(n)).idempotency_key(format!("booking-{n}"))
    }),
    route("GET /v1/crm/workflows", "crm-workflows", 300, |n, auth| {
        ApiCall::get("/v1/crm/workflows").bearer(auth.crm(n))
    }),
    // One coach makes these requests, so their number stays below the limit for a minute.
    route("GET /settings/keys", "settings", 80, |_, auth| ApiCall::get("/settings/keys").bearer(&auth.session)),
    route("GET /settings/webhooks", "settings", 80, |_, auth| ApiCall::get("/settings/webhooks").bearer(&auth.session)),
    route("GET /openapi.json", "docs", 100, |_, _| ApiCall::get("/openapi.json")),
];

/// Returns the date and time of the n-th booking: eight a day, at times without one of the day's two events.
#[expect(clippy::disallowed_methods, reason = "what can be booked depends on the day")]
fn slot(n: usize) -> (NaiveDate, String) {
    let n = i64::try_from(n).unwrap_or_default();
    let day = (chrono::Utc::now() + TimeDelta::days(2 + n / 8)).date_naive();
    (day, format!("{:02}:30", 2 * (n % 8) + 5))
}

/// Measures one route.
pub(crate) async fn measure(
    route: &Route,
    stack: &BenchStack,
    fleet: &Fleet,
    auth: &Credentials,
    counts: Option<&Path>,
) -> Result<RouteFigures, BenchError> {
    let mut number = 0;
    let mut send = async |count: usize| {
        for _ in 0..count {
            stack.call((route.call)(number, auth)).await?;
            number += 1;
        }
        Ok::<_, BenchError>(())
    };
    send(WARM_UP).await?;
    stack.settle().await?;
    let (before, calls) = (fleet.usage(route.function).await.cpu, stack.totals(route.function));
    send(route.repeats).await?;
    let cpu = (fleet.usage(route.function).await.cpu - before) / u32::try_from(route.repeats).unwrap_or(1);
    let cost = Cost::between(calls, stack.totals(route.function), route.repeats);
    stack.settle().await?;

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
        stack.settle().await?;
    }
    let instructions = match counted[..] {
        [few, many] => Some(many.saturating_sub(few) / COUNTED as u64),
        _ => None,
    };
    Ok(RouteFigures { cost, cpu, instructions })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use edge::routes::Access;

    use super::*;

    #[test]
    fn every_read_of_the_api_is_measured_and_every_measured_route_exists() {
        let name = |route: &edge::routes::Route| format!("{} {}", route.method, route.path);
        let measured: BTreeSet<&str> =
            ROUTES.iter().map(|route| route.name.split('?').next().unwrap_or_default()).collect();
        let known: BTreeSet<String> = edge::routes::ROUTES.iter().map(name).collect();
        assert!(measured.iter().all(|name| known.contains(*name)), "{measured:?}");
        for route in edge::routes::ROUTES {
            let is_read = route.method == "GET" && matches!(route.access, Access::Partner | Access::Crm(_));
            let is_measured = measured.contains(name(route).as_str());
            assert!(!is_read || is_measured, "add {} to ROUTES in infra/bench/src/routes.rs", name(route));
        }
    }
}
