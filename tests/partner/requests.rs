//! Rules for all requests: methods, sizes, media types, the form of a body.

use serde_json::{Value, json};

use crate::partner::start_with_key;
use crate::world::World;

#[tokio::test]
async fn a_known_path_names_its_allowed_methods() {
    let (_world, key) = start_with_key().await;
    for (path, allow) in [
        ("/v1/ping", "GET"),
        ("/v1/clients/c1", "GET, PATCH"),
        ("/v1/clients/c1/login-link", "POST"),
        ("/settings/keys", "GET, POST"),
    ] {
        for method in ["PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND"] {
            let reply = key.call(method, path).await.expect(405);
            assert_eq!(reply.header("allow"), Some(allow), "{method} {path}");
            if method != "HEAD" {
                reply.refused(405, "method_not_allowed");
            }
        }
    }
    for (path, allow) in [("/login/x", "GET, HEAD, POST"), ("/portal", "GET")] {
        let reply = key.call("DELETE", path).await.refused(405, "method_not_allowed");
        assert_eq!(reply.header("allow"), Some(allow), "{path}");
    }
}

#[tokio::test]
async fn an_error_varies_by_accept_and_another_answer_does_not() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (key, settings, nobody) = (ada.partner_key().await, ada.settings().await, world.settings_of("no coach").await);
    for (status, call) in [
        (200, key.get("/v1/ping")),
        (400, key.post("/v1/clients", json!({}))),
        (401, world.anonymous().get("/v1/ping")),
        (403, nobody.get("/settings/keys")),
        (404, key.get("/v1/clients/c1")),
        (404, key.get("/v1/clients/c1").header("accept", "application/problem+json")),
        (404, world.anonymous().get("/nothing")),
        (405, world.anonymous().call("PUT", "/v1/ping")),
        (200, settings.get("/settings/keys")),
        (200, world.anonymous().get("/.well-known/jwks.json")),
    ] {
        let reply = call.await.expect(status);
        assert_eq!(reply.header("vary") == Some("accept"), status >= 400, "{reply:?}");
    }
}

#[tokio::test]
async fn a_body_is_accepted_up_to_256_kib() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (key, settings) = (ada.partner_key().await, ada.settings().await);
    let sized = |bytes: usize| {
        let mut body = json!({ "email": "ada@example.com", "send_welcome": false, "padding": "" }).to_string();
        let padding = "x".repeat(bytes - body.len());
        body.insert_str(body.find("\"padding\":\"").unwrap() + "\"padding\":\"".len(), &padding);
        body
    };
    let post = |bytes: usize| key.post("/v1/clients", Value::Null).body(sized(bytes));
    let patch = key.patch("/v1/clients/c1", Value::Null);
    let new_key = settings.post("/settings/keys", Value::Null);
    for call in [post(256 * 1024 + 1), patch.body(sized(256 * 1024 + 1)), new_key.body(sized(256 * 1024 + 1))] {
        call.await.refused(413, "body_too_large");
    }
    post(256 * 1024).await.expect(201);
}

#[tokio::test]
async fn a_refusal_quotes_a_body_up_to_a_limit() {
    let world = World::start().await;
    let coach = world.coach("ada").await;
    let (crm, settings) = (coach.crm_key().await, coach.settings().await);
    let long = "é".repeat(120_000);
    let many: serde_json::Map<String, Value> = (0..20_000).map(|n| (format!("f{n:05}"), json!(1))).collect();
    let bodies = [("long", json!({ long.as_str(): 1 })), ("many", Value::Object(many))];
    for (case, body) in bodies {
        for path in ["/v1/crm/contacts", "/v1/crm/opportunities", "/v1/crm/bookings"] {
            let call = crm.post(path, body.clone()).idempotent(&format!("{case}-{path}"));
            let refused = call.clone().await.refused(400, "invalid_request");
            assert!(refused.text.len() < 1_500, "{case}: {} bytes", refused.text.len());
            assert!(refused.body["field"].as_str().unwrap().starts_with(['é', 'f']), "{}", refused.text);
            let again = call.await.refused(400, "invalid_request");
            assert!(again.is_replay() && again.text == refused.text);
        }
        let refused = settings.post("/settings/keys", body).await.refused(400, "invalid_request");
        assert!(refused.text.len() < 1_500, "{case}: {} bytes", refused.text.len());
    }
    let key = json!({ "name": "CRM", "scope": "crm", "permissions": ["contacts.read", long.as_str()] });
    let refused = settings.post("/settings/keys", key).await.refused(400, "invalid_request");
    assert!(refused.error().contains("éé…\" is none of them"), "{}", refused.text);
    assert!(refused.text.len() < 1_500, "{} bytes", refused.text.len());
}

