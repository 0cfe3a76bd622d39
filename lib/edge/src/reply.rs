//! Answers: a record as JSON, or a problem in one of its two forms.
//!
//! A record is rendered once, straight to text. A tree of values in between cost a sixth of an availability answer. A
//! caller that asks for problem details pays for parsing the text again.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use domain::rate_limit::{Quota, WINDOW_S};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::claim::RecordedReply;

use crate::inbound::Inbound;
use crate::problem::{Fault, Problem};

/// Media types of answers. They name the charset: PowerShell 5 reads JSON as Latin-1 otherwise.
pub const JSON: &str = "application/json; charset=utf-8";
const PROBLEM_JSON: &str = "application/problem+json; charset=utf-8";

/// An answer before it becomes an HTTP response.
#[derive(Clone)]
pub struct Reply {
    pub status: StatusCode,
    /// JSON, rendered once.
    body: Vec<u8>,
    headers: Vec<(HeaderName, String)>,
}
domain::discreet! { Reply }

impl Reply {
    /// 200 with a record.
    pub fn ok(record: &impl Serialize) -> Result<Self, Problem> {
        Self::with(StatusCode::OK, record)
    }

    /// 201 with a record.
    pub fn created(record: &impl Serialize) -> Result<Self, Problem> {
        Self::with(StatusCode::CREATED, record)
    }

    /// 202 with a record.
    pub fn accepted(record: &impl Serialize) -> Result<Self, Problem> {
        Self::with(StatusCode::ACCEPTED, record)
    }

    fn with(status: StatusCode, record: &impl Serialize) -> Result<Self, Problem> {
        let body = serde_json::to_vec(record).map_err(|error| Problem::internal("render the answer", error))?;
        Ok(Self { status, body, headers: Vec::new() })
    }

    /// The size of the body in bytes.
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// A reply from its recorded parts.
    pub fn recorded(recorded: RecordedReply) -> Result<Self, Problem> {
        let status = StatusCode::from_u16(recorded.status);
        let status = status.map_err(|error| Problem::internal("replay an answer", error))?;
        Ok(Self { status, body: recorded.body, headers: Vec::new() })
    }

    /// The parts of the reply that are recorded.
    pub fn to_recorded(&self) -> RecordedReply {
        RecordedReply { status: self.status.as_u16(), body: self.body.clone() }
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((HeaderName::from_static(name), value.to_string()));
        self
    }

    /// A problem as an answer. A fault is logged here, once, under the `event_id` in the answer.
    pub fn problem(problem: &Problem, inbound: &Inbound) -> Self {
        let fault_id = match problem {
            Problem::Internal(fault) => Some(log_fault(fault)),
            Problem::Unconfirmed(fault) => {
                log_unconfirmed(fault);
                None
            }
            _ => None,
        };
        let body = Value::Object(problem.body(&inbound.request_id, fault_id)).to_string().into_bytes();
        let mut reply = Self { status: problem.code().status(), body, headers: Vec::new() };
        if let Some(seconds) = problem.retry_after_s() {
            reply = reply.header("retry-after", seconds);
        }
        if let Problem::MethodNotAllowed(methods) = problem {
            reply = reply.header("allow", methods.join(", "));
        }
        if reply.status == StatusCode::UNAUTHORIZED {
            reply = reply.header("www-authenticate", "Bearer realm=\"partner-api\"");
        }
        reply
    }

    /// Adds the caller's quotas of this minute, one entry per limit (IETF draft `ratelimit-headers`).
    pub fn with_quotas(self, quotas: &[Quota]) -> Self {
        if quotas.is_empty() {
            return self;
        }
        let listed = |render: fn(&Quota) -> String| quotas.iter().map(render).collect::<Vec<_>>().join(", ");
        let policies =
            listed(|quota| format!("\"{}\";q={};w={WINDOW_S}", quota.limit.policy(), quota.limit.per_minute()));
        let left = listed(|quota| format!("\"{}\";r={};t={}", quota.limit.policy(), quota.remaining, quota.reset_s));
        self.header("ratelimit-policy", policies).header("ratelimit", left)
    }

    /// The response, in the error format that the caller asked for.
    pub fn into_response_for(self, inbound: &Inbound) -> Response {
        let is_error = self.status.is_client_error() || self.status.is_server_error();
        let (kind, body) = if is_error && inbound.accepts("application/problem+json") {
            let own = serde_json::from_slice(&self.body).unwrap_or_default();
            let details = Value::Object(problem_details(self.status, own));
            (PROBLEM_JSON, details.to_string().into_bytes())
        } else {
            (JSON, self.body)
        };
        let mut response = (self.status, Body::from(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if is_error {
            headers.insert(header::VARY, HeaderValue::from_static(header::ACCEPT.as_str()));
        }
        if let Ok(id) = HeaderValue::from_str(&inbound.request_id) {
            headers.insert("x-request-id", id);
        }
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}

/// The problem details (RFC 9457) of an error, with the error's own members.
pub fn problem_details(status: StatusCode, own: Map<String, Value>) -> Map<String, Value> {
    let mut members = Map::from_iter([
        ("type".to_owned(), json!("about:blank")),
        ("title".to_owned(), json!(status.canonical_reason())),
        ("status".to_owned(), json!(status.as_u16())),
        ("detail".to_owned(), own.get("error").cloned().unwrap_or_default()),
    ]);
    members.extend(own);
    members
}

/// Logs a fault and returns its `event_id`.
pub(crate) fn log_fault(fault: &Fault) -> String {
    let fault_id = format!("err_{}", hex::encode(runtime::random_bytes::<12>()));
    let error = runtime::error_chain(&*fault.source);
    runtime::note("fault_id", fault_id.as_str());
    tracing::error!(fault_id, doing = fault.doing, error, "unhandled fault");
    fault_id
}

/// Logs an unconfirmed write. The level is a warning, since the caller's retry learns the result.
fn log_unconfirmed(fault: &Fault) {
    let error = runtime::error_chain(&*fault.source);
    tracing::warn!(doing = fault.doing, error, "a write could not be confirmed");
}

/// The response of axum's own rejections, which come before there is an [`Inbound`].
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let code = self.code();
        let body = json!({ "error": self.to_string(), "code": code.as_str() });
        let headers = [(header::CONTENT_TYPE, JSON), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
        (code.status(), headers, body.to_string()).into_response()
    }
}
