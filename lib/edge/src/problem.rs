//! What can go wrong with a request. Handlers return it; one place gives each variant its status.

use std::error::Error;

use domain::fields::Invalid;
use domain::rate_limit::Quota;
use http::StatusCode;
use store::StoreError;

use crate::inbound::{MAX_BODY_BYTES, MAX_JSON_DEPTH};

/// The only error of a handler.
#[derive(Debug)]
pub enum Problem {
    /// Missing, malformed, unknown, revoked or expired key.
    Unauthenticated(&'static str),
    RateLimited(Quota),
    WrongScope {
        needed: &'static str,
    },
    /// The workspace is not entitled to the Partner API.
    NotEntitled,
    /// No valid session of a coach.
    NoSession,
    IdempotencyKeyInvalid,
    BodyTooLarge,
    UnsupportedMediaType,
    InvalidJson(String),
    TooDeep,
    Invalid(Invalid),
    /// The thing does not exist for this caller.
    NotFound(&'static str),
    UnknownPath,
    MethodNotAllowed(Vec<&'static str>),
    IdempotencyInProgress,
    EmailTaken,
    PlanFull,
    TeamFull,
    WorkspaceUnknown,
    KeyLimit,
    KeyNotLive,
    EndpointLimit,
    EndpointGone,
    /// A fault of ours. Logged where it is rendered; its text never leaves.
    Internal(Fault),
}

/// What failed, and why.
#[derive(Debug)]
pub struct Fault {
    pub doing: &'static str,
    pub source: Box<dyn Error + Send + Sync>,
}

/// How a problem is told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: StatusCode,
    /// Stable: callers may branch on it.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) retry_after_s: Option<u32>,
    pub(crate) allow: Option<String>,
    pub(crate) field: Option<String>,
}

impl Problem {
    /// A fault of ours.
    pub fn internal(doing: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(Fault { doing, source: source.into() })
    }

    pub(crate) fn tell(&self) -> Told {
        let (status, code, message): (StatusCode, &'static str, String) = match self {
            Self::Unauthenticated(why) => (StatusCode::UNAUTHORIZED, "unauthorized", (*why).to_owned()),
            Self::RateLimited(quota) => (
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limited",
                format!("This key has made its {} requests of this minute. Try again in {} s.", quota.limit, quota.reset_s),
            ),
            Self::WrongScope { needed } => (
                StatusCode::FORBIDDEN,
                "wrong_scope",
                format!("This key is real but has another scope. This operation needs a key of scope {needed}."),
            ),
            Self::NotEntitled => (
                StatusCode::PAYMENT_REQUIRED,
                "partner_api_not_entitled",
                "This workspace is not entitled to the Partner API. The coach can add it to the plan.".to_owned(),
            ),
            Self::NoSession => (StatusCode::UNAUTHORIZED, "unauthorized", "Sign in as a coach to use the settings.".to_owned()),
            Self::IdempotencyKeyInvalid => {
                (StatusCode::BAD_REQUEST, "invalid_request", "Idempotency-Key must be 1 to 255 characters.".to_owned())
            }
            Self::BodyTooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                format!("The body must be at most {MAX_BODY_BYTES} bytes."),
            ),
            Self::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "The body must be JSON: Content-Type: application/json.".to_owned(),
            ),
            Self::InvalidJson(why) => {
                (StatusCode::BAD_REQUEST, "invalid_json", format!("The body must be a JSON object: {why}."))
            }
            Self::TooDeep => (
                StatusCode::BAD_REQUEST,
                "invalid_json",
                format!("The body must not nest deeper than {MAX_JSON_DEPTH} levels."),
            ),
            Self::Invalid(invalid) => (StatusCode::BAD_REQUEST, "invalid_request", invalid.message.clone()),
            Self::NotFound(what) => (StatusCode::NOT_FOUND, "not_found", format!("There is no such {what}.")),
            Self::UnknownPath => {
                (StatusCode::NOT_FOUND, "unknown_path", "There is nothing at this path. Paths begin with /v1/ or /settings/.".to_owned())
            }
            Self::MethodNotAllowed(methods) => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                format!("This path takes {}.", methods.join(", ")),
            ),
            Self::IdempotencyInProgress => (
                StatusCode::CONFLICT,
                "idempotency_in_progress",
                "A request with the same idempotency key is in progress. Retry as it is.".to_owned(),
            ),
            Self::EmailTaken => {
                (StatusCode::CONFLICT, "email_taken", "An account already exists for this email.".to_owned())
            }
            Self::PlanFull => (
                StatusCode::CONFLICT,
                "plan_limit_reached",
                "The plan's client limit is reached. It counts every stored client, deactivated ones included.".to_owned(),
            ),
            Self::TeamFull => {
                (StatusCode::CONFLICT, "team_limit_reached", "The team's client limit is reached.".to_owned())
            }
            Self::WorkspaceUnknown => (
                StatusCode::CONFLICT,
                "workspace_unknown",
                "The application has not handed this workspace over yet. Try again in a minute.".to_owned(),
            ),
            Self::KeyLimit => (
                StatusCode::CONFLICT,
                "key_limit_reached",
                "A workspace has at most 50 live keys. Revoke one first.".to_owned(),
            ),
            Self::KeyNotLive => {
                (StatusCode::CONFLICT, "key_not_live", "A key that is revoked or has expired cannot be rotated.".to_owned())
            }
            Self::EndpointLimit => (
                StatusCode::CONFLICT,
                "endpoint_limit_reached",
                "A workspace has at most 20 webhook endpoints. Delete one first.".to_owned(),
            ),
            Self::EndpointGone => (
                StatusCode::CONFLICT,
                "endpoint_gone",
                "The receiver answered 410 Gone, which is for good. Register a new endpoint.".to_owned(),
            ),
            Self::Internal(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "Something went wrong on our side. Retry with the same Idempotency-Key; if it stays, give support the event_id."
                    .to_owned(),
            ),
        };
        Told { status, code, message, retry_after_s: self.retry_after_s(), allow: self.allow(), field: self.field() }
    }

    fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::RateLimited(quota) => Some(quota.reset_s),
            Self::IdempotencyInProgress => Some(domain::idempotency::IN_PROGRESS_RETRY_S),
            _ => None,
        }
    }

    fn allow(&self) -> Option<String> {
        match self {
            Self::MethodNotAllowed(methods) => Some(methods.join(", ")),
            _ => None,
        }
    }

    fn field(&self) -> Option<String> {
        match self {
            Self::Invalid(invalid) => invalid.field.clone(),
            _ => None,
        }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::internal("use the store", error)
    }
}
