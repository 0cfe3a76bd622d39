//! What can go wrong with a request. Handlers return it; one place gives each variant its status.

use std::error::Error;

use domain::api_key::Permission;
use domain::endpoint::{MAX_ENDPOINTS, MAX_SECRETS, SECRET_OVERLAP};
use domain::fields::Invalid;
use domain::id::{ContactId, StageId};
use domain::idempotency::MAX_KEY_CHARS;
use domain::key::MAX_LIVE_KEYS;
use domain::rate_limit::{Limit, Quota};
use http::{Method, StatusCode};
use store::StoreError;
use tokio::time::error::Elapsed;

use crate::code::Code;
use crate::inbound::{MAX_BODY_BYTES, MAX_JSON_DEPTH};
use crate::routes::writes_to_crm;

/// Stages that a refusal names.
const MAX_NAMED_STAGES: usize = 20;

/// The only error of a handler.
#[derive(Debug)]
pub enum Problem {
    /// Missing, malformed, unknown, revoked or expired key.
    Unauthenticated(&'static str),
    /// The limit that is used up.
    RateLimited(Quota),
    WrongScope {
        needed: &'static str,
    },
    /// The workspace is not entitled to the Partner API.
    NotEntitled,
    /// The workspace is not entitled to the CRM.
    CrmNotEntitled,
    GymNotEnabled,
    /// The coach has not configured the CRM for the API, or what is configured is gone.
    CrmNotConfigured,
    PermissionMissing(Permission),
    /// No valid session of a coach.
    NoSession,
    IdempotencyKeyInvalid,
    IdempotencyKeyRequired,
    /// The key stands for another request.
    IdempotencyPayloadMismatch,
    BodyTooLarge,
    UnsupportedMediaType,
    InvalidJson(String),
    TooDeep,
    Invalid(Invalid),
    /// The thing does not exist for this caller.
    NotFound(&'static str),
    UnknownPath,
    MethodNotAllowed(Vec<&'static str>),
    /// The answer is too large for a caller that takes no gzip.
    GzipOnly,
    IdempotencyInProgress,
    /// The contact lives on as another.
    ContactMerged(ContactId),
    /// The stages that there are to choose from.
    StageUnknown(Vec<StageId>),
    LostReasonRequired,
    LostReasonNotAllowed,
    /// Payments alone win an opportunity, and a won one takes a new name only.
    StagePaymentControlled,
    SlotUnavailable,
    /// The calendar is paid for, there.
    CheckoutRequired(String),
    /// The booking is cancelled or past.
    BookingNotActive,
    EmailTaken,
    /// A client that is switched off signs in with nothing.
    ClientInactive,
    NoLoginEmail,
    PlanFull,
    TeamFull,
    WorkspaceUnknown,
    KeyLimit,
    KeyNotLive,
    EndpointLimit,
    EndpointGone,
    EndpointDisabled,
    /// As many secrets sign as may.
    SecretLimit,
    /// A delivery's attempt is under way.
    DeliveryInProgress,
    /// There is nothing left of it to send.
    DeliveryErased,
    /// Another recovery of the endpoint runs, for as long as this at most.
    RecoveryRunning {
        retry_after_s: u32,
    },
    /// The store did not answer a write: it may or may not have happened.
    Unconfirmed(Fault),
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

    /// A request that was not done in time: of a write of the CRM nobody knows whether it has happened.
    pub(crate) fn late(method: &Method, path: &str, elapsed: Elapsed) -> Self {
        let fault = Fault { doing: "answer in time", source: elapsed.into() };
        if writes_to_crm(method, path) { Self::Unconfirmed(fault) } else { Self::Internal(fault) }
    }

    pub(crate) fn tell(&self) -> Told {
        let code = self.code();
        Told {
            status: code.status(),
            code: code.as_str(),
            message: self.message(),
            retry_after_s: self.retry_after_s(),
            allow: self.allow(),
            field: self.field(),
        }
    }

    /// The stable name, which goes with one status.
    pub fn code(&self) -> Code {
        match self {
            Self::Unauthenticated(_) | Self::NoSession => Code::Unauthorized,
            Self::RateLimited(_) => Code::RateLimited,
            Self::WrongScope { .. } => Code::WrongScope,
            Self::NotEntitled => Code::PartnerApiNotEntitled,
            Self::CrmNotEntitled => Code::CrmNotEntitled,
            Self::GymNotEnabled => Code::GymNotEnabled,
            Self::CrmNotConfigured => Code::OwnerConfigurationMissing,
            Self::PermissionMissing(_) => Code::PermissionMissing,
            Self::IdempotencyKeyInvalid | Self::Invalid(_) => Code::InvalidRequest,
            Self::IdempotencyKeyRequired => Code::IdempotencyKeyRequired,
            Self::IdempotencyPayloadMismatch => Code::IdempotencyPayloadMismatch,
            Self::BodyTooLarge => Code::BodyTooLarge,
            Self::UnsupportedMediaType => Code::UnsupportedMediaType,
            Self::InvalidJson(_) | Self::TooDeep => Code::InvalidJson,
            Self::NotFound(_) => Code::NotFound,
            Self::UnknownPath => Code::UnknownPath,
            Self::MethodNotAllowed(_) => Code::MethodNotAllowed,
            Self::GzipOnly => Code::NotAcceptable,
            Self::IdempotencyInProgress => Code::IdempotencyInProgress,
            Self::ContactMerged(_) => Code::ContactMerged,
            Self::StageUnknown(_) => Code::StageUnknown,
            Self::LostReasonRequired => Code::LostReasonRequired,
            Self::LostReasonNotAllowed => Code::LostReasonNotAllowed,
            Self::StagePaymentControlled => Code::StagePaymentControlled,
            Self::SlotUnavailable => Code::SlotUnavailable,
            Self::CheckoutRequired(_) => Code::CheckoutRequired,
            Self::BookingNotActive => Code::BookingNotActive,
            Self::EmailTaken => Code::EmailTaken,
            Self::ClientInactive => Code::ClientInactive,
            Self::NoLoginEmail => Code::NoLoginEmail,
            Self::PlanFull => Code::PlanLimitReached,
            Self::TeamFull => Code::TeamLimitReached,
            Self::WorkspaceUnknown => Code::WorkspaceUnknown,
            Self::KeyLimit => Code::KeyLimitReached,
            Self::KeyNotLive => Code::KeyNotLive,
            Self::EndpointLimit => Code::EndpointLimitReached,
            Self::EndpointGone => Code::EndpointGone,
            Self::EndpointDisabled => Code::EndpointDisabled,
            Self::SecretLimit => Code::SecretLimitReached,
            Self::DeliveryInProgress => Code::DeliveryInProgress,
            Self::DeliveryErased => Code::DeliveryErased,
            Self::RecoveryRunning { .. } => Code::RecoveryRunning,
            Self::Unconfirmed(_) => Code::Unconfirmed,
            Self::Internal(_) => Code::Internal,
        }
    }

    /// What a person reads. Not stable.
    pub fn message(&self) -> String {
        let text = match self {
            Self::Unauthenticated(why) => *why,
            Self::RateLimited(quota) => return used_up(quota),
            Self::WrongScope { needed } => {
                return format!(
                    "This key is real but has another scope. This operation needs a key of scope {needed}."
                );
            }
            Self::NotEntitled => "This workspace is not entitled to the Partner API. The coach can add it to the plan.",
            Self::CrmNotEntitled => "This workspace is not entitled to the Pro CRM. The coach can add it to the plan.",
            Self::GymNotEnabled => "The gym capability is not enabled for this workspace. The coach can enable it.",
            Self::CrmNotConfigured => {
                "The coach has not set the CRM up for the API: a pipeline and its initial open stage, in the application's settings."
            }
            Self::PermissionMissing(permission) => {
                return format!(
                    "This key lacks the permission {}. The coach can make a key that has it.",
                    permission.as_str()
                );
            }
            Self::NoSession => "Sign in as a coach to use the settings.",
            Self::IdempotencyKeyInvalid => return format!("Idempotency-Key must be 1 to {MAX_KEY_CHARS} characters."),
            Self::IdempotencyKeyRequired => {
                return format!(
                    "Idempotency-Key is required: 1 to {MAX_KEY_CHARS} characters, one for each thing to be done."
                );
            }
            Self::IdempotencyPayloadMismatch => {
                "This Idempotency-Key was used for another method, path or body. Send the same again, or take a new key."
            }
            Self::BodyTooLarge => return format!("The body must be at most {MAX_BODY_BYTES} bytes."),
            Self::UnsupportedMediaType => "The body must be JSON: Content-Type: application/json.",
            Self::InvalidJson(why) => return format!("The body must be a JSON object: {why}."),
            Self::TooDeep => return format!("The body must not nest deeper than {MAX_JSON_DEPTH} levels."),
            Self::Invalid(invalid) => return invalid.message.clone(),
            Self::NotFound(what) => return format!("There is no such {what}."),
            Self::UnknownPath => "There is nothing at this path. /docs names all paths.",
            Self::MethodNotAllowed(methods) => return format!("This path takes {}.", methods.join(", ")),
            Self::GzipOnly => {
                "This is large, and sent compressed alone. Send `Accept-Encoding: gzip` (curl: --compressed)."
            }
            Self::IdempotencyInProgress => "A request with the same idempotency key is in progress. Retry as it is.",
            Self::ContactMerged(_) => "This contact was merged into another, which mergedIntoId names. Use that one.",
            Self::StageUnknown(stages) => {
                let ids: Vec<&str> = stages.iter().take(MAX_NAMED_STAGES).map(StageId::as_str).collect();
                let more = if stages.len() > ids.len() { ", .." } else { "" };
                let ids = ids.join(", ");
                return format!("stage must be the id of an open or lost stage of this key's pipeline: {ids}{more}.");
            }
            Self::LostReasonRequired => "lostReason is required with a lost stage.",
            Self::LostReasonNotAllowed => "lostReason goes with a lost stage alone; this one is open.",
            Self::StagePaymentControlled => {
                "Winning is left to payments: a won stage cannot be chosen, and a won opportunity takes a new name only."
            }
            Self::SlotUnavailable => {
                "This time cannot be booked. POST /v1/crm/bookings/availability lists the times that can."
            }
            Self::CheckoutRequired(_) => {
                "This calendar is paid for. Send the person to bookingUrl; nothing was charged or reserved."
            }
            Self::BookingNotActive => "This booking is cancelled or past.",
            Self::EmailTaken => "An account already exists for this email.",
            Self::ClientInactive => "This client is not active. PATCH it with is_active true first.",
            Self::NoLoginEmail => "This client has no login email. The coach can add one in the application.",
            Self::PlanFull => {
                "The plan's client limit is reached. It counts every stored client, deactivated ones included."
            }
            Self::TeamFull => "The team's client limit is reached.",
            Self::WorkspaceUnknown => "The application has not handed this workspace over yet. Try again in a minute.",
            Self::KeyLimit => return format!("A workspace has at most {MAX_LIVE_KEYS} live keys. Revoke one first."),
            Self::KeyNotLive => "A key that is revoked or has expired cannot be rotated.",
            Self::EndpointLimit => {
                return format!("A workspace has at most {MAX_ENDPOINTS} webhook endpoints. Delete one first.");
            }
            Self::EndpointGone => "The receiver answered 410 Gone, which is for good. Register a new endpoint.",
            Self::EndpointDisabled => "The endpoint is switched off. Enable it first.",
            Self::SecretLimit => {
                return format!(
                    "{MAX_SECRETS} secrets sign for this endpoint at present. Wait for the oldest to end, {} hours after its rotation.",
                    SECRET_OVERLAP.num_hours()
                );
            }
            Self::DeliveryInProgress => "An attempt at this delivery is under way. Try again in a minute.",
            Self::DeliveryErased => "The client that this event is about is erased, and the event with it.",
            Self::RecoveryRunning { retry_after_s } => {
                return format!("A recovery of this endpoint is running. Try again in {retry_after_s} s.");
            }
            Self::Unconfirmed(_) => {
                "It could not be confirmed whether this was done. Retry with the same Idempotency-Key: it is done once."
            }
            Self::Internal(_) => {
                "Something went wrong on our side. Retry, with the same Idempotency-Key where it had one; if it stays, give support the event_id."
            }
        };
        text.to_owned()
    }

    fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::RateLimited(quota) => Some(quota.reset_s),
            Self::RecoveryRunning { retry_after_s } => Some(*retry_after_s),
            Self::IdempotencyInProgress | Self::Unconfirmed(_) => Some(domain::idempotency::IN_PROGRESS_RETRY_S),
            _ => None,
        }
    }

    fn allow(&self) -> Option<String> {
        match self {
            Self::MethodNotAllowed(methods) => Some(methods.join(", ")),
            _ => None,
        }
    }

    /// The field or parameter that is at fault.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::Invalid(invalid) => invalid.field.clone(),
            Self::StageUnknown(_) => Some("stage".to_owned()),
            Self::LostReasonRequired | Self::LostReasonNotAllowed => Some("lostReason".to_owned()),
            _ => None,
        }
    }

    /// Members of the answer that only this problem has.
    pub fn members(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::ContactMerged(into) => vec![("mergedIntoId", into.to_string())],
            Self::CheckoutRequired(booking_url) => vec![("bookingUrl", booking_url.clone())],
            _ => Vec::new(),
        }
    }
}

fn used_up(quota: &Quota) -> String {
    let (most, reset_s) = (quota.limit.per_minute(), quota.reset_s);
    let used_up = match quota.limit {
        Limit::Requests => format!("This key has made its {most} requests"),
        Limit::LoginLinks => format!("This key has made its {most} requests for a login link"),
        Limit::SettingsRequests => format!("This coach has made the {most} requests to the settings"),
        Limit::TestEvents => format!("This endpoint has been sent the {most} test events"),
    };
    format!("{used_up} of this minute. Try again in {reset_s} s.")
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
