//! Access to the CRM: scope, entitlements, configuration and permission, each with a code of its own, checked in a
//! fixed order.

use edge::routes::{Access, ROUTES};
use serde_json::{Value, json};

use crate::world::{CRM_PERMISSIONS, Caller, Reply, World, uuid};

/// The routes of the CRM, each with its permission.
fn routes() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ROUTES.iter().filter_map(|route| match route.access {
        Access::Crm(permission) => Some((route.method, route.path, permission.as_str())),
        Access::Public | Access::Partner(_) | Access::Events | Access::Session => None,
    })
}

/// Returns true if a route writes and thus takes an idempotency key.
fn writes(permission: &str) -> bool {
    permission.ends_with(".write")
}

async fn call_without_body(key: &Caller, method: &str, path: &str) -> Reply {
    key.call(method, &path.replace("{id}", &uuid(1))).await
}

/// Sends an empty object under a new idempotency key: a caller with access gets the body's errors.
async fn call_with_body(world: &World, key: &Caller, method: &str, path: &str) -> Reply {
    let call = key.call(method, &path.replace("{id}", &uuid(1)));
    let call = if method == "GET" { call } else { call.json(&json!({})) };
    call.idempotent(&format!("body-{}", world.number())).await
}

#[tokio::test]
async fn each_route_of_the_crm_needs_its_own_permission_and_no_other() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    for permission in CRM_PERMISSIONS {
        let only = ada.crm_key_with(&[permission]).await;
        let others: Vec<&str> = CRM_PERMISSIONS.into_iter().filter(|other| *other != permission).collect();
        let all_others = ada.crm_key_with(&others).await;
        for (method, path, needed) in routes() {
            let (let_in, refused) = if needed == permission { (&only, &all_others) } else { (&all_others, &only) };
            let reply = call_with_body(&world, let_in, method, path).await;
            let expected = match method {
                "GET" if path.contains("{id}") => 404,
                "GET" => 200,
                _ => 400,
            };
            assert_eq!(reply.status, expected, "{method} {path} with {permission}: {}", reply.text);
            let reply = call_with_body(&world, refused, method, path).await.refused(403, "permission_missing");
            assert!(reply.error().contains(needed), "{method} {path}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn a_key_of_the_other_scope_is_refused_whatever_else_is_wrong() {
    let world = World::start().await;
    let ada = world.coach("ada").with("crm", Value::Null).await;
    let partner = ada.partner_key().await;
    for (method, path, _) in routes() {
        let reply = call_without_body(&partner, method, path).await.refused(403, "wrong_scope");
        assert!(reply.error().contains("crm"), "{}", reply.text);
        call_without_body(&world.anonymous(), method, path).await.refused(401, "unauthorized");
        call_without_body(&world.anonymous().with_bearer("crm_live_nonsense"), method, path)
            .await
            .refused(401, "unauthorized");
    }
}

#[tokio::test]
async fn missing_entitlements_are_refused_in_a_fixed_order_from_the_next_request_on() {
    let world = World::start().await;
    let crm = json!({ "pipeline_id": "pipeline-1", "initial_stage": "new" });
    let with = |partner: bool, pro: bool, gym: bool, crm: &Value| {
        let entitlements = json!({ "partner_api": partner, "pro_crm": pro, "gym": gym });
        world.coach("ada").with("entitlements", entitlements).with("crm", crm.clone())
    };
    let key = with(true, true, true, &crm).await.crm_key_with(&["contacts.read"]).await;
    for (pro, gym, crm, code) in [
        (false, false, &Value::Null, "crm_not_entitled"),
        (false, true, &crm, "crm_not_entitled"),
        (true, false, &Value::Null, "gym_not_enabled"),
        (true, true, &Value::Null, "owner_configuration_missing"),
    ] {
        with(true, pro, gym, crm).await;
        for (method, path, _) in routes() {
            call_without_body(&key, method, path).await.refused(403, code);
        }
    }
    with(false, true, true, &crm).await;
    key.get("/v1/crm/contacts").await.expect(200);
    key.get("/v1/crm/workflows").await.refused(403, "permission_missing");
}

#[tokio::test]
async fn the_rate_limit_counts_before_the_scope_check() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key_with(&["contacts.read"]).await;
    world.advance_to_next_minute().await;
    for _ in 0..300 {
        key.get("/v1/crm/workflows").await.refused(403, "permission_missing");
    }
    let denied = key.get("/v1/crm/workflows").await.refused(429, "rate_limited");
    assert!(denied.header("retry-after").is_some());
    key.get("/v1/ping").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn every_write_and_nothing_else_needs_an_idempotency_key() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let key = ada.crm_key().await;
    for (method, path, permission) in routes() {
        let path = path.replace("{id}", &uuid(1));
        let call = || key.call(method, &path).json(&json!({}));
        if !writes(permission) {
            assert_ne!(call().await.body["code"], "idempotency_key_required", "{method} {path}");
            continue;
        }
        let reply = call().await;
        let code = &reply.body["code"];
        assert_eq!(code, "idempotency_key_required", "{method} {path} with {permission} of ROUTES: {}", reply.text);
        assert!(reply.expect(400).error().contains("Idempotency-Key"));
        // The refusal is not recorded, so the key is free.
        let large = format!("{{\"name\":\"{}\"}}", "x".repeat(256 * 1024));
        let once = format!("{method} {path}");
        call().body(large).idempotent(&once).await.refused(413, "body_too_large");
        assert!(!call().idempotent(&once).await.is_replay());
        assert!(call().idempotent(&once).await.is_replay(), "refusals after the claim are recorded");
    }
    assert!(world.items("crm", "COACH#").await.is_empty(), "nothing was stored");
}

#[tokio::test]
async fn a_strict_body_names_all_unknown_members() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    for (method, path, permission) in routes() {
        if method == "GET" {
            continue;
        }
        let path = path.replace("{id}", &uuid(1));
        let send = async |body: Value| {
            let call = key.call(method, &path).json(&body);
            if writes(permission) { call.idempotent(&format!("strict-{}", world.number())).await } else { call.await }
        };
        let reply = send(json!({ "coach_id": "bob", "pipelineId": "p" })).await.refused(400, "invalid_request");
        assert!(reply.error().contains("coach_id") && reply.error().contains("pipelineId"), "{}", reply.text);
        assert!(["coach_id", "pipelineId"].contains(&reply.str("field")));
        for body in [json!([]), json!("x"), json!(1), Value::Null] {
            send(body).await.refused(400, "invalid_request");
        }
        send(json!({})).await.refused(400, "invalid_request");
    }
    let nothing = key.call("DELETE", &format!("/v1/crm/bookings/{}", uuid(1))).idempotent("no body").await;
    assert_eq!(nothing.status, 400, "{}", nothing.text);
    for (path, body, field) in [
        ("/v1/crm/contacts", json!({ "name": null, "email": "a@example.com" }), "name"),
        ("/v1/crm/opportunities", json!({ "contactId": uuid(1), "name": null }), "name"),
        ("/v1/crm/bookings/availability", json!({ "leadId": uuid(1), "calendarId": null }), "calendarId"),
    ] {
        key.post(path, body).idempotent(&format!("null {path}")).await.refused_for(field);
    }
}
