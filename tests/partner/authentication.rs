//! Authentication of keys: which requests are admitted, and the order of refusals.

use std::collections::BTreeMap;
use std::future::IntoFuture;

use edge::routes::{ROUTES, Route};
use serde_json::{Value, json};

use crate::tidy::template::{functions, route_keys, template};
use crate::world::{Bill, Caller, Fact, World, assert_cost, time};

/// More environments of a function than one sequential caller can start.
const MOST_ENVIRONMENTS: usize = 10;

fn with_both(world: &World, bearer: &str, header: &str) -> Caller {
    world.anonymous().with_bearer(bearer).with("x-api-key", header)
}

#[tokio::test]
async fn a_key_is_accepted_in_either_header_and_identically_in_both() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let made = ada.new_key(json!({ "name": "Automation", "scope": "partner" })).await;
    let key = made.str("key");
    assert!(key.starts_with("svc_live_") && key.len() == "svc_live_".len() + 38, "the form of a key");
    for caller in [world.anonymous().with_bearer(key), with_both(&world, key, key)] {
        caller.get("/v1/ping").await.expect(200);
    }
    let other = ada.new_key(json!({ "name": "Other", "scope": "partner" })).await;
    with_both(&world, key, other.str("key")).get("/v1/ping").await.refused(401, "unauthorized");
    world.anonymous().with("authorization", "").with("x-api-key", key).get("/v1/ping").await.expect(200);
}

#[tokio::test]
async fn a_malformed_key_is_refused_without_a_call_to_the_store() {
    let world = World::start().await;
    let made = world.coach("ada").await.new_key(json!({ "name": "Automation", "scope": "partner" })).await;
    let key = made.str("key");
    let last = if key.ends_with('A') { "B" } else { "A" };
    for malformed in [
        format!("{key}x"),
        format!("{key},{key}"),
        key[..key.len() - 1].to_owned(),
        format!("{}{last}", &key[..key.len() - 1]),
        key.to_uppercase(),
        key.replace("svc_live_", "crm_live_"),
        "svc_live_".to_owned(),
        "nonsense".to_owned(),
    ] {
        let reply = world.anonymous().with_bearer(&malformed).get("/v1/ping").await.refused(401, "unauthorized");
        assert!(reply.header("www-authenticate").is_some());
        let latest = &world.calls("ping").await[0];
        assert_eq!(latest["request_id"], reply.body["request_id"]);
        assert_eq!(latest["calls"], json!([]), "{malformed}");
    }
    for (path, function) in [
        ("/v1/clients", "clients"),
        ("/v1/clients?email=grace@example.com", "clients"),
        ("/v1/clients/c1", "clients"),
        ("/v1/clients/c1/compliance", "client-records"),
        ("/v1/clients/c1/check-ins", "client-records"),
        ("/v1/clients/c1/daily-logs", "client-records"),
        ("/v1/crm/contacts", "crm-contacts"),
        ("/v1/crm/opportunities", "crm-opportunities"),
        ("/v1/crm/bookings", "crm-bookings"),
        ("/v1/crm/workflows", "crm-workflows"),
    ] {
        world.anonymous().get(path).await.refused(401, "unauthorized");
        world.anonymous().with_bearer("nonsense").get(path).await.refused(401, "unauthorized");
        assert!(world.calls(function).await[..2].iter().all(|call| call["calls"] == json!([])), "{path}");
    }
    for caller in [world.anonymous(), world.anonymous().with_bearer("nonsense")] {
        caller.post("/v1/clients/c1/login-link", json!({})).await.refused(401, "unauthorized");
        assert_eq!(world.calls("login-links").await[0]["calls"], json!([]));
        caller.patch("/v1/clients/c1", json!({ "is_active": true })).await.refused(401, "unauthorized");
        assert_eq!(world.calls("clients").await[0]["calls"], json!([]));
    }
}

