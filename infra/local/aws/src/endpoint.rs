//! The one HTTP endpoint of all services. JSON services are told apart by `X-Amz-Target`, whatever the path; SES by its path.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::request::Parts;
use http::{Method, StatusCode};
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::Aws;
use crate::access::of_request;
use crate::answer::{Answer, ServiceError};
use crate::calls::Units;
use crate::faults::Met;

const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

const SEND_EMAIL_PATH: &str = "/v2/email/outbound-emails";

const WHAT_THERE_IS: &str = "The local stack's AWS endpoint serves DynamoDB, SQS, EventBridge, Secrets Manager (JSON protocols, \
    with an X-Amz-Target header) and POST /v2/email/outbound-emails of SES v2";

const NO_QUERY: &str = "The local stack's AWS endpoint speaks the JSON protocol (an X-Amz-Target header such as \
    AmazonSQS.SendMessage), not the Query protocol (Action=SendMessage in a form). AWS SDKs and the AWS CLI use JSON for \
    SQS from November 2023 on.";

pub(crate) fn router(aws: Aws) -> Router {
    Router::new().fallback(handle).with_state(aws)
}

async fn handle(State(aws): State<Aws>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        let message = format!("The body cannot be read, or has more than {MAX_BODY_BYTES} bytes.");
        // hyper closes the connection, since the body has not come to its end.
        let refusal = ServiceError::json_1_0(413, "RequestEntityTooLarge", message);
        return ([(CONNECTION, "close")], refusal).into_response();
    };
    if split_environment(parts.uri.path()).0.is_none() {
        return answer(aws, parts, body).await;
    }
    let stalled = Arc::new(AtomicBool::new(false));
    let answering = tokio::spawn(STALLED.scope(Arc::clone(&stalled), answer(aws, parts, body)));
    let _caller = Caller { stalled, call: answering.abort_handle() };
    answering.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

tokio::task_local! {
    /// Whether the call has been stalled.
    static STALLED: Arc<AtomicBool>;
}

/// Whoever waits for a call's answer. A call that was stalled and given up takes effect all the same, as one does that the network has held
/// up; one of a function that has died does not.
struct Caller {
    stalled: Arc<AtomicBool>,
    call: AbortHandle,
}

impl Drop for Caller {
    fn drop(&mut self) {
        if !self.stalled.load(Ordering::Relaxed) {
            self.call.abort();
        }
    }
}

async fn answer(aws: Aws, parts: Parts, body: Bytes) -> Response {
    let (environment, path) = split_environment(parts.uri.path());
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let answered = async {
        match target.and_then(|target| Some((target, target.split_once('.')?))) {
            Some((target, ("DynamoDB_20120810" | "DynamoDBStreams_20120810", _))) => {
                aws.dynamodb_request(target, body, environment).await
            }
            Some((_, (service, operation))) => aws.logged_request(service, operation, &body, environment).await,
            None if path == SEND_EMAIL_PATH && parts.method == Method::POST => {
                aws.logged_request("ses", "SendEmail", &body, environment).await
            }
            None if speaks_query(&parts) => query_refusal(),
            None => {
                let message = format!("{WHAT_THERE_IS}; this is {} {path}.", parts.method);
                ServiceError::json_1_0(400, "UnknownOperationException", message).into_response()
            }
        }
    };
    // A call that waits for the end of the stack is not carried out at that end.
    tokio::select! {
        biased;
        () = aws.closed() => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        response = answered => response,
    }
}

impl Aws {
    /// A request to a service other than DynamoDB.
    async fn logged_request(
        &self,
        service: &str,
        operation: &str,
        body: &Bytes,
        environment: Option<&str>,
    ) -> Response {
        let started = environment.and_then(|environment| self.calls().start(environment, operation, Vec::new));
        let faulty = match environment {
            Some(environment) => self.meets_faults(environment).await,
            None => false,
        };
        let authorized = match environment {
            Some(environment) => self.access().authorize(environment, &of_request(service, operation, body)),
            None => Ok(()),
        };
        let answer = match authorized {
            Ok(()) => self.service_answer(service, operation, body, faulty).await,
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
        faulty: bool,
    ) -> Result<Answer, ServiceError> {
        match service {
            "AmazonSQS" => self.sqs().request(operation, body).await,
            "AWSEvents" => self.bus().request(operation, body).await,
            "secretsmanager" => self.secrets().request(operation, body).await,
            "ses" if faulty && self.faults().take_mail_failure() => {
                Err(ServiceError::rest(400, "MessageRejected", "Email address is not verified."))
            }
            "ses" => self.mail().send_email(body).await,
            _ => Err(ServiceError::json_1_0(
                400,
                "UnknownOperationException",
                format!("{WHAT_THERE_IS}, not {service}."),
            )),
        }
    }

    /// Before a function environment's call takes effect: whether faults of its service may follow. A call that kills its function, or
    /// is stalled, does not return before that is over.
    pub(crate) async fn meets_faults(&self, environment: &str) -> bool {
        // Calls outside of an invocation are those of a start.
        if !self.calls().is_open(environment) {
            return true;
        }
        match self.faults().meet(environment) {
            Met::Nothing => false,
            Met::Faults => true,
            Met::Crash => {
                if self.calls().crash(environment) {
                    // A dead function reads no answer.
                    self.closed().await;
                }
                true
            }
            Met::Stall(mut released) => {
                STALLED.with(|stalled| stalled.store(true, Ordering::Relaxed));
                // An error means that the stack is ending.
                let _ = released.changed().await;
                true
            }
        }
    }
}

/// Returns true for a request of the Query protocol: `Action` and its parameters in a form, or in the query of the URL.
fn speaks_query(parts: &Parts) -> bool {
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let query = parts.uri.query().unwrap_or_default();
    media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        || query.split('&').any(|parameter| parameter.starts_with("Action="))
}

/// Refuses a request of the Query protocol in its own XML, which its clients show to their users.
fn query_refusal() -> Response {
    let id = Uuid::new_v4();
    let error = format!("<Type>Sender</Type><Code>UnsupportedProtocol</Code><Message>{NO_QUERY}</Message>");
    let body = format!("<ErrorResponse><Error>{error}</Error><RequestId>{id}</RequestId></ErrorResponse>");
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "text/xml")], body).into_response()
}

/// `/env/{environment}/rest` as the environment and `/rest`.
fn split_environment(path: &str) -> (Option<&str>, &str) {
    let Some(below) = path.strip_prefix("/env/") else { return (None, path) };
    let end = below.find('/').unwrap_or(below.len());
    let (environment, rest) = below.split_at(end);
    (Some(environment), if rest.is_empty() { "/" } else { rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_names_the_environment_that_calls() {
        assert_eq!(split_environment("/"), (None, "/"));
        assert_eq!(split_environment("/env/ping-1"), (Some("ping-1"), "/"));
        assert_eq!(split_environment("/env/ping-1/"), (Some("ping-1"), "/"));
        assert_eq!(split_environment("/env/ping-1/v2/email/x"), (Some("ping-1"), "/v2/email/x"));
        assert_eq!(split_environment("/000000000000/queue"), (None, "/000000000000/queue"));
    }
}
