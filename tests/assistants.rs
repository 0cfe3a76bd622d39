//! `POST /mcp`: assistants use the API with a coach's key, in both eras of the Model Context Protocol.

mod calls;
mod eras;
mod once;
mod tools;
mod transport;

use serde_json::{Value, json};

use crate::world::{Call, Caller, Reply};

/// The revision without a handshake, and the newest one with it.
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";
const ERAS: [&str; 2] = [MODERN, LEGACY];
const META: &str = "io.modelcontextprotocol/";

/// The `_meta` of a modern request.
fn modern_meta() -> Value {
    json!({ format!("{META}protocolVersion"): MODERN, format!("{META}clientCapabilities"): {} })
}

/// An assistant with a key, which speaks one revision.
#[derive(Clone)]
pub(crate) struct Assistant {
    pub(crate) key: Caller,
    pub(crate) version: &'static str,
}

impl Assistant {
    pub(crate) fn new(key: &Caller, version: &'static str) -> Self {
        Self { key: key.clone(), version }
    }

    /// A request as a client of the revision sends it.
    pub(crate) fn request(&self, method: &str, mut params: Value) -> Call {
        let call = self.key.call("POST", "/mcp").header("mcp-protocol-version", self.version);
        let call = if self.version == MODERN {
            params["_meta"] = modern_meta();
            let call = call.header("mcp-method", method);
            match params["name"].as_str() {
                Some(name) if method == "tools/call" => call.header("mcp-name", name),
                _ => call,
            }
        } else {
            call
        };
        call.json(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }))
    }

    /// The result of a request that succeeds.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let reply = self.request(method, params).await.expect(200);
        assert_eq!((&reply.body["jsonrpc"], &reply.body["id"]), (&json!("2.0"), &json!(7)), "{}", reply.text);
        assert!(reply.body["result"].is_object(), "{}", reply.text);
        reply.body["result"].clone()
    }

    /// The names of the tools that are listed.
    pub(crate) async fn tools(&self) -> Vec<String> {
        let listed = self.result("tools/list", json!({})).await;
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The call of a tool.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Call {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The structured result of a call that succeeds.
    pub(crate) async fn done(&self, tool: &str, arguments: Value) -> Value {
        result_of(&self.call(tool, arguments).await)["structuredContent"].clone()
    }

    /// The text of a call that is refused.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> String {
        error_of(&self.call(tool, arguments).await)
    }
}

/// The result in the answer to a call that succeeded.
#[track_caller]
pub(crate) fn result_of(reply: &Reply) -> Value {
    let result = &reply.body["result"];
    assert_eq!((reply.status, &result["isError"]), (200, &json!(false)), "{}", reply.text);
    result.clone()
}

/// The text in the answer to a call that was refused.
#[track_caller]
pub(crate) fn error_of(reply: &Reply) -> String {
    let result = &reply.body["result"];
    assert_eq!((reply.status, &result["isError"]), (200, &json!(true)), "{}", reply.text);
    assert!(result.get("structuredContent").is_none(), "{}", reply.text);
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{}", reply.text);
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
