//! Failures of the store. A failed call is transient or refused.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use runtime::without_message;

/// A failure of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No answer, or no capacity, after retries. The write may have happened.
    #[error("the store did not answer {operation}")]
    Unavailable {
        operation: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store refused the request itself: a bug, or a missing permission.
    #[error("the store refused {operation}")]
    Refused {
        operation: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An item does not have the form that it was written in.
    #[error("a stored {entity} cannot be read: {reason}")]
    Corrupt { entity: &'static str, reason: String },
}

impl StoreError {
    pub(crate) fn corrupt(entity: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Corrupt { entity, reason: reason.to_string() }
    }

    pub(crate) fn contention(what: &'static str) -> Self {
        Self::Unavailable { operation: "TransactWriteItems", source: format!("contention on {what}").into() }
    }

    /// Builds the error for a record of an unexpected form. Serde's messages quote values, which must not reach the
    /// log. Only "missing field" quotes none.
    pub(crate) fn unreadable(entity: &'static str, error: impl std::fmt::Display) -> Self {
        let text = error.to_string();
        let reason = if text.starts_with("missing field") { text } else { "a member has another form".to_owned() };
        Self::Corrupt { entity, reason }
    }
}

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
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::db::{from_item, to_item};

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

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never read")]
    struct Thing {
        kind: Kind,
        count: u32,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Known,
    }

    #[test]
    fn the_error_for_an_unreadable_record_quotes_no_values() {
        let text = |record: serde_json::Value| {
            let item = from_item::<Thing>("thing", to_item(&record)).unwrap_err().to_string();
            let json = serde_json::from_value::<Thing>(record).map_err(|error| StoreError::unreadable("thing", error));
            assert_eq!(json.unwrap_err().to_string(), item);
            item
        };
        let form = "a stored thing cannot be read: a member has another form";
        for record in [
            json!({ "kind": "grace", "count": 1 }),
            json!({ "kind": "known", "count": "grace" }),
            json!({ "kind": "known", "count": -4155552671_i64 }),
            json!({ "kind": ["grace"], "count": 1 }),
        ] {
            assert_eq!(text(record), form);
        }
        assert_eq!(text(json!({ "kind": "known" })), "a stored thing cannot be read: missing field `count`");
    }
}
