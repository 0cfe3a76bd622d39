//! Authentication of keys: which requests are admitted, and what a refusal costs.

use std::collections::BTreeMap;

use domain::mode::Mode;
use edge::routes::{Route, served};
use serde_json::{Value, json};

use crate::tidy::template::{functions, route_keys, template};
use crate::world::{Bill, Caller, Fact, World, assert_cost, time};

/// More environments of a function than one sequential caller can start.
const MOST_ENVIRONMENTS: usize = 10;

#[tokio::test]
async fn a_key_is_accepted_in_either_header() {
    let world = World::start().await;
    let made = world.coach("ada").await.new_key(json!({ "name": "Automation", "scope": "partner" })).await;
    let nobody = world.anonymous();
    for caller in [nobody.with_bearer(made.str("key")), nobody.with("x-api-key", made.str("key"))] {
        caller.get("/v1/ping").await.expect(200);
    }
}

/// The operations that an invocation called.
fn operations(invocation: &Value) -> Vec<&str> {
    let calls = invocation["calls"].as_array().unwrap();
    calls.iter().map(|call| call["operation"].as_str().unwrap()).collect()
}

/// The function of each route, by the route's key.
fn functions_by_route() -> BTreeMap<String, String> {
    let of_function = |function: Value| {
        let name = function["Metadata"]["BuildProperties"]["Binary"].as_str().unwrap().to_owned();
        route_keys(&function).into_iter().map(move |key| (key, name.clone()))
    };
    functions(&template()).into_values().flat_map(of_function).collect()
}

#[tokio::test]
async fn a_malformed_key_costs_no_call_and_a_forged_one_its_check_and_no_read() {
    let elsewhere = World::start().await;
    let stranger = elsewhere.coach("ada").await;
    let world = World::start().await;
    let ada = world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    // Known keys do not help a forged one.
    let known = ada.partner_key().await;
    let nobody = world.anonymous();
    let (none, check): (&[&str], &[&str]) = (&[], &["UpdateItem"]);
    let mut refused = vec![(nobody.clone(), none), (nobody.with_bearer("nonsense"), none)];
    for body in [
        json!({ "name": "Elsewhere", "scope": "partner" }),
        json!({ "name": "Elsewhere", "scope": "crm", "permissions": ["contacts.read", "bookings.read"] }),
    ] {
        let made = stranger.new_key(body).await;
        let forged = made.str("key");
        refused.push((nobody.with_bearer(forged), check));
        refused.push((nobody.with_bearer(&forged[..forged.len() - 1]), none));
    }
    let functions = functions_by_route();
    let mut tried = 0;
    for Route { method, path: template, .. } in served(Mode::Live).filter(|route| route.path.starts_with("/v1/")) {
        let path = template.replace("{clientId}", "c1").replace("{id}", "0199de00-0000-7000-8000-000000000001");
        let function = &functions[&format!("{method} {template}")];
        let queries: &[&str] = match *template {
            "/v1/clients" => &["", "?email=ada@example.com", "?active=true"],
            "/v1/clients/{clientId}/daily-logs" => &["", "?from=2026-01-01"],
            _ => &[""],
        };
        for query in queries {
            let call = |caller: &Caller| {
                let call = caller.call(method, &format!("{path}{query}"));
                if *method == "GET" { call } else { call.json(&json!({})).idempotent("forged") }
            };
            let _ = call(&known).await;
            for (caller, calls) in &refused {
                let reply = call(caller).await.refused(401, "unauthorized");
                let invocation = &world.calls(function).await[0];
                assert_eq!(invocation["request_id"], reply.body["request_id"], "{method} {path}");
                assert_eq!(operations(invocation), *calls, "{method} {path}{query}");
                tried += 1;
            }
        }
    }
    assert!(tried > 120, "{tried}");
}

#[tokio::test]
async fn reads_run_beside_the_check_of_previously_admitted_keys_only() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let made = ada.new_key(json!({ "name": "Automation", "scope": "partner" })).await;
    let key = world.anonymous().with_bearer(made.str("key"));
    let path = "/v1/clients/c1";
    key.get(path).await.expect(200);
    assert_eq!(Bill::of(&world.calls("clients").await[0]).in_sequence, 2, "the key is new here");
    assert_cost(&world, "clients", async || drop(key.get(path).await.expect(200)), |bill| bill.calls == 2, 1).await;

    ada.settings().await.delete(&format!("/settings/keys/{}", made.str("id"))).await.expect(200);
    // Each environment that has admitted the key notices once.
    for _ in 0..MOST_ENVIRONMENTS {
        key.get(path).await.refused(401, "unauthorized");
        if operations(&world.calls("clients").await[0]) == ["UpdateItem"] {
            return;
        }
    }
    panic!("a revoked key still reads");
}

#[tokio::test]
async fn an_error_is_a_problem_for_a_caller_that_accepts_problems() {
    let world = World::start().await;
    let accept = "text/html, application/problem+json;q=0.9";
    let reply = world.anonymous().get("/v1/ping").header("accept", accept).await.refused(401, "unauthorized");
    assert_eq!(reply.header("content-type"), Some("application/problem+json; charset=utf-8"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.members(), ["code", "detail", "error", "request_id", "status", "title", "type"]);
    assert_eq!((&reply.body["status"], &reply.body["detail"]), (&json!(401), &reply.body["error"]));
    assert_eq!(reply.header("x-request-id"), Some(reply.str("request_id")));
}

#[tokio::test]
async fn a_key_shows_the_minute_of_its_last_use() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = ada.partner_key().await;
    let settings = ada.settings().await;
    let last_used = async || settings.get("/settings/keys").await.body["keys"][0]["last_used_at"].clone();
    assert_eq!(last_used().await, json!(null));
    world.advance_to_next_minute().await;
    let before = world.now().await;
    key.get("/v1/ping").await.expect(200);
    let used = time(&last_used().await);
    assert_eq!(used.timestamp() % 60, 0);
    assert_eq!(used.timestamp() / 60, before.timestamp() / 60);
}
