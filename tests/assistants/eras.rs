//! The revisions of the protocol: which one a request speaks, and what each demands.

use serde_json::{Value, json};

use super::{Assistant, LEGACY, META, MODERN, modern_meta};
use crate::world::{Caller, World};

const KNOWN: [&str; 4] = [MODERN, LEGACY, "2025-06-18", "2025-03-26"];

type Headers = Vec<(&'static str, &'static str)>;

/// A request with these headers.
async fn send(key: &Caller, method: &str, params: Value, headers: &[(&str, &str)]) -> (u16, Value) {
    let call = key.post("/mcp", json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
    let reply = headers.iter().fold(call, |call, (name, value)| call.header(name, value)).await;
    (reply.status, reply.body)
}

/// `_meta` of a modern request with one member changed, or removed.
fn meta_with(name: &str, value: Option<Value>) -> Value {
    let mut meta = modern_meta();
    match value {
        Some(value) => meta[format!("{META}{name}")] = value,
        None => drop(meta.as_object_mut().unwrap().remove(&format!("{META}{name}"))),
    }
    json!({ "_meta": meta })
}

#[tokio::test]
async fn a_modern_request_is_checked_in_a_fixed_order() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let good = json!({ "_meta": modern_meta() });
    let (version, method) = (("mcp-protocol-version", MODERN), ("mcp-method", "tools/list"));
    let whole = [version, method];
    let future = meta_with("protocolVersion", Some(json!("2031-01-01")));
    let rows: Vec<(Value, Headers, u16, i64)> = vec![
        // The revision in `_meta`.
        (json!({}), whole.to_vec(), 400, -32602),
        (meta_with("protocolVersion", Some(json!(5))), vec![], 400, -32602),
        (json!({ "_meta": 5 }), whole.to_vec(), 400, -32602),
        // The header with the revision.
        (good.clone(), vec![], 400, -32020),
        (good.clone(), vec![method], 400, -32020),
        (good.clone(), vec![("mcp-protocol-version", LEGACY), method], 400, -32020),
        (future.clone(), vec![version, method], 400, -32020),
        (meta_with("clientCapabilities", None), vec![method], 400, -32020),
        // The revision itself.
        (future.clone(), vec![("mcp-protocol-version", "2031-01-01")], 400, -32022),
        (meta_with("protocolVersion", Some(json!(LEGACY))), vec![("mcp-protocol-version", LEGACY)], 400, -32022),
        // The capabilities.
        (meta_with("clientCapabilities", None), vec![version], 400, -32602),
        (meta_with("clientCapabilities", Some(json!([]))), whole.to_vec(), 400, -32602),
        // The method.
        (good.clone(), vec![version], 400, -32020),
        (good.clone(), vec![version, ("mcp-method", "Tools/List")], 400, -32020),
        (good.clone(), vec![version, ("mcp-method", "tools/call")], 400, -32020),
        (meta_with("clientInfo", None), whole.to_vec(), 200, 0),
        (good.clone(), vec![version, ("mcp-method", "  tools/list ")], 200, 0),
    ];
    for (params, headers, status, code) in rows {
        let (answered, body) = send(&key, "tools/list", params.clone(), &headers).await;
        let nobody = world.anonymous().with_bearer("nonsense");
        assert_eq!(send(&nobody, "tools/list", params.clone(), &headers).await.0, 401);
        assert_eq!(answered, status, "{params} {headers:?}: {body}");
        if status != 200 {
            assert_eq!(
                (&body["error"]["code"], &body["id"]),
                (&json!(code), &json!(7)),
                "{params} {headers:?}: {body}"
            );
        }
    }
    let (_, body) = send(&key, "tools/list", future, &[("mcp-protocol-version", "2031-01-01"), method]).await;
    assert_eq!(body["error"]["data"], json!({ "supported": KNOWN, "requested": "2031-01-01" }));
}

#[tokio::test]
async fn a_modern_call_repeats_the_name_of_its_tool() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let call = async |name: &str, headers: &[(&str, &str)]| {
        let params = json!({ "name": name, "arguments": {}, "_meta": modern_meta() });
        let common = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call")];
        send(&key, "tools/call", params, &[&common, headers].concat()).await
    };
    for (header, status) in [
        (None, 400),
        (Some("ping"), 400),
        (Some("WHOAMI"), 400),
        (Some("=?base64?d2hvYW1p?"), 400),
        (Some("=?base64?!?="), 400),
        (Some("whoami"), 200),
        (Some(" whoami "), 200),
        (Some("=?base64?d2hvYW1p?="), 200),
    ] {
        let headers: Vec<(&str, &str)> = header.map(|name| ("mcp-name", name)).into_iter().collect();
        let (answered, body) = call("whoami", &headers).await;
        assert_eq!(answered, status, "{header:?}: {body}");
        assert!(status == 200 || body["error"]["code"] == -32020, "{body}");
    }
}

