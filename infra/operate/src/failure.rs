//! A failure, as one line that says what to do.

use std::fmt;

use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use runtime::{BoxError, error_chain, without_message};
use serde::Serialize;
use store::StoreError;

/// The kind of a failure, which scripts tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    NotFound,
    /// The state does not allow it, or a permission is missing.
    Refused,
    /// The operator did not consent.
    Declined,
    /// AWS did not answer, or there are no credentials.
    Unreachable,
    Usage,
}

/// A failure of a command. Nothing has changed, unless its text says what has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) error: String,
}

impl Failure {
    /// A failure in one line, whatever lines its cause has.
    fn new(code: Code, error: impl Into<String>) -> Self {
        let error: String = error.into();
        Self { code, error: error.split_whitespace().collect::<Vec<_>>().join(" ") }
    }

    pub(crate) fn not_found(error: impl Into<String>) -> Self {
        Self::new(Code::NotFound, error)
    }

    pub(crate) fn refused(error: impl Into<String>) -> Self {
        Self::new(Code::Refused, error)
    }

    pub(crate) fn declined(error: impl Into<String>) -> Self {
        Self::new(Code::Declined, error)
    }

    pub(crate) fn unreachable(error: impl Into<String>) -> Self {
        Self::new(Code::Unreachable, error)
    }

    pub(crate) fn usage(error: impl Into<String>) -> Self {
        Self::new(Code::Usage, error)
    }

    /// A call of AWS that failed. `what` names the call, such as `sqs:ReceiveMessage`.
    pub(crate) fn of_call<E>(what: &str, error: SdkError<E>) -> Self
    where
        E: std::error::Error + ProvideErrorMetadata + Send + Sync + 'static,
    {
        let is_answer = matches!(error, SdkError::ServiceError(_));
        Self::of_cause(what, is_answer, &error_chain(without_message(error).as_ref()))
    }

    fn of_cause(what: &str, is_answer: bool, cause: &str) -> Self {
        if cause.contains("AccessDenied") {
            return Self::refused(format!("a permission is missing: {what}: {cause}"));
        }
        if ["ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId", "SignatureDoesNotMatch", "InvalidSignature"]
            .iter()
            .any(|code| cause.contains(code))
        {
            return Self::unreachable(format!("AWS does not accept the credentials, sign in again: {what}: {cause}"));
        }
        if is_answer { Self::refused(format!("{what}: {cause}")) } else { Self::no_answer(what, cause) }
    }

    fn no_answer(what: &str, cause: &str) -> Self {
        Self::unreachable(format!("AWS did not answer, check the region and the network: {what}: {cause}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let cause = error_chain(&error);
        match error {
            StoreError::Unavailable { .. } => Self::no_answer("dynamodb", &cause),
            StoreError::Refused { .. } => Self::of_cause("dynamodb", true, &cause),
            StoreError::Corrupt { .. } => Self::refused(cause),
        }
    }
}

impl From<BoxError> for Failure {
    fn from(error: BoxError) -> Self {
        Self::of_cause("the stack", true, &error_chain(error.as_ref()))
    }
}
