//! Classification of failed calls: transient, or refused.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use runtime::without_message;

use super::StoreError;

/// Converts a failed call to a [`StoreError`]. Throttling, server errors and lost answers are transient.
pub(crate) fn failed<E>(operation: &'static str, error: SdkError<E>) -> StoreError
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let transient = match &error {
        SdkError::ServiceError(service) => service.raw().status().as_u16() >= 500 || is_throttle(service.err().code()),
        SdkError::ConstructionFailure(_) => false, // Never sent: a bug, which no retry cures.
        _ => true,
    };
    let source = without_message(error);
    if transient { StoreError::Unavailable { operation, source } } else { StoreError::Refused { operation, source } }
}

fn is_throttle(code: Option<&str>) -> bool {
    matches!(
        code,
        Some(
            "ThrottlingException"
                | "ProvisionedThroughputExceededException"
                | "RequestLimitExceeded"
                | "TransactionInProgressException"
        )
    )
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::error::ErrorMetadata;
    use aws_sdk_dynamodb::operation::put_item::PutItemError;
    use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
    use aws_smithy_runtime_api::http::StatusCode;
    use runtime::error_chain;

    use super::*;

    fn answered(status: u16, code: &str, message: &str) -> StoreError {
        let metadata = ErrorMetadata::builder().code(code).message(message).custom("aws_request_id", "REQ1").build();
        let response = HttpResponse::new(StatusCode::try_from(status).unwrap(), "".into());
        failed("PutItem", SdkError::service_error(PutItemError::generic(metadata), response))
    }

    #[test]
    fn errors_never_contain_the_written_item() {
        let message = "Item size has exceeded: {\"name\": {\"S\": \"Marguerite\"}}";
        for (status, code) in [(400, "ValidationException"), (400, "ThrottlingException"), (500, "InternalServerError")]
        {
            let error = answered(status, code, message);
            let text = error_chain(&error);
            assert!(text.contains(code) && text.contains("REQ1"), "{text}");
            assert!(!format!("{text}{error:?}").contains("Marguerite"), "{text}");
        }
    }

    #[test]
    fn throttling_and_server_errors_are_transient() {
        for (status, code, passes) in
            [(400, "ValidationException", false), (400, "ThrottlingException", true), (503, "ServiceUnavailable", true)]
        {
            let error = answered(status, code, "");
            assert_eq!(matches!(error, StoreError::Unavailable { .. }), passes, "{error:?}");
        }
    }
}