#[tokio::test]
async fn a_request_is_legacy_unless_it_says_otherwise() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let version = |name| ("mcp-protocol-version", name);
    let initialize =
        json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let modern = json!({ "_meta": modern_meta() });
    let rows: Vec<(&str, Value, Headers, u16, i64)> = vec![
        ("tools/list", json!({}), vec![], 200, 0),
        ("tools/list", json!({}), vec![version("2025-03-26")], 200, 0),
        ("tools/list", json!({}), vec![version(LEGACY)], 200, 0),
        ("ping", json!({}), vec![version("2025-06-18")], 200, 0),
        ("tools/list", json!({}), vec![version("1999-01-01")], 400, -32602),
        ("tools/list", json!({}), vec![version("nonsense")], 400, -32602),
        ("initialize", initialize.clone(), vec![version("1999-01-01")], 400, -32600),
        ("initialize", initialize.clone(), vec![version(MODERN)], 400, -32602),
        ("server/discover", json!({}), vec![], 400, -32602),
        ("server/discover", json!({}), vec![version(LEGACY)], 400, -32602),
        ("resources/list", json!({}), vec![], 200, -32601),
        ("server/nothing", json!({}), vec![version(LEGACY)], 200, -32601),
        ("initialize", modern.clone(), vec![version(MODERN), ("mcp-method", "initialize")], 404, -32601),
        ("ping", modern.clone(), vec![version(MODERN), ("mcp-method", "ping")], 404, -32601),
        ("resources/list", modern, vec![version(MODERN), ("mcp-method", "resources/list")], 404, -32601),
        ("tools/list", json!({ "cursor": "a" }), vec![], 200, -32602),
    ];
    for (method, params, headers, status, code) in rows {
        let nobody = world.anonymous().with_bearer("nonsense");
        assert_eq!(send(&nobody, method, params.clone(), &headers).await.0, 401);
        let (answered, body) = send(&key, method, params, &headers).await;
        assert_eq!(answered, status, "{method} {headers:?}: {body}");
        assert_eq!(body["error"]["code"].as_i64().unwrap_or(0), code, "{method} {headers:?}: {body}");
    }
}

#[tokio::test]
async fn a_handshake_agrees_on_the_requested_revision_or_the_newest() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for (requested, agreed) in [
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!(LEGACY), LEGACY),
        (json!("2024-11-05"), LEGACY),
        (json!(MODERN), LEGACY),
        (json!(5), LEGACY),
        (Value::Null, LEGACY),
    ] {
        let params = json!({ "protocolVersion": requested, "capabilities": {} });
        let (status, body) = send(&key, "initialize", params, &[]).await;
        let result = &body["result"];
        assert_eq!((status, &result["protocolVersion"]), (200, &json!(agreed)), "{requested}: {body}");
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
        assert_eq!(result["serverInfo"]["name"], "partner-api");
        assert!(result.get("resultType").is_none() && result.get("_meta").is_none(), "{body}");
    }
}

#[tokio::test]
async fn results_of_each_era_have_its_members() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    let (modern, legacy) = (Assistant::new(&key, MODERN), Assistant::new(&key, LEGACY));
    let discovered = modern.result("server/discover", json!({})).await;
    assert_eq!(discovered["supportedVersions"], json!(KNOWN));
    assert_eq!((&discovered["ttlMs"], &discovered["cacheScope"]), (&json!(3_600_000), &json!("private")));
    let instructions = discovered["instructions"].as_str().unwrap();
    assert!(instructions.len() <= 700, "{} characters", instructions.len());
    for word in ["whoami", "idempotency_key", "destructive", "/llms.txt"] {
        assert!(instructions.contains(word), "{word}");
    }
    for (method, params) in [("tools/list", json!({})), ("tools/call", json!({ "name": "whoami" }))] {
        let (new, old) = (modern.result(method, params.clone()).await, legacy.result(method, params).await);
        assert_eq!(new["resultType"], "complete");
        assert_eq!(new["_meta"][format!("{META}serverInfo")]["name"], "partner-api");
        assert!(old.get("resultType").is_none() && old["_meta"].get(format!("{META}serverInfo")).is_none(), "{old}");
    }
    let listed = modern.result("tools/list", json!({})).await;
    assert_eq!((&listed["ttlMs"], &listed["cacheScope"]), (&json!(300_000), &json!("private")));
    assert!(legacy.result("tools/list", json!({})).await.get("ttlMs").is_none());
}

#[tokio::test]
async fn other_members_of_a_call_are_ignored() {
    let world = World::start().await;
    let key = world.coach("ada").await.partner_key().await;
    for version in [MODERN, LEGACY] {
        let params = json!({
            "name": "whoami", "arguments": {}, "inputResponses": 5, "requestState": {}, "task": { "ttl": 1 }, "more": [],
        });
        let result = Assistant::new(&key, version).result("tools/call", params).await;
        assert_eq!(result["isError"], false);
    }
}