#[tokio::test]
async fn a_well_formed_unknown_key_is_refused() {
    let elsewhere = World::start().await;
    let key = elsewhere.coach("ada").await.new_key(json!({ "name": "Elsewhere", "scope": "partner" })).await;
    let world = World::start().await;
    world.coach("ada").await;
    world.anonymous().with_bearer(key.str("key")).get("/v1/ping").await.refused(401, "unauthorized");
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
async fn a_forged_key_with_a_valid_checksum_costs_its_check_and_no_read() {
    let elsewhere = World::start().await;
    let stranger = elsewhere.coach("ada").await;
    let world = World::start().await;
    let ada = world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    // Known keys do not help a forged one.
    let known = ada.partner_key().await;
    let mut forged = Vec::new();
    for body in [
        json!({ "name": "Elsewhere", "scope": "partner" }),
        json!({ "name": "Elsewhere", "scope": "crm", "permissions": ["contacts.read", "bookings.read"] }),
    ] {
        forged.push(world.anonymous().with_bearer(stranger.new_key(body).await.expect(201).str("key")));
    }
    let functions = functions_by_route();
    let mut tried = 0;
    for Route { method, path: template, .. } in ROUTES.iter().filter(|route| route.path.starts_with("/v1/")) {
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
            for caller in &forged {
                let reply = call(caller).await.refused(401, "unauthorized");
                let invocation = &world.calls(function).await[0];
                assert_eq!(invocation["request_id"], reply.body["request_id"], "{method} {path}");
                assert_eq!(operations(invocation), ["UpdateItem"], "{method} {path}{query}");
                tried += 1;
            }
        }
    }
    assert!(tried > 40, "{tried}");
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
async fn a_revoked_key_is_refused_on_the_next_request() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let made = ada.new_key(json!({ "name": "Automation", "scope": "partner" })).await;
    let key = world.anonymous().with_bearer(made.str("key"));
    key.get("/v1/ping").await.expect(200);
    let revoked = ada.settings().await.delete(&format!("/settings/keys/{}", made.str("id"))).await.expect(200);
    assert!(revoked.body["revoked_at"].is_string());
    for path in ["/v1/ping", "/v1/clients", "/v1/clients/c1"] {
        key.get(path).await.refused(401, "unauthorized");
    }
    let listed = ada.settings().await.get("/settings/keys").await.expect(200);
    assert_eq!(listed.body["keys"][0]["id"], made.body["id"], "revoking keeps the record");
}

#[tokio::test]
async fn a_crm_key_does_not_open_partner_routes() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    for call in [
        key.get("/v1/ping"),
        key.get("/v1/clients"),
        key.post("/v1/clients", json!({ "email": "ada@example.com" })),
        key.get("/v1/clients/c1"),
        key.patch("/v1/clients/c1", json!({ "is_active": true })),
    ] {
        call.await.refused(403, "wrong_scope");
    }
    assert!(world.items("clients", "CLIENT#").await.is_empty());
}

#[tokio::test]
async fn a_workspace_that_loses_its_entitlement_gets_402_at_once_and_access_back_with_it() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    key.get("/v1/ping").await.expect(200);
    world.coach("ada").not_entitled().await;
    for call in [
        key.get("/v1/ping"),
        key.get("/v1/clients"),
        key.post("/v1/clients", json!({ "email": "ada@example.com" })),
        key.get("/v1/clients/c1"),
        key.patch("/v1/clients/c1", json!({ "is_active": true })),
    ] {
        call.await.refused(402, "partner_api_not_entitled");
    }
    world.coach("ada").await;
    key.get("/v1/ping").await.expect(200);
}

#[tokio::test]
async fn checks_come_in_the_order_key_rate_scope_entitlement_header_size() {
    let world = World::start().await;
    let ada = world.coach("ada").not_entitled().await;
    let (partner, crm) = (ada.partner_key().await, ada.crm_key().await);
    let too_large = vec![b' '; 256 * 1024 + 1];
    let bad = |caller: &Caller| caller.call("POST", "/v1/clients").idempotent(&"k".repeat(256)).body(too_large.clone());
    bad(&world.anonymous()).await.refused(401, "unauthorized");
    bad(&crm).await.refused(403, "wrong_scope");
    bad(&partner).await.refused(402, "partner_api_not_entitled");
    world.coach("ada").await;
    bad(&partner).await.refused_for("Idempotency-Key");
    bad(&partner).without("idempotency-key").await.refused(413, "body_too_large");

    world.coach("ada").not_entitled().await;
    world.advance_to_next_minute().await;
    let calls = (0..300).map(|_| crm.get("/v1/ping").into_future());
    let refused = futures::future::join_all(calls).await;
    assert!(refused.iter().all(|reply| reply.status == 403));
    crm.get("/v1/ping").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn errors_are_rendered_in_the_format_that_the_caller_accepts() {
    let world = World::start().await;
    let reply = world.anonymous().get("/v1/ping").await.refused(401, "unauthorized");
    assert_eq!(reply.members(), ["code", "error", "request_id"]);
    assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(reply.header("x-request-id"), Some(reply.str("request_id")));
    let accept = "text/html, application/problem+json;q=0.9";
    let reply = world.anonymous().get("/v1/ping").header("accept", accept).await.refused(401, "unauthorized");
    assert_eq!(reply.header("content-type"), Some("application/problem+json; charset=utf-8"));
    assert_eq!(reply.members(), ["code", "detail", "error", "request_id", "status", "title", "type"]);
    assert_eq!(reply.body["status"], 401);
    assert_eq!(reply.body["detail"], reply.body["error"]);
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
