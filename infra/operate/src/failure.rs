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
    /// A failure in one line, whatever lines its cause has, and without a whole key, whatever was typed.
    fn new(code: Code, error: impl Into<String>) -> Self {
        let error: String = error.into();
        Self { code, error: masked(&error.split_whitespace().collect::<Vec<_>>().join(" ")) }
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
        if matches!(error, SdkError::ConstructionFailure(_)) {
            return Self::usage(format!("{what} cannot be called: check AWS_REGION and AWS_ENDPOINT_URL"));
        }
        let is_answer = matches!(error, SdkError::ServiceError(_));
        Self::of_text(what, is_answer, &error_chain(without_message(error).as_ref()))
    }

    /// A call of AWS that failed within a module of the service.
    pub(crate) fn of_cause(what: &str, cause: &(dyn std::error::Error + 'static)) -> Self {
        Self::of_text(what, true, &error_chain(cause))
    }

    fn of_text(what: &str, is_answer: bool, cause: &str) -> Self {
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
        Self::unreachable(format!(
            "AWS did not answer, check the network and the region, or --aws-port: {what}: {cause}"
        ))
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
            StoreError::Refused { .. } => Self::of_text("dynamodb", true, &cause),
            StoreError::Corrupt { .. } => Self::refused(cause),
        }
    }
}

impl From<BoxError> for Failure {
    fn from(error: BoxError) -> Self {
        Self::of_cause("the stack", error.as_ref())
    }
}

/// Characters that a masked key keeps at its beginning and at its end, as lists show it.
const KEY_BEGINNING: usize = "svc_live_".len();
const KEY_ENDING: usize = 4;
/// Least length of a text that counts as a whole key.
const KEY_CHARS: usize = 20;

/// The text with each whole key as lists show it.
pub(crate) fn masked(text: &str) -> String {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_of_key) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(|c| !is_of_key(c)).unwrap_or(word.len()));
        out.push_str(before);
        if is_whole_key(word) {
            out.push_str(&format!("{}…{}", &word[..KEY_BEGINNING], &word[word.len() - KEY_ENDING..]));
        } else {
            out.push_str(word);
        }
        rest = after;
    }
    out + rest
}

/// Returns true for the text of a key, in place of the way in which lists show it.
pub(crate) fn is_whole_key(text: &str) -> bool {
    let has_prefix = ["svc_live_", "svc_test_", "crm_live_", "crm_test_"].iter().any(|prefix| text.starts_with(prefix));
    has_prefix && text.len() >= KEY_CHARS && text.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_a_key_as_lists_do() {
        let failure = Failure::not_found("no key svc_live_0p6JfZy2kFhzuZgbamaehaiX6ZwMlooy:\n  `crm_test_x` is none");
        assert_eq!(failure.error, "no key svc_live_…looy: `crm_test_x` is none");
        assert_eq!(masked("key_0123456789abcdef0123456789abcdef, ü"), "key_0123456789abcdef0123456789abcdef, ü");
    }
}
