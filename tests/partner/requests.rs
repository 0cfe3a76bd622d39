//! Rules for all requests: paths, methods, sizes, media types, the form of a body.

use serde_json::{Value, json};

use crate::world::{Call, Reply, World, time};

#[tokio::test]
async fn an_unknown_path_is_not_found_with_or_without_a_key() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for path in [
        "/",
        "/v1",
        "/v2/ping",
        "/v1/clients/",
        "/v1/clients/a/b",
        "/v1/ping/",
        "/V1/ping",
        "/v1/x/../ping",
        "/v1/x/%2e%2e/ping",
        "/v1/%70ing",
    ] {
        key.get(path).await.refused(404, "unknown_path");
        world.anonymous().get(path).await.refused(404, "unknown_path");
    }
}

#[tokio::test]
async fn an_undecodable_path_is_not_found_and_still_needs_a_key() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    ada.partner_key().await.get("/v1/clients/%ff").await.refused(404, "not_found");
    world.anonymous().get("/v1/clients/%ff").await.refused(401, "unauthorized");
    ada.settings().await.get("/settings/webhooks/%ff").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_known_path_names_its_allowed_methods() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for (path, allow) in [
        ("/v1/ping", "GET"),
        ("/v1/clients", "GET, POST"),
        ("/v1/clients/c1", "GET, PATCH"),
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
    key.post("/v1/ping", json!({})).await.refused(405, "method_not_allowed");
    key.patch("/v1/clients", json!({})).await.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn every_json_answer_forbids_sniffing_and_an_error_varies_by_accept() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (key, settings, nobody) = (ada.partner_key().await, ada.settings().await, world.settings_of("no coach").await);
    let problem = "application/problem+json";
    for (status, call) in [
        (200, key.get("/v1/ping")),
        (400, key.post("/v1/clients", json!({}))),
        (401, world.anonymous().get("/v1/ping")),
        (403, nobody.get("/settings/keys")),
        (404, key.get("/v1/clients/c1")),
        (404, key.get("/v1/clients/c1").header("accept", problem)),
        (404, world.anonymous().get("/nothing")),
        (405, world.anonymous().call("PUT", "/v1/ping")),
        (200, settings.get("/settings/keys")),
        (201, settings.post("/settings/keys", json!({ "name": "x", "scope": "partner" }))),
        (200, world.anonymous().get("/.well-known/jwks.json")),
    ] {
        let reply = call.await.expect(status);
        assert!(reply.header("content-type").unwrap().contains("json"), "{reply:?}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{reply:?}");
        // An error has two forms.
        assert_eq!(reply.header("vary") == Some("accept"), status >= 400, "{reply:?}");
    }
}

#[tokio::test]
async fn a_body_is_accepted_up_to_256_kib() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let sized = |bytes: usize| {
        let mut body = json!({ "email": "ada@example.com", "send_welcome": false, "padding": "" }).to_string();
        let padding = "x".repeat(bytes - body.len());
        body.insert_str(body.find("\"padding\":\"").unwrap() + "\"padding\":\"".len(), &padding);
        body
    };
    let post = key.call("POST", "/v1/clients").header("content-type", "application/json");
    post.clone().body(sized(256 * 1024 + 1)).await.refused(413, "body_too_large");
    post.body(sized(256 * 1024)).await.expect(201);
    let patch = key.call("PATCH", "/v1/clients/c1").header("content-type", "application/json");
    patch.body(sized(256 * 1024 + 1)).await.refused(413, "body_too_large");
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
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let post = |number: usize| {
        let body = json!({ "email": format!("c{number}@example.com"), "send_welcome": false });
        key.post("/v1/clients", body)
    };
    for (number, kind) in
        ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "", "application/json, text/plain"]
            .into_iter()
            .enumerate()
    {
        post(number).header("content-type", kind).await.refused(415, "unsupported_media_type");
    }
    for (number, kind) in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/merge-patch+json",
        "application/json, application/json",
        "application/json; charset=utf-8,application/json",
        "application/json; profile=\"a,b\"",
    ]
    .into_iter()
    .enumerate()
    {
        post(10 + number).header("content-type", kind).await.expect(201);
    }
    post(20).without("content-type").await.expect(201);
}

