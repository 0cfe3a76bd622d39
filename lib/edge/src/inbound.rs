//! A request as handlers see it, and how to read it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use bytes::Bytes;
use domain::fields::{Fields, Invalid};
pub use domain::fields::{MAX_BODY_BYTES, MAX_JSON_DEPTH};
use domain::time::Timestamp;
use http::{HeaderMap, Method, header};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::Instant;
use url::form_urlencoded;

use crate::problem::Problem;
use crate::routes::{Route, Routed, find};

/// UTF-8's byte order mark, which some clients put before a body.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Stands for the value of a header that is not visible ASCII. No media type and no coding is written so.
const UNREADABLE: &str = "?";

/// A request with its body.
#[derive(Clone)]
pub struct Inbound {
    pub method: Method,
    /// As sent, not decoded.
    pub path: String,
    pub headers: HeaderMap,
    /// `None`: the path or the method is unknown.
    pub route: Option<&'static Route>,
    /// Names the request in answers and logs.
    pub request_id: String,
    /// The time at which the request's handler began, for deadlines.
    pub(crate) received_at: Instant,
    /// The decoded parameters of the path. Empty if one does not decode.
    pub(crate) parameters: Vec<String>,
    query: String,
    body: Bytes,
    /// The body's JSON, parsed on first use.
    parsed: OnceLock<Result<Value, String>>,
    token_claims: Option<HashMap<String, String>>,
}
domain::discreet! { Inbound }

impl<S: Send + Sync> FromRequest<S> for Inbound {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let received_at = Instant::now();
        let (mut parts, body) = request.into_parts();
        let parameters = RawPathParams::from_request_parts(&mut parts, state).await;
        let parameters = parameters.map(|all| all.iter().map(|(_, value)| value.to_owned()).collect());
        let collected = body.collect().await.map_err(|error| Problem::internal("read the body", error))?;
        let token_claims = parts.extensions.remove().map(|TokenClaims(claims)| claims);
        let route = match find(&parts.method, parts.uri.path()) {
            Routed::Known(route) => Some(route),
            Routed::OtherMethods(_) | Routed::UnknownPath => None,
        };
        Ok(Self {
            route,
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: parts.headers,
            request_id: parts.extensions.get::<RequestId>().map_or_else(String::new, |id| id.0.clone()),
            received_at,
            parameters: parameters.unwrap_or_default(),
            body: collected.to_bytes(),
            parsed: OnceLock::new(),
            token_claims,
        })
    }
}

/// The gateway's id of the request.
#[derive(Debug, Clone)]
pub struct RequestId(pub String);

/// Claims of a token that the gateway's authorizer has verified.
#[derive(Clone)]
pub(crate) struct TokenClaims(pub(crate) HashMap<String, String>);

/// Returns the element of a list of one. The gateway passes each claim as text, and a list as `[a b]`.
fn only_element(claim: &str) -> &str {
    let elements = claim.strip_prefix('[').and_then(|claim| claim.strip_suffix(']'));
    elements.filter(|elements| !elements.contains(' ')).unwrap_or(claim)
}

impl Inbound {
    /// The decoded path parameter at this index. Empty if it does not decode: an empty id names nothing, and is refused
    /// after authentication.
    pub fn parameter(&self, index: usize) -> &str {
        self.parameters.get(index).map_or("", String::as_str)
    }

    /// The first value of a query parameter, decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        form_urlencoded::parse(self.query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    /// Refuses query parameters that the route does not have, by the first one's name.
    pub fn only_known_parameters(&self) -> Result<(), Invalid> {
        let known = self.route.map_or(&[][..], |route| route.query);
        let mut names = form_urlencoded::parse(self.query.as_bytes()).map(|(name, _)| name);
        match names.find(|name| !known.contains(&name.as_ref())) {
            Some(unknown) => Err(Invalid::unknown_parameter(&unknown, known)),
            None => Ok(()),
        }
    }

