//! Headers of responses, and the parameter `Idempotency-Key`.

use domain::idempotency::MAX_KEY_CHARS;
use domain::rate_limit::{LOGIN_LINK_REQUEST, Limit, WINDOW_S};
use serde_json::{Map, Value, json};

pub(super) const REQUEST_ID: &str = "X-Request-Id";
pub(super) const RATE_LIMIT: &str = "RateLimit";
pub(super) const RATE_LIMIT_POLICY: &str = "RateLimit-Policy";
pub(super) const RETRY_AFTER: &str = "Retry-After";
pub(super) const REPLAY: &str = "Idempotent-Replay";
pub(super) const PAYLOAD_MISMATCH: &str = "Idempotency-Payload-Mismatch";
pub(super) const ALLOW: &str = "Allow";
pub(super) const AUTHENTICATE: &str = "WWW-Authenticate";
pub(super) const ETAG: &str = "ETag";
pub(super) const CACHE_CONTROL: &str = "Cache-Control";
pub(super) const LOCATION: &str = "Location";

/// A header of a response, required or optional.
#[derive(Clone, Copy)]
pub(super) struct ResponseHeader {
    name: &'static str,
    required: bool,
}

/// A header that every such response has.
pub(super) const fn always(name: &'static str) -> ResponseHeader {
    ResponseHeader { name, required: true }
}

/// A header that such a response may have.
pub(super) const fn sometimes(name: &'static str) -> ResponseHeader {
    ResponseHeader { name, required: false }
}

/// Renders references to the headers' components.
pub(super) fn references(headers: &[ResponseHeader]) -> Value {
    let reference = |header: &ResponseHeader| {
        let component = if header.required { header.name.to_owned() } else { optional_component(header.name) };
        (header.name.to_owned(), json!({ "$ref": format!("#/components/headers/{component}") }))
    };
    Value::Object(headers.iter().map(reference).collect())
}

fn optional_component(name: &str) -> String {
    format!("{name}.optional")
}

/// Renders the components of all headers, each once as required and once as optional.
pub(super) fn components() -> Value {
    let per_limit = |render: fn(&Limit) -> String| LOGIN_LINK_REQUEST.iter().map(render).collect::<Vec<_>>().join(", ");
    let policies = per_limit(|limit| format!("\"{}\";q={};w={WINDOW_S}", limit.policy(), limit.per_minute()));
    let left = per_limit(|limit| format!("\"{}\";r={};t=42", limit.policy(), limit.per_minute() - 1));
    let mut components = Map::new();
    let mut add = |name: &str, about: &str, schema: Value, example: Value| {
        for (name, required) in [(name.to_owned(), true), (optional_component(name), false)] {
            let header = json!({ "description": about, "required": required, "schema": schema, "example": example });
            components.insert(name, header);
        }
    };
    let text = || json!({ "type": "string" });
    let only_true = || json!({ "type": "string", "const": "true" });
    add(
        REQUEST_ID,
        "The id of the request, equal to `request_id` of an error. A replayed error has the `request_id` of the first \
         request.",
        text(),
        json!("JKJaXmPLvHcESHA="),
    );
    add(
        RATE_LIMIT_POLICY,
        "The limits that apply to the request: `q` requests in a calendar minute of `w` seconds.",
        text(),
        json!(policies),
    );
    add(
        RATE_LIMIT,
        "For each limit, the requests left (`r`) and the seconds (`t`) until the minute ends.",
        text(),
        json!(left),
    );
    add(
        RETRY_AFTER,
        "Seconds to wait. Sent with every 429 and 503 that has a `code`, and with 409 `idempotency_in_progress` and \
         `recovery_running`.",
        json!({ "type": "integer", "minimum": 1 }),
        json!(42),
    );
    add(REPLAY, "Sent with a replayed answer. It does not mean success.", only_true(), json!("true"));
    add(
        PAYLOAD_MISMATCH,
        "Sent with a replayed answer if the body of this request differs from the body of the recorded request.",
        only_true(),
        json!("true"),
    );
    add(ALLOW, "The methods that the path has.", text(), json!("GET, PATCH"));
    add(AUTHENTICATE, "How to present a key.", text(), json!("Bearer realm=\"partner-api\""));
    add(ETAG, "The version of the resource.", text(), json!("W/\"6f1ed002ab5595859014ebf0951522d9\""));
    add(CACHE_CONTROL, "How long a copy may be cached.", text(), json!("public, max-age=300"));
    add(
        LOCATION,
        "The target of the redirect.",
        json!({ "type": "string", "format": "uri" }),
        json!("https://coach.example/session"),
    );
    Value::Object(components)
}

/// Renders the parameter `Idempotency-Key`.
pub(super) fn idempotency_key(required: bool, about: impl Into<String>) -> Value {
    let about = about.into();
    json!({
        "name": "Idempotency-Key", "in": "header", "required": required, "description": about,
        "schema": { "type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS },
        "example": "order-20261120-0017",
    })
}
