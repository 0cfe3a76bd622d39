//! What AWS says of a call that it refuses may quote what was to be written or sent, which is nobody's business but its
//! recipient's: of its answer only the error's name is kept, with what finds it in AWS's own records.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::BoxError;

/// An error as AWS answered it, without its message but where that names a permission, and nothing of what was sent.
#[derive(Debug, thiserror::Error)]
#[error("{code}{missing}, status {status}, AWS request {request_id}")]
struct Answered {
    code: String,
    missing: String,
    status: u16,
    request_id: String,
}

/// A call's error as it may be logged.
pub fn without_message<E>(error: SdkError<E, HttpResponse>) -> BoxError
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let SdkError::ServiceError(service) = &error else { return Box::new(error) };
    let said = service.err().meta();
    let known = |text: Option<&str>| text.unwrap_or("unknown").to_owned();
    // SQS names it without `Exception`.
    let missing = said.message().filter(|_| matches!(said.code(), Some("AccessDenied" | "AccessDeniedException")));
    Box::new(Answered {
        code: known(said.code()),
        missing: missing.map(|missing| format!(" ({missing})")).unwrap_or_default(),
        status: service.raw().status().as_u16(),
        request_id: known(said.extra("aws_request_id")),
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
        let said = ErrorMetadata::builder().code(code).message(message).custom("aws_request_id", "REQ1").build();
        let response = HttpResponse::new(StatusCode::try_from(status).unwrap(), "".into());
        without_message(SdkError::service_error(SendMessageError::generic(said), response))
    }

    #[test]
    fn what_was_sent_is_in_no_error() {
        for (status, code) in [(400, "InvalidMessageContents"), (400, "RequestThrottled"), (500, "InternalError")] {
            let error = answered(status, code, "Invalid characters were found in: {\"name\": \"Marguerite\"}");
            let told = error_chain(error.as_ref());
            assert_eq!(told, format!("{code}, status {status}, AWS request REQ1"));
            assert!(!format!("{error:?}").contains("Marguerite"), "{error:?}");
        }
    }

    #[test]
    fn a_missing_permission_is_named() {
        for code in ["AccessDenied", "AccessDeniedException"] {
            let told = error_chain(answered(403, code, "not authorized to perform: sqs:sendmessage").as_ref());
            assert!(told.contains("sqs:sendmessage"), "{told}");
        }
    }
}
