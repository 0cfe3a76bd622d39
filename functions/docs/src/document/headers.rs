//! Headers of answers.

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

/// A header of an answer, which is always there or where it applies.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    name: &'static str,
    always: bool,
}

/// A header that is always there.
pub(super) const fn always(name: &'static str) -> Sent {
    Sent { name, always: true }
}

/// A header that is there where it applies.
pub(super) const fn at_times(name: &'static str) -> Sent {
    Sent { name, always: false }
}

/// References to these headers.
pub(super) fn references(sent: &[Sent]) -> Value {
    let reference = |sent: &Sent| {
        let name = if sent.always { sent.name.to_owned() } else { optional(sent.name) };
        (sent.name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))
    };
    Value::Object(sent.iter().map(reference).collect())
}

fn optional(name: &str) -> String {
    format!("{name}.optional")
}

/// All headers, each once as always there and once as not.
pub(super) fn components() -> Value {
    let listed = |one: fn(&Limit) -> String| LOGIN_LINK_REQUEST.iter().map(one).collect::<Vec<_>>().join(", ");
    let policies = listed(|limit| format!("\"{}\";q={};w={WINDOW_S}", limit.policy(), limit.per_minute()));
    let left = listed(|limit| format!("\"{}\";r={};t=42", limit.policy(), limit.per_minute() - 1));
    let mut components = Map::new();
    let mut header = |name: &str, about: &str, schema: Value, example: Value| {
        for (name, required) in [(name.to_owned(), true), (optional(name), false)] {
            let header = json!({ "description": about, "required": required, "schema": schema, "example": example });
            components.insert(name, header);
        }
    };
    let text = || json!({ "type": "string" });
    let truth = || json!({ "type": "string", "const": "true" });
    header(
        REQUEST_ID,
        "The id of the request, equal to `request_id` of an error. A replayed error has the `request_id` of the first \
         request.",
        text(),
        json!("JKJaXmPLvHcESHA="),
    );
    header(
        RATE_LIMIT_POLICY,
        "The limits that apply to the request: `q` requests in a calendar minute of `w` seconds.",
        text(),
        json!(policies),
    );
    header(
        RATE_LIMIT,
        "For each limit, the requests left (`r`) and the seconds (`t`) until the minute ends.",
        text(),
        json!(left),
    );
    header(
        RETRY_AFTER,
        "Seconds to wait. Sent with every 429 and 503 that has a `code`, and with 409 `idempotency_in_progress` and \
         `recovery_running`.",
        json!({ "type": "integer", "minimum": 1 }),
        json!(42),
    );
    header(REPLAY, "Sent with a replayed answer. It does not mean success.", truth(), json!("true"));
    header(
        PAYLOAD_MISMATCH,
        "Sent with a replayed answer if the body of this request differs from the body of the recorded request.",
        truth(),
        json!("true"),
    );
    header(ALLOW, "The methods that the path has.", text(), json!("GET, PATCH"));
    header(AUTHENTICATE, "How to present a key.", text(), json!("Bearer realm=\"partner-api\""));
    header(ETAG, "The version of the resource.", text(), json!("W/\"6f1ed002ab5595859014ebf0951522d9\""));
    header(CACHE_CONTROL, "How long a copy may be cached.", text(), json!("public, max-age=300"));
    header(
        LOCATION,
        "The target of the redirect.",
        json!({ "type": "string", "format": "uri" }),
        json!("https://coach.example/session"),
    );
    Value::Object(components)
}

/// `Idempotency-Key`, as a parameter.
pub(super) fn idempotency_key(required: bool, about: &str) -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "required": required, "description": about,
        "schema": { "type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS },
        "example": "order-20261120-0017",
    })
}
