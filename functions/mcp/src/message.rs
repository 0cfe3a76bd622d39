//! A message of JSON-RPC, and the revision of the protocol that its sender speaks.
//!
//! A modern request (2026-07-28) names its revision in `params._meta` and repeats it in headers. A legacy request
//! follows a handshake of which nothing is kept, so it stands alone, too.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use edge::{Inbound, Problem};
use serde_json::{Value, json};

use crate::fault::{Fault, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, UNSUPPORTED_VERSION};

/// The revision without a handshake.
pub(crate) const MODERN: &str = "2026-07-28";
/// The revisions with a handshake, the newest first.
pub(crate) const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// All revisions, the newest first.
pub(crate) const SUPPORTED: [&str; 4] = [MODERN, LEGACY[0], LEGACY[1], LEGACY[2]];
/// The prefix of the protocol's own members of `_meta`.
const PREFIX: &str = "io.modelcontextprotocol/";

pub(crate) const CALL: &str = "tools/call";
pub(crate) const DISCOVER: &str = "server/discover";
pub(crate) const INITIALIZE: &str = "initialize";

/// The form of a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

/// A request, which gets an answer under its id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) id: &'a Value,
    pub(crate) method: &'a str,
    /// An object.
    pub(crate) params: &'a Value,
    pub(crate) era: Era,
}

/// A message that is well formed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Received<'a> {
    /// Gets no answer.
    Notification,
    Request(Request<'a>),
}

/// The parameters of a message without any.
static NO_PARAMS: LazyLock<Value> = LazyLock::new(|| json!({}));

/// Reads the message of a request whose size and media type are checked.
pub(crate) fn read(inbound: &Inbound) -> Result<Received<'_>, Fault> {
    let body = match (inbound.json(), inbound.json_if_any()) {
        (Ok(body), _) => body,
        (Err(Problem::TooDeep), _) | (_, None) => {
            return Err(Fault::bad(PARSE_ERROR, "The body must be JSON that is not nested too deeply."));
        }
        (Err(_), Some(_)) => return Err(Fault::bad(INVALID_REQUEST, "The body must be one JSON-RPC object.")),
    };
    let is_usable = |id: &&Value| id.is_string() || id.is_i64() || id.is_u64();
    let id = body.get("id");
    let refuse = |rule: &str| Fault::bad(INVALID_REQUEST, rule).with_id(id.filter(is_usable));
    if body["jsonrpc"] != "2.0" {
        return Err(refuse("jsonrpc must be \"2.0\"."));
    }
    let method = body["method"].as_str().ok_or_else(|| refuse("method must be a string. Responses are not taken."))?;
    if id.is_some_and(|id| !is_usable(&id)) {
        return Err(refuse("id must be a string or an integer."));
    }
    let params = body.get("params").unwrap_or(&NO_PARAMS);
    if !params.is_object() {
        return Err(refuse("params must be an object."));
    }
    let Some(id) = id else { return Ok(Received::Notification) };
    let era = era(inbound, method, params).map_err(|fault| fault.with_id(Some(id)))?;
    Ok(Received::Request(Request { id, method, params, era }))
}

/// Returns a member of `_meta` that the protocol defines.
pub(crate) fn meta<'a>(params: &'a Value, name: &str) -> Option<&'a Value> {
    params["_meta"].get(format!("{PREFIX}{name}"))
}

/// Returns the name of a member of `_meta` that the protocol defines.
pub(crate) fn meta_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// A header as text. One that is not ASCII is a text that nothing equals.
fn header<'a>(inbound: &'a Inbound, name: &str) -> Option<&'a str> {
    inbound.headers.get(name).map(|value| value.to_str().unwrap_or("?").trim())
}

/// The era of a request, whose rules it keeps.
fn era(inbound: &Inbound, method: &str, params: &Value) -> Result<Era, Fault> {
    let version = header(inbound, "mcp-protocol-version");
    let is_legacy = |version: &str| LEGACY.contains(&version);
    let names_modern =
        version.is_some_and(|version| version == MODERN || (!is_legacy(version) && method != INITIALIZE));
    if meta(params, "protocolVersion").is_some() || names_modern || method == DISCOVER {
        check_modern(inbound, version, method, params)?;
        return Ok(Era::Modern);
    }
    match version.filter(|version| !is_legacy(version)) {
        Some(_) => {
            let rule = format!("MCP-Protocol-Version must be one of {}.", SUPPORTED.join(", "));
            Err(Fault::bad(INVALID_REQUEST, &rule))
        }
        None => Ok(Era::Legacy),
    }
}

fn check_modern(inbound: &Inbound, version: Option<&str>, method: &str, params: &Value) -> Result<(), Fault> {
    let mismatch = |rule: &str| Err(Fault::bad(HEADER_MISMATCH, rule));
    let invalid = |name: &str, rule: &str| Err(Fault::bad(INVALID_PARAMS, &format!("_meta.{PREFIX}{name} {rule}")));
    let Some(named) = meta(params, "protocolVersion").and_then(Value::as_str) else {
        return invalid("protocolVersion", "must name the revision.");
    };
    if version != Some(named) {
        return mismatch("MCP-Protocol-Version must be there and equal the revision in _meta.");
    }
    if named != MODERN {
        let data = json!({ "supported": SUPPORTED, "requested": named });
        return Err(Fault { data: Some(data), ..Fault::bad(UNSUPPORTED_VERSION, "This revision is not supported.") });
    }
    if !meta(params, "clientCapabilities").is_some_and(Value::is_object) {
        return invalid("clientCapabilities", "must be an object.");
    }
    if header(inbound, "mcp-method") != Some(method) {
        return mismatch("Mcp-Method must be there and equal the method.");
    }
    if method == CALL {
        let named = header(inbound, "mcp-name").map(decoded);
        let is_other = |name: &str| named.as_deref() != Some(name);
        if named.is_none() || params["name"].as_str().is_some_and(is_other) {
            return mismatch("Mcp-Name must be there and equal the name of the tool.");
        }
    }
    Ok(())
}

/// Decodes a header that may be written as `=?base64?..?=`.
fn decoded(text: &str) -> String {
    let encoded = text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?="));
    let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| text.to_owned())
}