#[tokio::test]
async fn a_media_type_can_be_corrected_under_the_same_idempotency_key() {
    let world = World::start().await;
    let coach = world.coach("ada").await;
    let (partner, crm) = (coach.partner_key().await, coach.crm_key().await);
    let body = json!({ "name": "Ada", "full_name": "Ada", "email": "c@example.com", "send_welcome": false });
    let contact = json!({ "name": "Ada", "email": "ada@example.com" });
    let explicit = partner.post("/v1/clients", body.clone()).idempotent("one");
    let derived = partner.post("/v1/clients", json!({ "email": "d@example.com", "send_welcome": false }));
    for call in [explicit, derived, crm.post("/v1/crm/contacts", contact).idempotent("one")] {
        let refused = call.clone().header("content-type", "text/plain").await.refused(415, "unsupported_media_type");
        assert!(!refused.is_replay());
        assert!(!call.await.expect(201).is_replay());
    }
}

#[tokio::test]
async fn a_compressed_body_is_refused_before_its_idempotency_key_is_claimed() {
    let world = World::start().await;
    let coach = world.coach("ada").await;
    let (partner, crm, settings) = (coach.partner_key().await, coach.crm_key().await, coach.settings().await);
    let client = json!({ "email": "c@example.com", "send_welcome": false });
    let contact = json!({ "name": "Ada", "email": "ada@example.com" });
    let key = json!({ "name": "New", "scope": "partner" });
    for (call, body) in [
        (partner.call("POST", "/v1/clients"), &client),
        (crm.call("POST", "/v1/crm/contacts"), &contact),
        (settings.call("POST", "/settings/keys"), &key),
    ] {
        let plain = call.json(body).idempotent("one");
        for coding in ["gzip", "GZIP, identity", "br", "unheard-of", "é"] {
            let packed = plain.clone().header("content-encoding", coding).body(gzip(&body.to_string()));
            let refused = packed.await.refused(415, "unsupported_media_type");
            assert!(!refused.is_replay() && refused.error().contains("Content-Encoding"), "{}", refused.text);
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
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
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

#[tokio::test]
async fn a_byte_order_mark_before_a_body_is_ignored() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let (partner, crm, settings) = (ada.partner_key().await, ada.crm_key().await, ada.settings().await);
    let marked = |body: &Value| format!("\u{feff}{body}");
    let is_replay = |reply: Reply| {
        assert!(reply.is_replay() && reply.header("idempotency-payload-mismatch").is_none(), "{}", reply.text);
    };
    for (number, content_type) in
        [Some("application/json"), Some("application/vnd.api+json"), None].into_iter().enumerate()
    {
        let send = |call: Call, body: String| {
            let call = call.without("content-type").body(body);
            content_type.map_or(call.clone(), |kind| call.header("content-type", kind))
        };
        let client = json!({ "email": format!("c{number}@example.com"), "send_welcome": false });
        let made = send(partner.call("POST", "/v1/clients"), marked(&client)).await.expect(201);
        is_replay(send(partner.call("POST", "/v1/clients"), client.to_string()).await.expect(201));
        let path = format!("/v1/clients/{}", made.str("client_id"));
        let off = send(partner.call("PATCH", &path), marked(&json!({ "is_active": false }))).await.expect(200);
        assert_eq!(off.body["is_active"], false);
        let contact = json!({ "name": "Lee", "email": format!("c{number}@example.com") });
        let post = || crm.call("POST", "/v1/crm/contacts").idempotent(&format!("key-{number}"));
        send(post(), contact.to_string()).await.expect(201);
        is_replay(send(post(), marked(&contact)).await.expect(201));
        let key = json!({ "name": "Marked", "scope": "partner" });
        send(settings.call("POST", "/settings/keys"), marked(&key)).await.expect(201);
    }
}

#[tokio::test]
async fn answers_have_a_request_id_and_forbid_caching() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let mut seen = Vec::new();
    for reply in [key.get("/v1/ping").await, key.get("/v1/nowhere").await, key.get("/v1/clients/x").await] {
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        seen.push(reply.header("x-request-id").unwrap().to_owned());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[tokio::test]
async fn times_are_rendered_in_utc_with_milliseconds() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let before = world.now().await;
    let made = key.post("/v1/clients", json!({ "email": "ada@example.com" })).await.expect(201);
    let shown: Value =
        key.get(&format!("/v1/clients/{}", made.str("client_id"))).await.expect(200).body["created_at"].clone();
    let text = shown.as_str().unwrap();
    assert!(text.len() == 24 && text.ends_with('Z') && text.as_bytes()[19] == b'.', "{text}");
    assert!(time(&shown) >= before && time(&shown) <= world.now().await);
}
