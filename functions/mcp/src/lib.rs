//! `POST /mcp`: the API for assistants, over the Model Context Protocol.
//!
//! The function is an integrator like any other. A call of a tool becomes the request of its operation to the service's
//! own address, with the caller's key. So permissions, limits, idempotency and errors are those of the API, and the
//! function has no permission of its own. It keeps no session: every request stands alone.
//!
//! The layer of the protocol is our own (`message`, `answer`, `methods`), not the official SDK. Of 245 requests that
//! the rules name, `rmcp` 3.11 answers 96 otherwise. The wrapper that mends them has 143 lines and does what a layer
//! does, beside 1.9 MB of SDK with 19 releases in 16 weeks.
//!
//! Source: the specification's pages on transport, versioning and tools, revisions 2025-03-26 to 2026-07-28.

mod answer;
mod arguments;
mod call;
mod fault;
mod message;
mod methods;
mod origin;
mod service;
mod text;

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use domain::api_key::Scope;
use edge::gate::presented;
use edge::{Inbound, Problem, Reply};
use http::{HeaderMap, StatusCode};
use runtime::{BoxError, Environment};
use serde_json::json;

use crate::answer::{Outcome, pass_on, respond};
use crate::call::{Call, NotCalled};
use crate::fault::{Fault, INTERNAL_ERROR, INVALID_REQUEST, LIMITED};
use crate::message::{CALL, Received, Request};
use crate::origin::Origins;
use crate::service::{Caller, Service, ServiceAnswer, ServiceRequest};

/// The parts that requests need.
struct App {
    service: Service,
    origins: Origins,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let base = env.config().get("BASE_ADDRESS")?;
    let origins = Origins::new(base, env.config().find("MCP_ORIGINS").unwrap_or_default())?;
    let app = Arc::new(App { service: Service::new(base)?, origins });
    let handler = move |inbound: Inbound| {
        let app = Arc::clone(&app);
        async move { app.answer(&inbound).await }
    };
    Ok(Router::new().route("/mcp", post(handler)))
}

/// The work of a request.
enum Work<'a> {
    Call(Request<'a>, Call),
    /// Everything else waits until the key is checked.
    AfterKey(Answer<'a>),
}

/// The answer to a request whose key is good.
enum Answer<'a> {
    /// The request is refused as everywhere, before its message is read.
    Problem(Problem),
    Fault(Fault),
    /// The message is a notification.
    Nothing,
    Method(Request<'a>),
    NotCalled(Request<'a>, NotCalled),
}

impl App {
    async fn answer(&self, inbound: &Inbound) -> Response {
        let scope = match presented(&inbound.headers) {
            Ok(key) => key.scope(),
            Err(problem) => return Reply::problem(&problem, inbound).into_response_for(inbound),
        };
        let caller = Caller::of(inbound);
        match self.work(inbound, scope) {
            Work::Call(request, call) => {
                let client = noted_client(&request);
                let called = call.make(&self.service, caller, client.as_deref()).await;
                match called.answer {
                    Some(answer) if answer.status == StatusCode::UNAUTHORIZED => refused(inbound, answer),
                    answer => {
                        let headers = answer.map(|answer| answer.headers).unwrap_or_default();
                        let body = Outcome::Result(called.result).body(&request);
                        respond(inbound, StatusCode::OK, Some(body), &headers)
                    }
                }
            }
            Work::AfterKey(answer) => match self.service.send(&caller, &ServiceRequest::get("/v1/key")).await {
                Ok(key) if key.status == StatusCode::OK => answer.respond(inbound, &key),
                Ok(key) if key.status == StatusCode::UNAUTHORIZED => refused(inbound, key),
                key => answer.without_key(inbound, key.ok()),
            },
        }
    }

    /// Reads a request.
    fn work<'a>(&self, inbound: &'a Inbound, scope: Scope) -> Work<'a> {
        if !self.origins.allow(&inbound.headers) {
            let fault = Fault::bad(INVALID_REQUEST, "This origin may not call the service.");
            return Work::AfterKey(Answer::Fault(Fault { status: StatusCode::FORBIDDEN, id: None, ..fault }));
        }
        if let Err(problem) = inbound.check_size().and_then(|()| inbound.check_media_type()) {
            return Work::AfterKey(Answer::Problem(problem));
        }
        match message::read(inbound) {
            Err(fault) => Work::AfterKey(Answer::Fault(fault)),
            Ok(Received::Notification) => Work::AfterKey(Answer::Nothing),
            Ok(Received::Request(request)) if request.method == CALL => match Call::read(&request, scope) {
                Ok(call) => Work::Call(request, call),
                Err(not_called) => Work::AfterKey(Answer::NotCalled(request, not_called)),
            },
            Ok(Received::Request(request)) => Work::AfterKey(Answer::Method(request)),
        }
    }
}

impl Answer<'_> {
    fn respond(self, inbound: &Inbound, key: &ServiceAnswer) -> Response {
        let result = |outcome: Outcome, request: &Request<'_>| {
            let status = outcome.status(request);
            respond(inbound, status, Some(outcome.body(request)), &key.headers)
        };
        match self {
            Self::Problem(problem) => {
                let mut response = Reply::problem(&problem, inbound).into_response_for(inbound);
                pass_on(&key.headers, response.headers_mut());
                response
            }
            Self::Fault(fault) => respond(inbound, fault.status, Some(fault.body()), &key.headers),
            Self::Nothing => respond(inbound, StatusCode::ACCEPTED, None, &key.headers),
            Self::Method(request) => {
                noted_client(&request);
                result(methods::answer(&request, &key.body), &request)
            }
            Self::NotCalled(request, NotCalled::Error { code, message }) => {
                result(Outcome::Error { code, message }, &request)
            }
            Self::NotCalled(request, NotCalled::Result(refusal)) => result(Outcome::Result(refusal), &request),
        }
    }

    /// Answers a request whose key was not checked, or is beyond its limit.
    fn without_key(self, inbound: &Inbound, key: Option<ServiceAnswer>) -> Response {
        let id = match &self {
            Self::Method(request) | Self::NotCalled(request, _) => Some(request.id.clone()),
            Self::Problem(_) | Self::Fault(_) | Self::Nothing => Some(serde_json::Value::Null),
        };
        let (status, headers) = key
            .as_ref()
            .map_or((StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new()), |key| (key.status, key.headers.clone()));
        let said = key.as_ref().and_then(|key| key.body["error"].as_str());
        let message = said.unwrap_or("The service did not answer. Send the request again.").to_owned();
        let code = if status == StatusCode::TOO_MANY_REQUESTS { LIMITED } else { INTERNAL_ERROR };
        respond(inbound, status, Some(Fault { status, id, code, message, data: None }.body()), &headers)
    }
}

/// Notes the client in the log.
fn noted_client(request: &Request<'_>) -> Option<String> {
    let client = call::client(request.params);
    if let Some(client) = &client {
        runtime::note("mcp_client", client.as_str());
    }
    client
}

/// Hands the refusal of a key on, under this request's id.
fn refused(inbound: &Inbound, answer: ServiceAnswer) -> Response {
    let mut body = answer.body;
    body["request_id"] = json!(inbound.request_id);
    respond(inbound, answer.status, Some(body), &answer.headers)
}
