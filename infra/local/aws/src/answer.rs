//! Responses of the emulated services: JSON or XML in each service's protocol, and errors in the shapes that the SDKs
//! expect.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::StoreError;
use crate::query;

/// AWS JSON 1.0: DynamoDB and SQS.
pub(crate) const JSON_1_0: &str = "application/x-amz-json-1.0";
/// AWS JSON 1.1: EventBridge and Secrets Manager.
pub(crate) const JSON_1_1: &str = "application/x-amz-json-1.1";
const JSON: &str = "application/json";
/// The query protocol: CloudFormation and STS.
const XML: &str = "text/xml";

/// A successful response.
#[derive(Debug)]
pub(crate) struct Answer {
    content_type: &'static str,
    body: Vec<u8>,
}

/// A service's error response.
#[derive(Debug)]
pub(crate) struct ServiceError {
    status: u16,
    content_type: &'static str,
    /// The error's shape with the service's namespace, which the SDKs match on.
    shape: String,
    message: String,
    /// Members beside the type and the message.
    more: Option<Box<(&'static str, Value)>>,
}

impl Answer {
    pub(crate) fn json_1_0(body: &Value) -> Self {
        Self { content_type: JSON_1_0, body: body.to_string().into_bytes() }
    }

    pub(crate) fn json_1_1(body: &Value) -> Self {
        Self { content_type: JSON_1_1, body: body.to_string().into_bytes() }
    }

    pub(crate) fn rest(body: &Value) -> Self {
        Self { content_type: JSON, body: body.to_string().into_bytes() }
    }

    pub(crate) fn xml(body: String) -> Self {
        Self { content_type: XML, body: body.into_bytes() }
    }
}

impl ServiceError {
    /// An error of a service that speaks AWS JSON 1.0.
    pub(crate) fn json_1_0(status: u16, shape: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(status, JSON_1_0, shape, message)
    }

    /// An error of a service that speaks AWS JSON 1.1.
    pub(crate) fn json_1_1(status: u16, shape: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(status, JSON_1_1, shape, message)
    }

    /// An error of a service that speaks REST.
    pub(crate) fn rest(status: u16, shape: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(status, JSON, shape, message)
    }

    /// An error of a service that speaks the query protocol.
    pub(crate) fn query(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(status, XML, code, message)
    }

    /// Adds a member beside the type and the message.
    pub(crate) fn with(mut self, name: &'static str, value: Value) -> Self {
        self.more = Some(Box::new((name, value)));
        self
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The error's message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The error's shape without the namespace.
    pub(crate) fn code(&self) -> &str {
        self.shape.rsplit('#').next().unwrap_or(&self.shape)
    }

    fn new(status: u16, content_type: &'static str, shape: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, content_type, shape: shape.into(), message: message.into(), more: None }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        respond(StatusCode::OK, self.content_type, self.body)
    }
}

impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if self.content_type == XML {
            return respond(status, XML, query::error(&self.shape, &self.message));
        }
        let mut body = json!({ "__type": self.shape, "message": self.message });
        if let Some(more) = self.more {
            body[more.0] = more.1;
        }
        let mut response = respond(status, self.content_type, body.to_string().into_bytes());
        if self.content_type == JSON
            && let Ok(shape) = HeaderValue::from_str(&self.shape)
        {
            response.headers_mut().insert("x-amzn-errortype", shape);
        }
        response
    }
}

/// A failure of the emulator itself. SDKs retry it like AWS's own internal error.
impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a local AWS request failed");
        Self::json_1_0(500, "InternalFailure", error.to_string())
    }
}

/// A response with a request id.
pub(crate) fn respond(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(id) = HeaderValue::from_str(&Uuid::new_v4().to_string()) {
        headers.insert("x-amzn-requestid", id);
    }
    response
}
