//! The routes `/_local/*`, which only the local stack has. Errors are JSON `{"error": ..}` with one line of text.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{any, get, post};
use chrono::TimeDelta;
use http::StatusCode;
use http::header::{CONNECTION, HeaderMap};
use local_aws::FaultPlan;
use runtime::Clock;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::loopback;
use crate::stack::Stack;

/// Default for the `limit` of a listing.
const DEFAULT_LIMIT: usize = 100;

/// Size limit of a request body.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The routes, as a 404 lists them.
const ROUTES: [&str; 13] = [
    "GET /_local/health",
    "POST /_local/clock {\"advance_s\": seconds}",
    "POST /_local/settle",
    "GET /_local/mail",
    "GET /_local/faults",
    "POST /_local/faults {\"mail_failures\"?, \"store_failures\"?, \"store_lost_answers\"?, \"store_conflicts\"?, \
     \"store_latency_ms\"?, \"crash_after_commit\"?, \"crash_before_call\"?, \"stalled_calls\"?, \"duplicate_messages\"?, \
     \"function\"?, \"spared_calls\"?}",
    "POST /_local/session {\"coach_id\": id}",
    "GET /_local/calls?function=name&limit=n",
    "GET /_local/events?source=partner-api&limit=n",
    "GET /_local/settings#token=token",
    "GET /_local/receiver, /_local/receiver.json",
    "POST /_local/receiver/hooks/{name}",
    "POST /_local/receiver/secrets/{name} {\"secret\": secret}",
];

/// An error response: status and message.
struct ControlError(StatusCode, String);

type Answer = Result<Response, ControlError>;

/// Builds the router of `/_local/*`.
pub(crate) fn router(stack: Arc<Stack>) -> Router {
    Router::new()
        .route("/_local/health", get(health))
        .route("/_local/clock", post(clock))
        .route("/_local/settle", post(settle))
        .route("/_local/mail", get(mail))
        .route("/_local/faults", get(faults).post(set_faults))
        .route("/_local/session", post(session))
        .route("/_local/calls", get(calls))
        .route("/_local/events", get(events))
        .route("/_local/settings", get(async || Html(include_str!("pages/settings.html"))))
        .route("/_local/receiver", get(async || Html(include_str!("pages/receiver.html"))))
        .route("/_local/receiver.json", get(receiver_json))
        .route("/_local/receiver/hooks/{name}", post(hook))
        .route("/_local/receiver/secrets/{name}", post(secret))
        .route("/_local", any(unknown))
        .route("/_local/", any(unknown))
        .route("/_local/{*rest}", any(unknown))
        .method_not_allowed_fallback(unknown)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(middleware::from_fn(read_to_end))
        .layer(middleware::from_fn(loopback::guard))
        .with_state(stack)
}

/// Reads the whole body before the route answers, even if the route does not use it.
///
/// If a route responds before the body arrived, hyper closes the connection without announcing it. The next request of
/// a client that reuses the connection would be lost.
async fn read_to_end(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match to_bytes(body, MAX_BODY_BYTES).await {
        Ok(body) => next.run(Request::from_parts(head, Body::from(body))).await,
        Err(_) => {
            let message = format!("the body cannot be read, or has more than {MAX_BODY_BYTES} bytes");
            ([(CONNECTION, "close")], ControlError(StatusCode::PAYLOAD_TOO_LARGE, message)).into_response()
        }
    }
}

async fn health(State(stack): State<Arc<Stack>>) -> Response {
    let ready = stack.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(json!({ "ready": ready, "now": stack.now() }))).into_response()
}

