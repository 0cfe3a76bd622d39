//! Headers of responses.

use domain::mode::Mode;
use domain::rate_limit::{LOGIN_LINK_REQUEST, Limit, WINDOW_S};
use serde_json::{Map, Value, json};

use super::prose::INDEX;

pub(super) const REQUEST_ID: &str = "X-Request-Id";
pub(super) const RATE_LIMIT: &str = "RateLimit";
pub(super) const RATE_LIMIT_POLICY: &str = "RateLimit-Policy";
pub(super) const RETRY_AFTER: &str = "Retry-After";
pub(super) const REPLAY: &str = "Idempotent-Replay";
pub(super) const PAYLOAD_MISMATCH: &str = "Idempotency-Payload-Mismatch";
pub(super) const AUTHENTICATE: &str = "WWW-Authenticate";
pub(super) const ETAG: &str = "ETag";
pub(super) const CACHE_CONTROL: &str = "Cache-Control";
pub(super) const LOCATION: &str = "Location";
pub(super) const MODE: &str = "X-Mode";

/// All headers, by name.
const NAMES: [&str; 11] = [
    CACHE_CONTROL,
    ETAG,
    PAYLOAD_MISMATCH,
    REPLAY,
    LOCATION,
    RATE_LIMIT,
    RATE_LIMIT_POLICY,
    RETRY_AFTER,
    AUTHENTICATE,
    MODE,
    REQUEST_ID,
];

/// Returns the headers of a deployment of this mode, by name.
pub(crate) fn names(mode: Mode) -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().filter(move |name| mode == Mode::Test || *name != MODE)
}

/// End of the names of components for headers that a response may lack.
const OPTIONAL: &str = ".optional";

/// Returns the component of a header that every such response has.
pub(super) fn always(name: &str) -> String {
    name.to_owned()
}

/// Returns the component of a header that such a response may have.
pub(super) fn sometimes(name: &str) -> String {
    format!("{name}{OPTIONAL}")
}

/// Returns the name of a component's header.
pub(super) fn name_of(component: &str) -> &str {
    component.trim_end_matches(OPTIONAL)
}

/// Renders references to components, by the headers' names.
pub(super) fn references(components: &[String]) -> Value {
    let reference = |component: &String| {
        (name_of(component).to_owned(), json!({ "$ref": format!("#/components/headers/{component}") }))
    };
    Value::Object(components.iter().map(reference).collect())
}

/// Renders the components that the document refers to: a header as required, as optional, or both.
pub(super) fn components(referring: &[&Value]) -> Value {
    let text: String = referring.iter().map(|part| part.to_string()).collect();
    let mut all = all_components();
    all.retain(|component, _| text.contains(&format!("\"#/components/headers/{component}\"")));
    Value::Object(all)
}

/// Renders each header once as required and once as optional.
fn all_components() -> Map<String, Value> {
    let per_limit = |render: fn(&Limit) -> String| LOGIN_LINK_REQUEST.iter().map(render).collect::<Vec<_>>().join(", ");
    let policies = per_limit(|limit| format!("\"{}\";q={};w={WINDOW_S}", limit.policy(), limit.per_minute()));
    let left = per_limit(|limit| format!("\"{}\";r={};t=42", limit.policy(), limit.per_minute() - 1));
    let text = json!({ "type": "string" });
    let only_true = json!({ "type": "string", "const": "true" });
    let headers = [
        (REQUEST_ID, &text, json!("JKJaXmPLvHcESHA=")),
        (RATE_LIMIT_POLICY, &text, json!(policies)),
        (RATE_LIMIT, &text, json!(left)),
        (RETRY_AFTER, &json!({ "type": "integer", "minimum": 1 }), json!(42)),
        (REPLAY, &only_true, json!("true")),
        (PAYLOAD_MISMATCH, &only_true, json!("true")),
        (AUTHENTICATE, &text, json!("Bearer realm=\"partner-api\"")),
        (ETAG, &text, json!("W/\"6f1ed002ab5595859014ebf0951522d9\"")),
        (CACHE_CONTROL, &text, json!("public, max-age=300")),
        (LOCATION, &json!({ "type": "string", "format": "uri-reference" }), json!("https://coach.example/session")),
        (MODE, &json!({ "type": "string", "const": Mode::Test }), json!(Mode::Test)),
    ];
    let render = |(name, schema, example): (&str, &Value, Value)| {
        let about = &INDEX.top.parts[name];
        [(always(name), true), (sometimes(name), false)].map(|(component, required)| {
            let header = json!({ "description": about, "required": required, "schema": schema, "example": example });
            (component, header)
        })
    };
    headers.into_iter().flat_map(render).collect()
}
