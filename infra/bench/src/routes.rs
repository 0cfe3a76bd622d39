//! Requests: a typical read and a typical write of each family of routes.

use chrono::TimeDelta;
use http::Method;
use local_stack::demo::{CALENDAR_ID, CLIENT_ID, LEAD_ID, OPPORTUNITY_ID};
use serde_json::{Value, json};

use crate::bench::{Bench, Done, REPEATS, Work, route};

/// A kind of request: function, method, and the n-th path and body.
type Request = (&'static str, Method, fn(usize, &Bench) -> (String, Value));

/// All measured requests.
pub(crate) const ROUTES: [Request; 26] = [
    ("ping", Method::GET, |_, _| get("/v1/ping")),
    // Before all requests that cause deliveries, which the list of webhooks counts.
    ("settings", Method::GET, |_, _| get("/settings/webhooks")),
    ("settings", Method::PATCH, |n, bench| {
        (format!("/settings/webhooks/{}", bench.demo.endpoint_id), json!({ "description": format!("Receiver {n}") }))
    }),
    ("clients", Method::POST, |n, _| {
        let email = format!("new{n}@bench.example");
        ("/v1/clients".to_owned(), json!({ "full_name": "New Client", "email": email, "send_welcome": false }))
    }),
    ("clients", Method::GET, |_, _| get("/v1/clients?limit=50")),
    ("clients", Method::GET, |_, _| get("/v1/clients?updated_since=2026-01-01T00:00:00Z&limit=50")),
    ("clients", Method::GET, |_, _| get("/v1/clients?external_id=patient-1815")),
    ("clients", Method::GET, |_, _| get(format!("/v1/clients/{CLIENT_ID}"))),
    ("clients", Method::PATCH, |n, _| (format!("/v1/clients/{CLIENT_ID}"), json!({ "is_active": n % 2 == 1 }))),
    ("client-records", Method::GET, |_, _| get(format!("/v1/clients/{CLIENT_ID}/compliance"))),
    ("login-links", Method::POST, |_, _| (format!("/v1/clients/{CLIENT_ID}/login-link"), json!({}))),
    ("crm-contacts", Method::GET, |_, _| get("/v1/crm/contacts")),
    ("crm-contacts", Method::GET, |_, _| get("/v1/crm/contacts?updated_since=2026-01-01T00:00:00Z")),
    ("crm-contacts", Method::GET, |_, _| get(format!("/v1/crm/contacts/{LEAD_ID}"))),
    ("crm-contacts", Method::POST, |n, _| {
        ("/v1/crm/contacts".to_owned(), json!({ "name": "New Lead", "email": format!("lead{n}@bench.example") }))
    }),
    ("crm-opportunities", Method::GET, |_, _| get("/v1/crm/opportunities")),
    ("crm-opportunities", Method::PATCH, |n, _| {
        let stage = if n.is_multiple_of(2) { "proposal" } else { "qualified" };
        (format!("/v1/crm/opportunities/{OPPORTUNITY_ID}"), json!({ "stage": stage }))
    }),
    ("crm-bookings", Method::GET, |_, _| get("/v1/crm/bookings")),
    ("crm-bookings", Method::GET, |_, _| get("/v1/crm/bookings?from=2026-01-01T00:00:00Z&to=2036-01-01T00:00:00Z")),
    ("crm-bookings", Method::POST, |_, _| {
        let body = json!({ "leadId": LEAD_ID, "calendarId": CALENDAR_ID });
        ("/v1/crm/bookings/availability".to_owned(), body)
    }),
    ("crm-bookings", Method::POST, |n, bench| {
        // Eight a day, at hours that every day has.
        let date = (bench.now() + TimeDelta::days(5 + n as i64 / 8)).date_naive();
        let time = format!("{:02}:00", 8 + n % 8);
        let body = json!({ "leadId": LEAD_ID, "calendarId": CALENDAR_ID, "date": date, "time": time });
        ("/v1/crm/bookings".to_owned(), body)
    }),
    ("crm-workflows", Method::GET, |_, _| get("/v1/crm/workflows")),
    ("events", Method::GET, |_, _| get("/v1/events?limit=100&order=desc")),
    ("mcp", Method::POST, |_, _| ("/mcp".to_owned(), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))),
    ("docs", Method::GET, |_, _| get("/openapi.json")),
    ("portal", Method::GET, |_, _| get("/portal")),
];

fn get(path: impl Into<String>) -> (String, Value) {
    (path.into(), Value::Null)
}

/// Measures all requests.
pub(crate) async fn measure(bench: &Bench) -> Done {
    for (function, method, request) in &ROUTES {
        let path = request(0, bench).0;
        let query = path.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
        let name = format!("`{}{query}`", route(method, &path)?);
        let work = Work { name, functions: std::slice::from_ref(function), repeats: REPEATS };
        let run = async |n: usize| {
            let (path, body) = request(n, bench);
            bench.call(method, &path, &body).await.map(drop)
        };
        bench.measure(work, async |_| Ok(()), run).await?;
    }
    Ok(())
}