async fn clock(State(stack): State<Arc<Stack>>, body: Bytes) -> Answer {
    const RULE: &str = "advance_s must be a number of seconds from 0 on: {\"advance_s\": 60}";
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Advance {
        advance_s: Value,
    }
    let request: Advance = parsed(&body, RULE)?;
    let seconds = request.advance_s.as_f64().filter(|seconds| *seconds >= 0.0).ok_or_else(|| bad_request(RULE))?;
    // The cast saturates, and the clock refuses the largest value.
    let by = TimeDelta::milliseconds((seconds * 1_000.0).round() as i64);
    // Spawned, so that it continues when the caller stops waiting: an aborted advance would leave due work behind.
    let advance = tokio::spawn(async move { stack.timeline.advance(by).await });
    match advance.await {
        Ok(Ok(now)) => Ok(axum::Json(json!({ "now": rendered(now) })).into_response()),
        Ok(Err(crate::advance::AdvanceError::Clock(error @ crate::clock::ClockError::TooFar))) => {
            Err(bad_request(&error.to_string()))
        }
        Ok(Err(error)) => Err(ControlError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
        Err(error) => Err(ControlError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

async fn settle(State(stack): State<Arc<Stack>>) -> Answer {
    stack.timeline.settle().await.map_err(internal)?;
    Ok(axum::Json(json!({ "settled": true, "now": stack.now() })).into_response())
}

async fn mail(State(stack): State<Arc<Stack>>) -> Answer {
    Ok(axum::Json(stack.timeline.aws.mail().mails().await.map_err(internal)?).into_response())
}

async fn faults(State(stack): State<Arc<Stack>>) -> axum::Json<Value> {
    axum::Json(stack.timeline.aws.faults().current())
}

async fn set_faults(State(stack): State<Arc<Stack>>, body: Bytes) -> Answer {
    let plan: FaultPlan = parsed(
        &body,
        "takes an object with mail_failures, store_failures, store_lost_answers, store_conflicts, store_latency_ms, \
         crash_after_commit, crash_before_call, stalled_calls, spared_calls (numbers), duplicate_messages (true or false) and function (text)",
    )?;
    if let Some(function) = plan.function.as_deref().filter(|function| !function.is_empty()) {
        check_function(&stack, function)?;
    }
    let faults = stack.timeline.aws.faults();
    faults.set(plan);
    Ok(axum::Json(faults.current()).into_response())
}

async fn session(State(stack): State<Arc<Stack>>, body: Bytes) -> Answer {
    const RULE: &str = "coach_id must be a text that is not empty: {\"coach_id\": id}";
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Session {
        coach_id: String,
    }
    let session: Session = parsed(&body, RULE)?;
    if session.coach_id.is_empty() {
        return Err(bad_request(RULE));
    }
    let token = stack.gateway.token(&session.coach_id);
    let token =
        token.ok_or_else(|| ControlError(StatusCode::NOT_FOUND, "the template has no authorizer".to_owned()))?;
    Ok(axum::Json(json!({ "token": token })).into_response())
}

#[derive(Deserialize)]
struct Listing {
    function: Option<String>,
    source: Option<String>,
    limit: Option<usize>,
}

type ListingQuery = Result<Query<Listing>, QueryRejection>;

fn listing(query: ListingQuery) -> Result<(Listing, usize), ControlError> {
    let refused = |error: QueryRejection| bad_request(&format!("limit must be a whole number ({})", error.body_text()));
    let Query(listing) = query.map_err(refused)?;
    let limit = listing.limit.unwrap_or(DEFAULT_LIMIT);
    Ok((listing, limit))
}

async fn calls(State(stack): State<Arc<Stack>>, query: ListingQuery) -> Answer {
    let (listing, limit) = listing(query)?;
    if let Some(function) = &listing.function {
        check_function(&stack, function)?;
    }
    Ok(axum::Json(stack.history.latest(listing.function.as_deref(), limit)).into_response())
}

/// Refuses an unknown function name.
fn check_function(stack: &Stack, name: &str) -> Result<(), ControlError> {
    let names = stack.timeline.aws.access().functions();
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    Err(bad_request(&format!("there is no function {name:?}; there are {}", names.join(", "))))
}

async fn events(State(stack): State<Arc<Stack>>, query: ListingQuery) -> Answer {
    let (listing, limit) = listing(query)?;
    let events = stack.timeline.aws.bus().events(listing.source.as_deref(), limit).await;
    Ok(axum::Json(events.map_err(internal)?).into_response())
}

async fn receiver_json(State(stack): State<Arc<Stack>>) -> Response {
    axum::Json(stack.receiver.received()).into_response()
}

async fn hook(
    State(stack): State<Arc<Stack>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    stack.receiver.receive(&name, &headers, &body);
    StatusCode::NO_CONTENT
}

async fn secret(
    State(stack): State<Arc<Stack>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<StatusCode, ControlError> {
    #[derive(Deserialize)]
    struct Secret {
        secret: String,
    }
    let given: Secret = parsed(&body, "takes the endpoint's secret: {\"secret\": secret}")?;
    stack.receiver.add_secret(&name, &given.secret);
    Ok(StatusCode::NO_CONTENT)
}

async fn unknown() -> Response {
    let body = json!({ "error": "there is no such route on the local stack", "routes": ROUTES });
    (StatusCode::NOT_FOUND, axum::Json(body)).into_response()
}

/// Renders a time in RFC 3339 with milliseconds.
pub(crate) fn rendered(time: chrono::DateTime<chrono::Utc>) -> String {
    time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

impl Stack {
    fn now(&self) -> String {
        rendered(self.timeline.clock.now())
    }
}

fn parsed<T: DeserializeOwned>(body: &[u8], rule: &str) -> Result<T, ControlError> {
    serde_json::from_slice(body).map_err(|error| bad_request(&format!("{rule} ({error})")))
}

fn bad_request(message: &str) -> ControlError {
    ControlError(StatusCode::BAD_REQUEST, message.to_owned())
}

fn internal(error: impl std::fmt::Display) -> ControlError {
    ControlError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        (self.0, axum::Json(json!({ "error": self.1 }))).into_response()
    }
}
