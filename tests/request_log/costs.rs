//! Costs: a kept request takes one call more, after all others, and one write unit.

use serde_json::{Value, json};

use super::key;
use crate::world::{Bill, Fact, World, list};

/// The calls of the latest request to a function, each with its operation, tables and units.
async fn calls(world: &World, function: &str) -> Vec<Value> {
    list(world.calls(function).await[0]["calls"].clone())
}

fn keeps(call: &Value) -> bool {
    let is_of_log = |table: &Value| table.as_str().unwrap().ends_with("-requests");
    call["operation"] == "PutItem" && call["tables"].as_array().unwrap().iter().any(is_of_log)
}

#[tokio::test]
async fn a_record_costs_one_call_at_the_end_and_one_write_unit() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, id) = key(&ada, "partner").await;
    // Everything as long as it can be: the record is still less than a kilobyte.
    let client = "c".repeat(128);
    let query = "?limit=1&from=2026-11-20&to=2026-11-21";
    let largest = partner
        .get(&format!("/v1/clients/{client}/daily-logs{query}"))
        .header("user-agent", &"a".repeat(500))
        .header("x-mcp-tool", "list_opportunities")
        .header("x-mcp-client", &"b".repeat(100))
        .idempotent(&"k".repeat(255));
    for (function, call) in [
        ("client-records", largest),
        ("clients", partner.get("/v1/clients/nobody")),
        ("clients", partner.post("/v1/clients", json!({ "email": "grace@example.com", "full_name": "Grace" }))),
        ("login-links", partner.call("POST", "/v1/clients/nobody/login-link")),
        ("crm-contacts", partner.get("/v1/crm/contacts")),
        ("events", partner.get("/v1/events")),
    ] {
        call.await;
        let mut made = calls(&world, function).await;
        made.sort_by_key(|call| call["started_us"].as_u64());
        let last = made.pop().unwrap();
        assert!(keeps(&last) && last["write_units"] == 1.0, "{function}: {last}");
        assert!(made.iter().all(|call| !keeps(call) && call["ended_us"].as_u64() <= last["started_us"].as_u64()));
    }
    ada.settings().await.delete(&format!("/settings/keys/{id}")).await.expect(200);
    partner.get("/v1/ping").await.refused(401, "unauthorized");
    let bill = Bill::of(&world.calls("ping").await[0]);
    assert_eq!((bill.calls, bill.read_units), (2, 0.0), "the refused check shows whose key it was");
    partner.get("/v1/ping").await.refused(401, "unauthorized");
    assert_eq!(Bill::of(&world.calls("ping").await[0]).calls, 1);
}

#[tokio::test]
async fn a_read_that_succeeds_costs_nothing_more() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let ((partner, _), (crm, _)) = (key(&ada, "partner").await, key(&ada, "crm").await);
    world.apply([Fact::pipeline("ada")]).await;
    for (caller, function, path, number) in [
        (&partner, "ping", "/v1/ping", 2),
        (&partner, "ping", "/v1/key", 2),
        (&partner, "ping", "/v1/requests", 2),
        (&partner, "clients", "/v1/clients", 2),
        (&crm, "crm-contacts", "/v1/crm/contacts", 2),
        (&crm, "crm-bookings", "/v1/crm/bookings", 3),
    ] {
        caller.get(path).await.expect(200);
        let made = calls(&world, function).await;
        assert!(made.len() == number && !made.iter().any(keeps), "{path}: {made:?}");
    }
}
