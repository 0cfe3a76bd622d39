//! The HTTP endpoint of all services. `X-Amz-Target` selects a JSON service, the `Version` of a form a service of the
//! query protocol, both regardless of the path. SES has its own path.

mod dynamodb;
mod request_names;
mod units;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONNECTION, DATE};
use http::request::Parts;
use http::{Method, StatusCode};
use tokio::task::AbortHandle;

use crate::access::{Caller, required_permissions};
use crate::answer::{Answer, ServiceError};
use crate::calls::Units;
use crate::cloudformation;
use crate::faults::CallFault;
use crate::query::parameter;
use crate::services::Aws;
use crate::sts;

const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

const SEND_EMAIL_PATH: &str = "/v2/email/outbound-emails";

const SUPPORTED_SERVICES: &str = "The local stack's AWS endpoint serves DynamoDB, SQS, EventBridge, Secrets Manager (JSON protocols, \
    with an X-Amz-Target header), CloudFormation, STS (forms) and POST /v2/email/outbound-emails of SES v2";

impl Aws {
    /// Returns the endpoint's router: `/` and `/v2/email/..`, and the same below `/env/{environment}/`, where
    /// `environment` is the calling function environment. Bodies are limited to 16 MiB.
    pub fn router(&self) -> Router {
        Router::new().fallback(handle).with_state(self.clone())
    }
}

/// Answers a request, dated by the stack's time.
async fn handle(State(aws): State<Aws>, request: Request) -> Response {
    let date = aws.date();
    let mut response = handled(aws, request).await;
    response.headers_mut().insert(DATE, date);
    response
}

async fn handled(aws: Aws, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        let message = format!("The body cannot be read, or has more than {MAX_BODY_BYTES} bytes.");
        // hyper closes the connection, since the body was not read to its end.
        let refusal = ServiceError::json_1_0(413, "RequestEntityTooLarge", message);
        return ([(CONNECTION, "close")], refusal).into_response();
    };
    if split_environment(parts.uri.path()).0.is_none() {
        return answer(aws, parts, body).await;
    }
    let stalled = Arc::new(AtomicBool::new(false));
    let answering = tokio::spawn(STALLED.scope(Arc::clone(&stalled), answer(aws, parts, body)));
    let _guard = AbortUnlessStalled { stalled, call: answering.abort_handle() };
    answering.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

tokio::task_local! {
    /// Set once the call was stalled.
    static STALLED: Arc<AtomicBool>;
}

/// A guard that aborts a call when its caller is gone, unless the call was stalled. A stalled call takes effect after
/// its caller gave up, like a request delayed by the network.
struct AbortUnlessStalled {
    stalled: Arc<AtomicBool>,
    call: AbortHandle,
}

impl Drop for AbortUnlessStalled {
    fn drop(&mut self) {
        if !self.stalled.load(Ordering::Relaxed) {
            self.call.abort();
        }
    }
}

async fn answer(aws: Aws, parts: Parts, body: Bytes) -> Response {
    let (environment, path) = split_environment(parts.uri.path());
    let caller = aws.access().caller(environment, &parts.headers);
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let answered = async {
        match target.and_then(|target| Some((target, target.split_once('.')?))) {
            Some((target, ("DynamoDB_20120810" | "DynamoDBStreams_20120810", _))) => {
                aws.dynamodb_request(target, body, caller).await
            }
            Some((_, (service, operation))) => aws.logged_request(service, operation, &body, caller).await,
            None if path == SEND_EMAIL_PATH && parts.method == Method::POST => {
                aws.logged_request("ses", "SendEmail", &body, caller).await
            }
            None => match query_operation(&body) {
                Some((service, operation)) => aws.logged_request(service, &operation, &body, caller).await,
                None => {
                    let message = format!("{SUPPORTED_SERVICES}; this is {} {path}.", parts.method);
                    ServiceError::json_1_0(400, "UnknownOperationException", message).into_response()
                }
            },
        }
    };
    // Biased, so that a call that waits for the shutdown does not take effect at the shutdown.
    tokio::select! {
        biased;
        () = aws.closed() => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        response = answered => response,
    }
}

impl Aws {
    /// Handles a request to a service other than DynamoDB.
    async fn logged_request(&self, service: &str, operation: &str, body: &Bytes, caller: Caller<'_>) -> Response {
        let environment = caller.environment();
        let started = environment.and_then(|environment| self.calls().start(environment, operation, Vec::new));
        let faulty = match environment {
            Some(environment) => self.apply_call_faults(environment).await,
            None => false,
        };
        let answer = match self.access().authorize(caller, &required_permissions(service, operation, body)) {
            Ok(()) => self.service_answer(service, operation, body, caller, faulty).await,
            Err(denied) => Err(denied),
        };
        let response = answer.into_response();
        if let Some(started) = started {
            self.calls().end(started, response.status().as_u16(), Units::default());
        }
        response
    }

    async fn service_answer(
        &self,
        service: &str,
        operation: &str,
        body: &Bytes,
        caller: Caller<'_>,
        faulty: bool,
    ) -> Result<Answer, ServiceError> {
        match service {
            "AmazonSQS" => self.sqs().request(operation, body).await,
            "AWSEvents" => self.bus().request(operation, body).await,
            "secretsmanager" => self.secrets().request(operation, body).await,
            "cloudformation" => self.cloudformation().request(operation, body),
            "sts" => sts::request(operation, caller),
            "ses" if faulty && self.faults().take_mail_failure() => {
                Err(ServiceError::rest(400, "MessageRejected", "Email address is not verified."))
            }
            "ses" => self.mail().send_email(body).await,
            _ => Err(ServiceError::json_1_0(
                400,
                "UnknownOperationException",
                format!("{SUPPORTED_SERVICES}, not {service}."),
            )),
        }
    }

    /// Applies the faults for a function environment's call before the call takes effect. Returns true when faults of
    /// its service may follow. Blocks for a stalled call, and for one whose function crashes.
    pub(crate) async fn apply_call_faults(&self, environment: &str) -> bool {
        // Calls outside of an invocation belong to an environment's start.
        if !self.calls().is_open(environment) {
            return true;
        }
        match self.faults().take_call_fault(environment) {
            CallFault::None => false,
            CallFault::Service => true,
            CallFault::Crash => {
                if self.calls().crash(environment) {
                    // A crashed function reads no response.
                    self.closed().await;
                }
                true
            }
            CallFault::Stall(mut released) => {
                STALLED.with(|stalled| stalled.store(true, Ordering::Relaxed));
                // An error means that the stack is shutting down.
                let _ = released.changed().await;
                true
            }
        }
    }
}

/// Returns the service and the operation of a request in the query protocol.
fn query_operation(form: &[u8]) -> Option<(&'static str, String)> {
    let service = match parameter(form, "Version")?.as_str() {
        cloudformation::VERSION => "cloudformation",
        sts::VERSION => "sts",
        _ => return None,
    };
    Some((service, parameter(form, "Action")?))
}

/// Splits `/env/{environment}/rest` into the environment and `/rest`.
fn split_environment(path: &str) -> (Option<&str>, &str) {
    let Some(below) = path.strip_prefix("/env/") else { return (None, path) };
    let end = below.find('/').unwrap_or(below.len());
    let (environment, rest) = below.split_at(end);
    (Some(environment), if rest.is_empty() { "/" } else { rest })
}
