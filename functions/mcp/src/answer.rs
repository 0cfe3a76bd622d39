//! Answers: one JSON object of JSON-RPC, with the headers that the service's own answer had.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use edge::Inbound;
use edge::reply::JSON;
use edge::routes::VERSION;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::fault::METHOD_NOT_FOUND;
use crate::message::{Era, Request, meta_name};

/// Headers of the service's answer that concern the caller of this function, too.
const PASSED_ON: [HeaderName; 4] = [
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
];

/// The result of a request.
pub(crate) enum Outcome {
    Result(Value),
    /// The method, or what it names, does not exist or lacks something.
    Error {
        code: i32,
        message: String,
    },
}

/// The name, title and version of the server.
pub(crate) fn server_info() -> Value {
    json!({ "name": "partner-api", "title": "Partner API", "version": VERSION })
}

impl Outcome {
    /// The status of the answer. A modern request for an unknown method is not found.
    pub(crate) fn status(&self, request: &Request<'_>) -> StatusCode {
        match (self, request.era) {
            (Self::Error { code: METHOD_NOT_FOUND, .. }, Era::Modern) => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        }
    }

    /// The answer to a request.
    pub(crate) fn body(self, request: &Request<'_>) -> Value {
        match (self, request.era) {
            (Self::Error { code, message }, _) => {
                json!({ "jsonrpc": "2.0", "id": request.id, "error": { "code": code, "message": message } })
            }
            (Self::Result(result), Era::Legacy) => json!({ "jsonrpc": "2.0", "id": request.id, "result": result }),
            (Self::Result(mut result), Era::Modern) => {
                result["resultType"] = json!("complete");
                result["_meta"][meta_name("serverInfo")] = server_info();
                json!({ "jsonrpc": "2.0", "id": request.id, "result": result })
            }
        }
    }
}

/// The HTTP response. `from` are the headers of the service's answer.
pub(crate) fn respond(inbound: &Inbound, status: StatusCode, body: Option<Value>, from: &HeaderMap) -> Response {
    let mut response = match body {
        None => status.into_response(),
        Some(body) => {
            let media_type = [(header::CONTENT_TYPE, HeaderValue::from_static(JSON))];
            (status, media_type, Body::from(body.to_string())).into_response()
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(id) = HeaderValue::from_str(&inbound.request_id) {
        headers.insert("x-request-id", id);
    }
    pass_on(from, headers);
    response
}

/// Adds the headers of the service's answer that concern the caller.
pub(crate) fn pass_on(from: &HeaderMap, to: &mut HeaderMap) {
    for name in PASSED_ON {
        if let Some(value) = from.get(&name) {
            to.insert(name, value.clone());
        }
    }
}
