//! HTTP: what is refused before a message counts, and the headers of every answer.

use serde_json::{Value, json};

use super::{Assistant, ERAS, LEGACY, MODERN};
use crate::world::{Call, Reply, World};

/// A body that is no message, with the status, the code and the id of its refusal.
fn bad_bodies() -> Vec<(String, i64, Value)> {
    let nested = format!("{}1{}", "[".repeat(33), "]".repeat(33));
    let of = |body: Value, id: Value| (body.to_string(), -32600, id);
    let unparsed = |body: &str| (body.to_owned(), -32700, Value::Null);
    vec![
        unparsed(""),
        unparsed("{"),
        unparsed("nonsense"),
        unparsed(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{"a":1e999}}}"#,
        ),
        unparsed(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{nested}}}}}"#)),
        of(json!([]), Value::Null),
        of(json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]), Value::Null),
        of(json!("ping"), Value::Null),
        of(json!(5), Value::Null),
        of(json!({}), Value::Null),
        of(json!({ "id": 1, "method": "ping" }), json!(1)),
        of(json!({ "jsonrpc": "1.0", "id": "a", "method": "ping" }), json!("a")),
        of(json!({ "jsonrpc": "2.0", "id": 1 }), json!(1)),
        of(json!({ "jsonrpc": "2.0", "id": 1, "method": 5 }), json!(1)),
        of(json!({ "jsonrpc": "2.0", "id": 1, "method": null }), json!(1)),
        of(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), json!(1)),
        of(json!({ "jsonrpc": "2.0", "id": 1, "error": {} }), json!(1)),
        of(json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }), Value::Null),
        of(json!({ "jsonrpc": "2.0", "id": true, "method": "ping" }), Value::Null),
        of(json!({ "jsonrpc": "2.0", "id": {}, "method": "ping" }), Value::Null),
        of(json!({ "jsonrpc": "2.0", "id": [1], "method": "ping" }), Value::Null),
        of(json!({ "jsonrpc": "2.0", "id": 1.5, "method": "ping" }), Value::Null),
        of(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": [] }), json!(1)),
        of(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": "a" }), json!(1)),
        of(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": null }), json!(1)),
    ]
}

/// Asserts the headers that every answer to a good key has.
#[track_caller]
fn assert_headers(reply: &Reply) {
    for name in ["ratelimit", "ratelimit-policy", "x-request-id"] {
        assert!(reply.header(name).is_some(), "{name}: {reply:?}");
    }
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    for name in ["mcp-session-id", "access-control-allow-origin"] {
        assert_eq!(reply.header(name), None, "{reply:?}");
    }
}

/// The requests that a key has left in this minute.
fn left(reply: &Reply) -> i64 {
    let limit = reply.header("ratelimit").unwrap();
    limit.split("r=").nth(1).unwrap().split(';').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_body_that_is_no_message_is_refused_in_both_eras_once_the_key_is_good() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for version in ERAS {
        for (body, code, id) in bad_bodies() {
            let send = |call: Call| call.header("mcp-protocol-version", version).body(body.clone());
            let reply = send(key.call("POST", "/mcp")).await.expect(400);
            assert_eq!(
                (&reply.body["error"]["code"], &reply.body["id"]),
                (&json!(code), &id),
                "{body}: {}",
                reply.text
            );
            assert!(reply.body["error"]["message"].as_str().is_some_and(|message| message.len() > 10));
            assert_headers(&reply);
            let nobody = world.anonymous().with_bearer("nonsense");
            send(nobody.call("POST", "/mcp")).await.refused(401, "unauthorized");
        }
        let torn = key.call("POST", "/mcp").body(&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"[..]);
        assert_eq!(torn.await.expect(400).body["error"]["code"], -32700);
        world.advance_to_next_minute().await;
    }
}

#[tokio::test]
async fn an_id_of_any_usable_form_comes_back() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for id in [json!("a"), json!(""), json!(0), json!(-5), json!(i64::MAX), json!(u64::MAX)] {
        let reply = key.post("/mcp", json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await.expect(200);
        assert_eq!(reply.body, json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    }
}

#[tokio::test]
async fn every_post_counts_once_and_401_comes_first() {
    let world = World::start().await;
    let ada = world.coach("ada").await;
    let made = ada.new_key(json!({ "name": "To revoke", "scope": "partner" })).await;
    let revoked = world.anonymous().with_bearer(made.str("key"));
    ada.settings().await.delete(&format!("/settings/keys/{}", made.str("id"))).await.expect(200);
    let key = ada.partner_key().await;
    for version in ERAS {
        world.advance_to_next_minute().await;
        let calls = |caller| {
            let assistant = Assistant::new(&caller, version);
            let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            [
                assistant.request("tools/list", json!({})),
                assistant.request("nothing/here", json!({})),
                assistant.call("whoami", json!({})),
                assistant.call("no_such_tool", json!({})),
                assistant.call("list_calendars", json!({})),
                assistant.call("get_client", json!({})),
                assistant.call("get_client", json!({ "client_id": "c1" })),
                assistant.call("create_client", json!({ "goals": version })),
                assistant.request("tools/list", json!({})).header("origin", "https://evil.example"),
                caller.post("/mcp", notification),
                caller.call("POST", "/mcp").body("{"),
                caller.call("POST", "/mcp").body(vec![b' '; 256 * 1024 + 1]),
                caller.call("POST", "/mcp").body("{}").header("content-type", "text/plain"),
            ]
        };
        for (number, call) in calls(key.clone()).into_iter().enumerate() {
            let reply = call.await;
            assert_ne!(reply.status, 401, "{}", reply.text);
            assert_eq!(left(&reply), 299 - i64::try_from(number).unwrap(), "{number} of {version}: {}", reply.text);
            assert_headers(&reply);
        }
        let nobody = world.anonymous();
        for caller in [nobody.clone(), nobody.with_bearer("nonsense"), nobody.with("x-api-key", "x"), revoked.clone()] {
            for call in calls(caller) {
                let reply = call.await.refused(401, "unauthorized");
                assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"partner-api\""));
                assert_eq!(reply.header("x-request-id"), Some(reply.str("request_id")));
            }
        }
    }
    for path in ["oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"] {
        world.anonymous().get(&format!("/.well-known/{path}")).await.expect(404);
    }
}

#[tokio::test]
async fn sizes_and_media_types_are_those_of_the_api() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let send = |body: String| key.call("POST", "/mcp").header("content-type", "application/json").body(body);
    let padded = |bytes: usize| format!("{ping}{}", " ".repeat(bytes - ping.len()));
    send(padded(256 * 1024)).await.expect(200);
    send(padded(256 * 1024 + 1)).await.refused(413, "body_too_large");
    send(padded(6 * 1024 * 1024)).await.refused(413, "body_too_large");
    send(ping.clone()).header("content-type", "text/plain").await.refused(415, "unsupported_media_type");
    send(ping.clone()).header("content-encoding", "gzip").await.refused(415, "unsupported_media_type");
    for accept in ["", "text/html", "text/event-stream", "application/problem+json", "*/*"] {
        let reply = send(ping.clone()).header("accept", accept).await.expect(200);
        assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
    }
    send(ping).header("mcp-session-id", "1").header("last-event-id", "5").await.expect(200);
    for method in ["GET", "DELETE", "PUT", "OPTIONS"] {
        assert_eq!(key.call(method, "/mcp").await.refused(405, "method_not_allowed").header("allow"), Some("POST"));
    }
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let own = world.base_url();
    for (origin, status) in [(own.as_str(), 200), ("https://evil.example", 403), ("null", 403), ("", 403)] {
        for version in ERAS {
            let call = Assistant::new(&key, version).request("tools/list", json!({})).header("origin", origin);
            let reply = call.await.expect(status);
            if status == 403 {
                assert_eq!(reply.body["error"]["code"], -32600);
                assert!(reply.body.get("id").is_none(), "{}", reply.text);
            }
        }
    }
}