    /// A header's value, as sent.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(http::HeaderValue::as_bytes)
    }

    /// Returns true if the gateway has verified a token.
    pub fn has_session(&self) -> bool {
        self.token_claims.is_some()
    }

    /// A claim of the caller's verified token: a text, a number, or a list of one of them.
    pub fn token_claim(&self, name: &str) -> Option<&str> {
        self.token_claims.as_ref()?.get(name).map(|claim| only_element(claim))
    }

    /// Refuses a body that is too large.
    pub fn check_size(&self) -> Result<(), Problem> {
        if self.body.len() > MAX_BODY_BYTES { Err(Problem::BodyTooLarge) } else { Ok(()) }
    }

    /// Refuses a body that is compressed or of another media type than JSON. A request without a body needs neither.
    pub fn check_media_type(&self) -> Result<(), Problem> {
        if self.is_bodiless() {
            return Ok(());
        }
        let is_refused = |name, accepts: fn(&str) -> bool| {
            self.headers.get(name).is_some_and(|value| !accepts(value.to_str().unwrap_or(UNREADABLE)))
        };
        if is_refused(header::CONTENT_ENCODING, is_identity) {
            return Err(Problem::UnsupportedCoding);
        }
        if is_refused(header::CONTENT_TYPE, is_json) { Err(Problem::UnsupportedMediaType) } else { Ok(()) }
    }

    /// The body, a JSON object. A `Content-Type`, if sent, must name JSON.
    pub fn json(&self) -> Result<&Value, Problem> {
        self.check_media_type()?;
        if self.is_bodiless() {
            return Err(Problem::InvalidJson("the body is empty".to_owned()));
        }
        let value = match self.parsed() {
            Ok(value) => value,
            Err(reason) if reason.starts_with("recursion limit exceeded") => return Err(Problem::TooDeep),
            Err(reason) => return Err(Problem::InvalidJson(reason.clone())),
        };
        match value {
            Value::Object(_) if depth(value) > MAX_JSON_DEPTH => Err(Problem::TooDeep),
            Value::Object(_) => Ok(value),
            Value::Null => Err(Problem::InvalidJson("it is null".to_owned())),
            Value::Bool(_) => Err(Problem::InvalidJson("it is true or false".to_owned())),
            Value::Number(_) => Err(Problem::InvalidJson("it is a number".to_owned())),
            Value::String(_) => Err(Problem::InvalidJson("it is a string".to_owned())),
            Value::Array(_) => Err(Problem::InvalidJson("it is an array".to_owned())),
        }
    }

    /// The JSON body of a request whose body is optional.
    pub fn json_if_sent(&self) -> Result<Option<&Value>, Problem> {
        if self.is_bodiless() { Ok(None) } else { self.json().map(Some) }
    }

    /// Refuses a body with fields, for a route that takes none. A body without fields is allowed.
    pub fn refuse_fields(&self) -> Result<(), Problem> {
        let Some(body) = self.json_if_sent()? else { return Ok(()) };
        Ok(Fields::body(body)?.only(&[])?)
    }

    /// The body, if it is JSON of any kind. Checks nothing else.
    pub fn json_if_any(&self) -> Option<&Value> {
        self.parsed().ok()
    }

    /// The body's JSON, or the parser's error.
    fn parsed(&self) -> Result<&Value, &String> {
        let parse = || serde_json::from_slice(self.text()).map_err(|error| error.to_string());
        self.parsed.get_or_init(parse).as_ref()
    }

    /// The payload that identifies repeats: the body's JSON, or its text if it is not JSON.
    pub fn payload(&self) -> Cow<'_, Value> {
        let as_text = || Cow::Owned(Value::from(String::from_utf8_lossy(self.text())));
        self.json_if_any().map_or_else(as_text, Cow::Borrowed)
    }

    /// The body without a byte order mark before it.
    fn text(&self) -> &[u8] {
        self.body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.body)
    }

    /// Returns true if there is no body.
    pub fn is_bodiless(&self) -> bool {
        self.text().is_empty()
    }

    /// Returns true if `Accept` names the media type. `*/*` names none.
    pub fn accepts(&self, media_type: &str) -> bool {
        self.weight(media_type) > 0.0
    }

    /// Returns true if `Accept` names the media type, with a weight that is not below that of the other one.
    pub fn prefers(&self, media_type: &str, other: &str) -> bool {
        self.accepts(media_type) && self.weight(media_type) >= self.weight(other)
    }

    /// The weight of a media type in `Accept`: 0 if the header does not name it.
    fn weight(&self, media_type: &str) -> f32 {
        let accept = self.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let weights = accept.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            parts.next().filter(|kind| kind.eq_ignore_ascii_case(media_type))?;
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            Some(weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
        });
        weights.fold(0.0, f32::max)
    }
}

/// The time at which a request arrived, as the handlers take it.
pub fn arrival(clock: &dyn runtime::Clock) -> Timestamp {
    Timestamp::new(clock.now())
}

/// Returns true for JSON's media type, also one that a proxy has repeated (`application/json, application/json`).
fn is_json(content_type: &str) -> bool {
    let is_json_kind = |text: &str| {
        let kind = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
    };
    is_json_kind(content_type) || content_type.split(',').all(is_json_kind)
}

/// Returns true for a `Content-Encoding` that leaves the body as it is.
fn is_identity(codings: &str) -> bool {
    codings.split(',').map(str::trim).all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case("identity"))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("text/markdown", true)]
    #[case("text/markdown, text/html, */*", true)]
    #[case("Text/Markdown; charset=utf-8; q=0.9, text/html;q=0.9", true)]
    #[case("text/html, text/markdown;q=0.9", false)]
    #[case("text/html,application/xhtml+xml,*/*;q=0.8", false)]
    #[case("text/markdown;q=0", false)]
    #[case("text/*, */*", false)]
    #[case("", false)]
    #[tokio::test]
    async fn the_form_with_the_higher_weight_is_preferred(#[case] accept: &str, #[case] is_preferred: bool) {
        let request = http::Request::builder().header("accept", accept).body(axum::body::Body::empty()).unwrap();
        let inbound = Inbound::from_request(request, &()).await.unwrap();
        assert_eq!(inbound.prefers("text/markdown", "text/html"), is_preferred);
    }

    #[rstest::rstest]
    #[case("auth0|5f7c", "auth0|5f7c")]
    #[case("12345", "12345")]
    #[case("[auth0|5f7c]", "auth0|5f7c")]
    #[case("[a b]", "[a b]")]
    #[case("[]", "")]
    #[case("[a", "[a")]
    fn a_list_of_one_is_its_element(#[case] claim: &str, #[case] element: &str) {
        assert_eq!(only_element(claim), element);
    }
}
