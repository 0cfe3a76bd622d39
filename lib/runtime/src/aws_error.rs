//! Errors of AWS calls without their messages. A message may quote the data of the request, which must not reach the
//! log. The code, the status and the request id remain, and find the call in AWS's own records.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::BoxError;

/// An error that AWS answered. The message is kept only if it names a missing permission.
#[derive(Debug, thiserror::Error)]
#[error("{code}{missing}, status {status}, AWS request {request_id}")]
struct AnsweredError {
    code: String,
    missing: String,
    status: u16,
    request_id: String,
}

/// Removes from a call's error what must not be logged.
pub fn without_message<E>(error: SdkError<E, HttpResponse>) -> BoxError
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let SdkError::ServiceError(service) = &error else { return Box::new(error) };
    let meta = service.err().meta();
    let known = |text: Option<&str>| text.unwrap_or("unknown").to_owned();
    // SQS uses the code without `Exception`.
    let missing = meta.message().filter(|_| matches!(meta.code(), Some("AccessDenied" | "AccessDeniedException")));
    Box::new(AnsweredError {
        code: known(meta.code()),
        missing: missing.map(|missing| format!(" ({missing})")).unwrap_or_default(),
        status: service.raw().status().as_u16(),
        request_id: known(meta.extra("aws_request_id")),
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::operation::send_message::SendMessageError;
    use aws_smithy_runtime_api::http::StatusCode;
    use aws_smithy_types::error::ErrorMetadata;

    use super::*;
    use crate::error_chain;

    fn answered(status: u16, code: &str, message: &str) -> BoxError {
        let meta = ErrorMetadata::builder().code(code).message(message).custom("aws_request_id", "REQ1").build();
        let response = HttpResponse::new(StatusCode::try_from(status).unwrap(), "".into());
        without_message(SdkError::service_error(SendMessageError::generic(meta), response))
    }

    #[test]
    fn no_error_quotes_the_request() {
        for (status, code) in [(400, "InvalidMessageContents"), (400, "RequestThrottled"), (500, "InternalError")] {
            let error = answered(status, code, "Invalid characters were found in: {\"name\": \"Marguerite\"}");
            let logged = error_chain(error.as_ref());
            assert_eq!(logged, format!("{code}, status {status}, AWS request REQ1"));
            assert!(!format!("{error:?}").contains("Marguerite"), "{error:?}");
        }
    }

    #[test]
    fn a_missing_permission_is_named() {
        for code in ["AccessDenied", "AccessDeniedException"] {
            let logged = error_chain(answered(403, code, "not authorized to perform: sqs:sendmessage").as_ref());
            assert!(logged.contains("sqs:sendmessage"), "{logged}");
        }
    }
}
