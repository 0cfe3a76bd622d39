//! How calls fail.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use runtime::without_message;

use super::StoreError;

/// Tells a call's failure apart.
pub(crate) fn failed<E>(operation: &'static str, error: SdkError<E>) -> StoreError
where
    E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    let transient = match &error {
        SdkError::ServiceError(service) => service.raw().status().as_u16() >= 500 || is_throttle(service.err().code()),
        SdkError::ConstructionFailure(_) => false, // It never left: a fault of ours, which stays.
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
        let said = ErrorMetadata::builder().code(code).message(message).custom("aws_request_id", "REQ1").build();
        let response = HttpResponse::new(StatusCode::try_from(status).unwrap(), "".into());
        failed("PutItem", SdkError::service_error(PutItemError::generic(said), response))
    }

    #[test]
    fn what_was_to_be_written_is_in_no_error() {
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
    fn what_may_pass_by_itself_is_told_from_what_stays() {
        for (status, code, passes) in
            [(400, "ValidationException", false), (400, "ThrottlingException", true), (503, "ServiceUnavailable", true)]
        {
            let error = answered(status, code, "");
            assert_eq!(matches!(error, StoreError::Unavailable { .. }), passes, "{error:?}");
        }
    }
}
