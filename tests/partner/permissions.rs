//! Permissions of partner keys: each route asks for its own, and ping for none. Also the order of all checks.

use std::future::IntoFuture;

use domain::api_key::Permission;
use edge::routes::{Access, ROUTES};
use serde_json::json;

use crate::world::{Caller, Fact, PARTNER_PERMISSIONS, Reply, World};

/// The partner routes, each with its permission, and none for ping.
fn routes() -> impl Iterator<Item = (&'static str, &'static str, Option<&'static str>)> {
    ROUTES.iter().filter_map(|route| match route.access {
        Access::Partner(permission) => Some((route.method, route.path, permission.map(Permission::as_str))),
        _ => None,
    })
}

async fn call(key: &Caller, method: &str, path: &str) -> Reply {
    let call = key.call(method, &path.replace("{clientId}", "c1"));
    if method == "GET" { call.await } else { call.json(&json!({ "is_active": true })).await }
}

#[tokio::test]
async fn each_partner_route_needs_its_own_permission_and_no_other() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    world.apply([Fact::client("ada", "c1")]).await;
    let all = ada.partner_key().await;
    for permission in PARTNER_PERMISSIONS {
        let only = ada.partner_key_with(&[permission]).await;
        let others: Vec<&str> = PARTNER_PERMISSIONS.into_iter().filter(|other| *other != permission).collect();
        let all_others = ada.partner_key_with(&others).await;
        for (method, path, needed) in routes() {
            let (let_in, refused) = match needed {
                None => (vec![&only, &all_others], None),
                Some(needed) if needed == permission => (vec![&only], Some(&all_others)),
                Some(_) => (vec![&all_others], Some(&only)),
            };
            let expected = call(&all, method, path).await;
            assert!([200, 201, 400].contains(&expected.status), "{method} {path}: {}", expected.text);
            for key in let_in {
                let reply = call(key, method, path).await;
                assert_eq!(reply.status, expected.status, "{method} {path} with {permission}: {}", reply.text);
            }
            if let (Some(refused), Some(needed)) = (refused, needed) {
                let reply = call(refused, method, path).await.refused(403, "permission_missing");
                assert!(reply.error().contains(needed), "{method} {path}: {}", reply.text);
            }
        }
    }
    assert_eq!(routes().filter(|(.., permission)| permission.is_none()).count(), 1, "ping alone needs no permission");
}

#[tokio::test]
async fn checks_come_in_the_order_key_rate_scope_permission_entitlement_header_size() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (nobody, crm, all) = (world.anonymous(), ada.crm_key().await, ada.partner_key().await);
    let reader = ada.partner_key_with(&["records.read"]).await;
    let too_large = vec![b' '; 256 * 1024 + 1];
    let bad = |caller: &Caller| caller.call("POST", "/v1/clients").idempotent(&"k".repeat(256)).body(too_large.clone());
    bad(&all).await.refused_for("Idempotency-Key");
    bad(&all).without("idempotency-key").await.refused(413, "body_too_large");
    world.coach("ada").not_entitled().await;
    for (method, path, needed) in routes() {
        call(&crm, method, path).await.refused(403, "wrong_scope");
        call(&all, method, path).await.refused(402, "partner_api_not_entitled");
        let reply = call(&reader, method, path).await;
        match needed {
            None | Some("records.read") => reply.refused(402, "partner_api_not_entitled"),
            Some(_) => reply.refused(403, "permission_missing"),
        };
    }
    for (caller, status, code) in [
        (&nobody, 401, "unauthorized"),
        (&crm, 403, "wrong_scope"),
        (&reader, 403, "permission_missing"),
        (&all, 402, "partner_api_not_entitled"),
    ] {
        bad(caller).await.refused(status, code);
    }
    world.advance_to_next_minute().await;
    let refused = crm.pings(300).await;
    assert!(refused.iter().all(|reply| reply.status == 403));
    crm.get("/v1/ping").await.refused(429, "rate_limited");
}

#[tokio::test]
async fn a_refused_write_leaves_its_idempotency_key_free_and_gets_no_recorded_answer() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (reader, writer) =
        (ada.partner_key_with(&["clients.read"]).await, ada.partner_key_with(&["clients.write"]).await);
    let create = |key: &Caller| key.post("/v1/clients", json!({ "email": "ada@example.com" })).idempotent("signup-1");
    create(&reader).await.refused(403, "permission_missing");
    assert!(world.items("clients", "CLIENT#").await.is_empty());
    assert!(!create(&writer).await.expect(201).is_replay());
    create(&reader).await.refused(403, "permission_missing");
    assert!(create(&writer).await.expect(201).is_replay());
}

#[tokio::test]
async fn a_key_that_is_revoked_while_requests_run_is_refused_from_then_on() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let settings = ada.settings().await;
    let body = json!({ "name": "x", "scope": "partner", "permissions": ["clients.read"] });
    for _ in 0..4 {
        let made = ada.new_key(body.clone()).await;
        let key = world.anonymous().with_bearer(made.str("key"));
        let requests = || futures::future::join_all((0..12).map(|_| key.get("/v1/clients").into_future()));
        let revocation = settings.delete(&format!("/settings/keys/{}", made.str("id"))).into_future();
        let (during, revoked) = futures::future::join(requests(), revocation).await;
        revoked.expect(200);
        assert!(during.iter().all(|reply| [200, 401].contains(&reply.status)));
        assert!(requests().await.iter().all(|reply| reply.status == 401));
    }
}
