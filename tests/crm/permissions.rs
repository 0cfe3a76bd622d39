//! Access to the CRM: scope, entitlements, configuration and permission, each with a code of its own, checked in a
//! fixed order; and the bodies and ids that every route refuses.

use edge::routes::{Access, ROUTES};
use serde_json::{Value, json};

use crate::world::{CRM_PERMISSIONS, Caller, Reply, World, uuid};

/// The routes of the CRM, each with its permission.
fn routes() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ROUTES.iter().filter_map(|route| match route.access {
        Access::Crm(permission) => Some((route.method, route.path, permission.as_str())),
        _ => None,
    })
}

/// Returns true if a route writes and thus takes an idempotency key.
fn writes(permission: &str) -> bool {
    permission.ends_with(".write")
}

/// The path with `id` in the place of each parameter.
fn filled(path: &str, id: &str) -> String {
    let parts: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { id } else { part }).collect();
    parts.join("/")
}

async fn call_without_body(key: &Caller, method: &str, path: &str) -> Reply {
    key.call(method, &filled(path, &uuid(1))).await
}

/// Sends an empty object under a new idempotency key: a caller with access gets the body's errors.
async fn call_with_body(world: &World, key: &Caller, method: &str, path: &str) -> Reply {
    let call = key.call(method, &filled(path, &uuid(1)));
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
                "GET" if path.contains('{') => 404,
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
async fn a_strict_body_names_all_unknown_members() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    for (method, path, permission) in routes() {
        if method == "GET" {
            continue;
        }
        let path = filled(path, &uuid(1));
        let send = async |body: Value| {
            let call = key.call(method, &path).json(&body);
            if writes(permission) { call.idempotent(&format!("strict-{}", world.number())).await } else { call.await }
        };
        let reply = send(json!({ "coach_id": "bob", "pipelineId": "p" })).await.refused(400, "invalid_request");
        let names_both = reply.error().contains("coach_id") && reply.error().contains("pipelineId");
        assert!(names_both, "{method} {path}: {}", reply.text);
        assert!(["coach_id", "pipelineId"].contains(&reply.str("field")));
        for body in [json!([]), json!({})] {
            send(body).await.refused(400, "invalid_request");
        }
    }
}

#[tokio::test]
async fn a_malformed_id_in_a_path_is_refused_before_the_body_is_read() {
    let world = World::start().await;
    let key = world.coach("ada").await.crm_key().await;
    for (method, path, _) in routes().filter(|(_, path, _)| path.contains('{')) {
        for odd in
            ["1", &uuid(1).replace('-', ""), &format!("{}0", uuid(1)), &format!("%7B{}%7D", uuid(1)), "%00", "%FF"]
        {
            let call = key.call(method, &filled(path, odd));
            let call = if method == "GET" { call } else { call.json(&json!([])) };
            let reply = call.idempotent(&format!("odd-{}", world.number())).await.refused_for("id");
            assert_eq!(reply.body["field"], "id", "{method} {path} {odd}");
        }
    }
}