#[tokio::test]
async fn a_body_of_another_media_type_is_415() {
    let (world, key) = start_with_key().await;
    let post = || {
        let body = json!({ "email": format!("c{}@example.com", world.number()), "send_welcome": false });
        key.post("/v1/clients", body)
    };
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "", "application/json, text/plain"]
    {
        post().header("content-type", kind).await.refused(415, "unsupported_media_type");
    }
    for kind in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/merge-patch+json",
        "application/json, application/json",
        "application/json; charset=utf-8,application/json",
        "application/json; profile=\"a,b\"",
    ] {
        post().header("content-type", kind).await.expect(201);
    }
    post().without("content-type").await.expect(201);
}

#[tokio::test]
async fn a_body_of_another_type_or_coding_is_refused_before_its_idempotency_key_is_claimed() {
    let world = World::start().await;
    let coach = world.coach("ada").await;
    let (partner, crm, settings) = (coach.partner_key().await, coach.crm_key().await, coach.settings().await);
    let client = |email: &str| json!({ "email": email, "send_welcome": false });
    for (call, body) in [
        (partner.call("POST", "/v1/clients").idempotent("one"), client("c@example.com")),
        // The idempotency key is derived from the address.
        (partner.call("POST", "/v1/clients"), client("d@example.com")),
        (crm.call("POST", "/v1/crm/contacts").idempotent("one"), json!({ "name": "Ada", "email": "ada@example.com" })),
        (settings.call("POST", "/settings/keys").idempotent("one"), json!({ "name": "New", "scope": "partner" })),
    ] {
        let plain = call.json(&body);
        let packed = ["gzip", "GZIP, identity", "br", "unheard-of", "é"]
            .map(|coding| plain.clone().header("content-encoding", coding).body(gzip(&body.to_string())));
        for call in packed.into_iter().chain([plain.clone().header("content-type", "text/plain")]) {
            assert!(!call.await.refused(415, "unsupported_media_type").is_replay());
        }
        let made = plain.header("content-encoding", "identity").await.expect(201);
        assert!(!made.is_replay(), "the key was free");
    }
    let inactive = partner.patch("/v1/clients/c1", json!({ "is_active": false }));
    inactive.header("content-encoding", "gzip").await.refused(415, "unsupported_media_type");
    let bodiless = partner.get("/v1/clients").header("content-encoding", "gzip").header("content-type", "text/plain");
    bodiless.await.expect(200);
}

fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_body_has_to_be_a_json_object_of_bounded_depth() {
    let (_world, key) = start_with_key().await;
    let nested =
        |levels: usize| format!("{{\"email\":\"a@example.com\",\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    for path in ["/v1/clients", "/v1/clients/c1"] {
        let method = if path == "/v1/clients" { "POST" } else { "PATCH" };
        let send = |body: &str| key.call(method, path).header("content-type", "application/json").body(body.to_owned());
        for body in [
            "",
            "{",
            "nonsense",
            "{\"email\": \"a@example.com\",}",
            "\u{feff}",
            "\u{feff}\u{feff}{}",
            " \u{feff}{}",
            "{} {}",
        ] {
            send(body).await.refused(400, "invalid_json");
        }
        for body in ["[]", "[{}]", "null", "5", "true", "\"text\""] {
            let reply = send(body).await.refused(400, "invalid_json");
            assert!(reply.error().contains("JSON object"), "{}", reply.text);
        }
        for levels in [32, 127, 128, 100_000] {
            let reply = send(&nested(levels)).await.refused(400, "invalid_json");
            assert!(reply.error().contains("32"), "{}", reply.text);
        }
    }
    // Another address: the refusal above is recorded for the first one.
    key.call("POST", "/v1/clients").body(nested(31).replace("a@", "b@")).await.expect(201);
}