#[tokio::test]
async fn a_notification_gets_no_body_whatever_its_method() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for method in ["notifications/initialized", "notifications/cancelled", "tools/call", "anything"] {
        for version in [MODERN, LEGACY, "1999-01-01"] {
            let call = key.post("/mcp", json!({ "jsonrpc": "2.0", "method": method }));
            let reply = call.header("mcp-protocol-version", version).await.expect(202);
            assert_eq!(reply.text, "");
        }
    }
}

#[tokio::test]
async fn a_used_up_limit_is_429_outside_a_call_and_a_result_within_one() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    world.advance_to_next_minute().await;
    for reply in key.pings(300).await {
        reply.expect(200);
    }
    for version in ERAS {
        let assistant = Assistant::new(&key, version);
        let reply = assistant.request("tools/list", json!({})).await.expect(429);
        assert_eq!((&reply.body["error"]["code"], &reply.body["id"]), (&json!(429), &json!(7)), "{}", reply.text);
        assert!(reply.header("retry-after").is_some());
        assert_headers(&reply);
        let reply = assistant.call("get_client", json!({ "client_id": "c1" })).await;
        let text = super::error_of(&reply);
        assert!(text.contains("[rate_limited]") && text.contains("Wait "), "{text}");
        assert!(reply.header("retry-after").is_some());
    }
}
