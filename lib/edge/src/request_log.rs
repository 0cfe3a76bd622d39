//! The request log: keeps a record of each request with a known key that wrote or was refused.
//!
//! The record is written when the answer is decided and before it leaves, once and for a short time. It never changes
//! the answer: a failure is a figure of the function's log. A function that dies before the record has done its work,
//! and the repeat is a replay.
//!
//! The caller's key is known from the notes of the gate, the code and the replay from the answer itself.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use domain::id::{CoachId, KeyId};
use domain::rate_limit::Minute;
use domain::request_log::{
    KEY_HASH_DIGITS, KeptRequests, MAX_CLIENT_CHARS, MAX_USER_AGENT_CHARS, RequestClient, RequestMethod, RequestRecord,
    shown_header,
};
use domain::time::Timestamp;
use domain::tool;
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use runtime::{BoxError, Clock, Environment, Metric, Unit, add, error_chain, noted};
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::request_log::Requests;
use url::form_urlencoded;

use crate::gate::{NOTED_COACH, NOTED_KEY};
use crate::inbound::{RequestId, arrival};
use crate::routes::{OWN_REQUESTS, Route};

/// The setting of the kept requests. A function without it keeps none.
const SETTING: &str = "REQUEST_LOG";
/// Records that could not be kept.
const REQUEST_LOG_LOST: Metric = Metric::logged("request_log_lost", Unit::Count);
/// Most keys whose refusals of one minute are remembered. More begin anew, and then a key may have a second record.
const MAX_REMEMBERED_KEYS: usize = 10_000;

/// Keeps requests. Clones share the memory of refusals.
#[derive(Clone)]
pub(crate) struct RequestLog {
    kept: KeptRequests,
    requests: Requests,
    clock: Arc<dyn Clock>,
    refusals: Arc<Mutex<Refusals>>,
}

/// The keys of the current minute that have a record of a refusal by credential or by limit.
#[derive(Default)]
struct Refusals {
    minute: Option<Minute>,
    keys: HashSet<KeyId>,
}

/// The parts of a request that its record shows.
pub(crate) struct Arrived {
    at: Timestamp,
    began: Instant,
    route: &'static Route,
    id: String,
    uri: Uri,
    headers: HeaderMap,
}

impl RequestLog {
    /// The log of a function, by its setting. `None`: nothing is kept.
    pub(crate) fn of(env: &Environment) -> Result<Option<Self>, BoxError> {
        let kept = env.config().find(SETTING).map_or(Ok(KeptRequests::Off), KeptRequests::parse);
        let kept = kept.map_err(|rule| format!("{SETTING} {rule}"))?;
        if kept == KeptRequests::Off {
            return Ok(None);
        }
        let requests = Requests::to_keep(env)?;
        Ok(Some(Self { kept, requests, clock: env.clock(), refusals: Arc::default() }))
    }

    /// Notes the arrival of a request. `None`: requests of its route are not kept.
    pub(crate) fn arrived(&self, route: &'static Route, request: &Request<Body>) -> Option<Arrived> {
        let is_kept = route.takes_key() && route.path != OWN_REQUESTS;
        is_kept.then(|| Arrived {
            at: arrival(&*self.clock),
            began: Instant::now(),
            route,
            id: request.extensions().get::<RequestId>().map_or_else(String::new, |id| id.0.clone()),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
        })
    }

    /// Keeps a request that is answered like this, if it is one to keep.
    pub(crate) async fn keep(&self, arrived: Arrived, answer: &Response<Bytes>) {
        let status = answer.status();
        if !self.kept.include(arrived.route.writes(), status.as_u16()) {
            return;
        }
        let coach = noted(NOTED_COACH).and_then(|id| CoachId::parse(&id).ok());
        let key = noted(NOTED_KEY).and_then(|id| KeyId::parse(&id).ok());
        let (Some(coach), Some(key)) = (coach, key) else { return };
        let is_flood = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS);
        if is_flood && !self.is_first(&key, arrived.at) {
            return;
        }
        let Some(record) = arrived.record(key, answer) else { return };
        if let Err(error) = self.requests.put(&coach, record).await {
            tracing::warn!(error = error_chain(&error), "could not keep the record of a request");
            add(REQUEST_LOG_LOST, 1.0);
        }
    }

    /// Returns true for the first refusal of a key in its minute, as far as this environment knows.
    fn is_first(&self, key: &KeyId, at: Timestamp) -> bool {
        let minute = Some(Minute::of(at));
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.minute != minute || refusals.keys.len() >= MAX_REMEMBERED_KEYS {
            *refusals = Refusals { minute, keys: HashSet::new() };
        }
        refusals.keys.insert(key.clone())
    }
}

impl Arrived {
    fn record(self, key_id: KeyId, answer: &Response<Bytes>) -> Option<RequestRecord> {
        let status = answer.status();
        let is_refusal = status.is_client_error() || status.is_server_error();
        let body = if is_refusal { serde_json::from_slice(answer.body()).unwrap_or_default() } else { Value::Null };
        let header = |name: &str| self.headers.get(name).map(http::HeaderValue::as_bytes);
        let hash = |key: &[u8]| hex::encode(Sha256::digest(key))[..KEY_HASH_DIGITS].to_owned();
        Some(RequestRecord {
            at: self.at,
            key_id,
            method: RequestMethod::parse(self.route.method).ok()?,
            route: self.route.path.to_owned(),
            target: self.target(),
            status: status.as_u16(),
            code: body["code"].as_str().map(str::to_owned),
            replayed: answer.headers().contains_key("idempotent-replay"),
            duration_ms: u32::try_from(self.began.elapsed().as_millis()).unwrap_or(u32::MAX),
            idempotency_key_sha256: header("idempotency-key").filter(|key| !key.is_empty()).map(hash),
            client: self.client(),
            parameters: self.parameters(),
            id: self.id,
        })
    }

    /// The id in the path.
    fn target(&self) -> Option<String> {
        let mut segments = self.route.path.split('/').zip(self.uri.path().split('/'));
        let (_, segment) = segments.find(|(template, _)| template.starts_with('{'))?;
        self.route.ids.first()?.parse(&percent_decode_str(segment).decode_utf8().ok()?)
    }

    /// The program that called. `mcp` names an assistant's tool and program in its requests.
    fn client(&self) -> RequestClient {
        let shown = |name: &str, most| self.headers.get(name).and_then(|value| shown_header(value.as_bytes(), most));
        let tool = shown("x-mcp-tool", MAX_CLIENT_CHARS).and_then(|name| tool::find(&name));
        RequestClient {
            client: tool.and_then(|_| shown("x-mcp-client", MAX_CLIENT_CHARS)),
            tool: tool.map(|tool| tool.name.to_owned()),
            user_agent: shown(header::USER_AGENT.as_str(), MAX_USER_AGENT_CHARS),
        }
    }

    /// The names of the sent query parameters that the route knows.
    fn parameters(&self) -> Vec<String> {
        let query = self.uri.query().unwrap_or_default();
        let is_sent = |known: &str| form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == known);
        self.route.query.iter().filter(|name| is_sent(name)).map(|name| (*name).to_owned()).collect()
    }
}
