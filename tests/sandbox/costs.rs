//! Costs of the routes of a sandbox, which infra/guides/capacity.md states.

use domain::mode::Mode;
use serde_json::{Value, json};

use super::start;
use crate::world::{Bill, Fact, assert_cost};

/// Method, path, body, calls, calls in sequence, write units, most read units.
type Cost = (&'static str, &'static str, Value, usize, usize, f64, f64);

#[tokio::test]
async fn each_route_costs_a_few_calls() {
    let world = start(Mode::Test).await;
    let key = world.coach("ada").await.partner_key().await;
    world.apply([Fact::client("ada", "c1")]).await;
    key.post("/v1/test/evaluate", json!({})).await.expect(200);
    let fact = json!({ "facts": [{ "type": "client.erased", "detail": { "client_id": "nobody", "id": 7 } }] });
    let costs: [Cost; 6] = [
        // A refused fact costs nothing beyond the request.
        ("POST", "/v1/test/facts", fact, 3, 3, 3.0, 0.0),
        ("PATCH", "/v1/test/workspace", json!({ "client_cap": 7 }), 12, 11, 5.0, 8.0),
        ("POST", "/v1/test/evaluate", json!({}), 6, 6, 2.0, 3.5),
        ("POST", "/v1/test/events", json!({ "type": "new_client" }), 5, 5, 6.0, 1.0),
        ("GET", "/v1/test/mail", Value::Null, 2, 2, 1.0, 1.0),
        ("GET", "/v1/test/data", Value::Null, 3, 3, 2.0, 1.0),
    ];
    for (method, path, body, calls, in_sequence, written, read) in costs {
        let request = async || {
            let call = key.call(method, path);
            let _ = if body.is_null() { call.await } else { call.json(&body).await };
        };
        let affordable = |bill: &Bill| {
            let fits = bill.calls == calls && bill.write_units == written && bill.read_units == read;
            assert!(fits, "{method} {path}: {bill:?}");
            fits
        };
        assert_cost(&world, "sandbox", request, affordable, in_sequence).await;
    }
}
