//! The error of handlers. One place gives each variant its code, and with it its status.

use std::error::Error;

use domain::api_key::Permission;
use domain::endpoint::{MAX_ENDPOINTS, MAX_SECRETS, SECRET_OVERLAP};
use domain::event::EventType;
use domain::event_feed::FEED_RETENTION;
use domain::fields::{Invalid, MAX_BODY_BYTES, MAX_JSON_DEPTH};
use domain::id::{ContactId, StageId};
use domain::id_kind::IdKind;
use domain::idempotency::MAX_KEY_CHARS;
use domain::key::MAX_LIVE_KEYS;
use domain::mode::Mode;
use domain::rate_limit::{Limit, Quota};
use domain::sandbox::WIPE_RETRY_S;
use domain::tz::UnknownZone;
use http::Method;
use serde_json::{Map, Value, json};
use store::StoreError;
use tokio::time::error::Elapsed;

use crate::code::Code;
use crate::routes::{Routed, find};

/// Stages that a refusal names.
const MAX_NAMED_STAGES: usize = 20;

/// The only error of a handler. Displays as the message for a person, which is not stable.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Missing, malformed, unknown, revoked or expired key.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The key is for deployments of the other mode.
    #[error("{}", other_mode(*.mode, .address.as_deref()))]
    OtherMode {
        /// The mode of this deployment.
        mode: Mode,
        /// The address of the deployment where the key may work.
        address: Option<String>,
    },
    /// The limit that is used up.
    #[error("{}", used_up(.0))]
    RateLimited(Quota),
    #[error("This key is real but has another scope. This operation needs a key of scope {needed}.")]
    WrongScope { needed: &'static str },
    #[error("This workspace is not entitled to the Partner API. The coach can add it to the plan.")]
    NotEntitled,
    #[error("This workspace is not entitled to the Pro CRM. The coach can add it to the plan.")]
    CrmNotEntitled,
    #[error("The gym capability is not enabled for this workspace. The coach can enable it.")]
    GymNotEnabled,
    /// The coach has not configured the CRM for the API, or the configured pipeline or stage is gone.
    #[error(
        "The coach has not set the CRM up for the API: a pipeline and its initial open stage, in the application's settings."
    )]
    CrmNotConfigured,
    #[error("This key lacks the permission {}. The coach can make a key that has it.", .0.as_str())]
    PermissionMissing(Permission),
    #[error("This key may not read events. The coach can allow it, by type.")]
    EventsNotAllowed,
    #[error("This key may not read events of the type {}. The coach can allow it.", .0.as_str())]
    EventTypeNotAllowed(EventType),
    #[error(
        "This cursor is from before the {} days for which events are kept, or from before a time in which no key could \
         read events, so that none were kept. Begin without it.",
        FEED_RETENTION.num_days()
    )]
    CursorExpired,
    #[error("Sign in as a coach to use the settings.")]
    NoSession,
    /// A valid session of nobody.
    #[error("The session is valid, but its token has no usable coach id or subject. The application has to name them.")]
    SessionWithoutCoach,
    #[error("Idempotency-Key must be 1 to {} printable ASCII characters.", MAX_KEY_CHARS)]
    IdempotencyKeyInvalid,
    #[error(
        "Idempotency-Key is required: 1 to {} printable ASCII characters, one for each thing to be done.",
        MAX_KEY_CHARS
    )]
    IdempotencyKeyRequired,
    #[error("This Idempotency-Key was used for another method, path or body. Send the same again, or take a new key.")]
    IdempotencyPayloadMismatch,
    #[error("The body must be at most {} bytes.", MAX_BODY_BYTES)]
    BodyTooLarge,
    #[error("The body must be JSON: Content-Type: application/json.")]
    UnsupportedMediaType,
    #[error("The body must be sent as it is: no Content-Encoding, or `identity`. Compressed bodies are not read.")]
    UnsupportedCoding,
    #[error("The body must be a JSON object: {0}.")]
    InvalidJson(String),
    #[error("The body must not nest deeper than {} levels.", MAX_JSON_DEPTH)]
    TooDeep,
    #[error("{}", .0.message)]
    Invalid(Invalid),
    /// The thing does not exist for this caller.
    #[error("There is no such {0}.")]
    NotFound(&'static str),
    #[error("There is nothing at this path. /docs/reference names all paths.")]
    UnknownPath,
    #[error("This path takes {}.", .0.join(", "))]
    MethodNotAllowed(Vec<&'static str>),
    #[error("A request with the same idempotency key is in progress. Retry as it is.")]
    IdempotencyInProgress,
    /// The recorded answer is gone with the person whom it was about.
    #[error(
        "This Idempotency-Key, or the address in place of a key, stands for a request about a person who is erased. It \
         is not done again. A request under a new Idempotency-Key is."
    )]
    PersonErased,
    #[error("This contact was merged into another, which mergedIntoId names. Use that one.")]
    ContactMerged(ContactId),
    /// The contact that a read names was merged into this one.
    #[error("This contact was merged into another, which mergedIntoId names. Read that one.")]
    MergedContactNotFound(ContactId),
    /// The stages to choose from.
    #[error("stage must be the id of an open or lost stage of this key's pipeline: {}.", stage_ids(.0))]
    StageUnknown(Vec<StageId>),
    #[error("lostReason is required with a lost stage.")]
    LostReasonRequired,
    #[error("lostReason goes with a lost stage alone; this one is open.")]
    LostReasonNotAllowed,
    #[error("Winning is left to payments: a won stage cannot be chosen, and a won opportunity takes a new name only.")]
    StagePaymentControlled,
    #[error("This time cannot be booked. POST /v1/crm/bookings/availability lists the times that can.")]
    SlotUnavailable,
    #[error(
        "The calendar of this booking takes no bookings at present, so the booking cannot be moved. It can be cancelled."
    )]
    CalendarTakesNoBookings,
    /// The URL where the person books and pays.
    #[error("This calendar is paid for. Send the person to bookingUrl; nothing was charged or reserved.")]
    CheckoutRequired(String),
    #[error("This booking is cancelled or past.")]
    BookingNotActive,
    #[error("An account already exists for this email.")]
    EmailTaken,
    #[error("external_id is that of another of your clients. GET /v1/clients?external_id= finds it.")]
    ExternalIdTaken,
    #[error("This client is not active. PATCH it with is_active true first.")]
    ClientInactive,
    #[error("This client has no login email. The coach can add one in the application.")]
    NoLoginEmail,
    #[error("The plan's client limit is reached. It counts every stored client, deactivated ones included.")]
    PlanFull,
    #[error("The team's client limit is reached.")]
    TeamFull,
    #[error("The application has not handed this workspace over yet. Try again in a minute.")]
    WorkspaceUnknown,
    #[error("A workspace has at most {} live keys. Revoke one first.", MAX_LIVE_KEYS)]
    KeyLimit,
    #[error("A key that is revoked or has expired cannot be rotated.")]
    KeyNotLive,
    #[error("This key is revoked, for good. Create a new key.")]
    KeyRevoked,
    #[error(
        "This key has expired or is replaced: neither its expiry can change, nor can it be rotated. Create a new key."
    )]
    KeyNotActive,
    #[error(
        "This key has expired or is replaced: the events that it may read cannot change. Change those of the key that \
         replaced it."
    )]
    KeyEventsFixed,
    #[error("A workspace has at most {} webhook endpoints. Delete one first.", MAX_ENDPOINTS)]
    EndpointLimit,
    #[error("The receiver answered 410 Gone, which is for good. Register a new endpoint.")]
    EndpointGone,
    #[error("The endpoint is switched off. Enable it first.")]
    EndpointDisabled,
    #[error(
        "{} secrets sign for this endpoint at present. Wait for the oldest to end, {} hours after its rotation.",
        MAX_SECRETS,
        SECRET_OVERLAP.num_hours()
    )]
    SecretLimit,
    #[error("The client that this event is about is erased, and the event with it.")]
    DeliveryErased,
    /// Another recovery of the endpoint is running. Its lock ends after this time unless the recovery prolongs it.
    #[error("A recovery of this endpoint is running. Try again in {retry_after_s} s.")]
    RecoveryRunning { retry_after_s: u32 },
    #[error("The test data of this workspace is being removed. Try again in {} s.", WIPE_RETRY_S)]
    TestDataWiping,
    /// The limit of a UTC day, and the time to its end.
    #[error("This workspace may send {limit} {things} a UTC day to the sandbox. Try again in {retry_after_s} s.")]
    TestQuota { things: &'static str, limit: u32, retry_after_s: u32 },
    /// The store did not answer a write: it may or may not have happened.
    #[error("It could not be confirmed whether this was done. Retry with the same Idempotency-Key: it is done once.")]
    Unconfirmed(Fault),
    /// A fault of ours. Logged where it is rendered; its text never leaves.
    #[error(
        "Something went wrong on our side. Retry, with the same Idempotency-Key where it had one; if it stays, give support the event_id."
    )]
    Internal(Fault),
}

/// A failed step, and its cause.
#[derive(Debug)]
pub struct Fault {
    pub doing: &'static str,
    pub source: Box<dyn Error + Send + Sync>,
}

impl Problem {
    /// The refusal of an id that names no record of the caller.
    pub fn not_found(kind: IdKind) -> Self {
        Self::NotFound(kind.noun())
    }

    /// A fault of ours.
    pub fn internal(doing: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(Fault { doing, source: source.into() })
    }

    /// The problem of a request that timed out. A CRM write may have been committed, so it is unconfirmed.
    pub(crate) fn timed_out(method: &Method, path: &str, elapsed: Elapsed) -> Self {
        let fault = Fault { doing: "answer in time", source: elapsed.into() };
        match find(method, path) {
            Routed::Known(route) if route.writes_to_crm() => Self::Unconfirmed(fault),
            _ => Self::Internal(fault),
        }
    }

    /// Turns a fault of an unavailable store into [`Problem::Unconfirmed`]: the caller retries and learns the result.
    pub(crate) fn unconfirmed(self) -> Self {
        match self {
            Self::Internal(fault)
                if matches!(fault.source.downcast_ref::<StoreError>(), Some(StoreError::Unavailable { .. })) =>
            {
                Self::Unconfirmed(fault)
            }
            other => other,
        }
    }

    /// The stable code. Each code has one status.
    pub fn code(&self) -> Code {
        match self {
            Self::Unauthenticated(_) | Self::OtherMode { .. } | Self::NoSession => Code::Unauthorized,
            Self::RateLimited(_) => Code::RateLimited,
            Self::WrongScope { .. } => Code::WrongScope,
            Self::NotEntitled => Code::PartnerApiNotEntitled,
            Self::CrmNotEntitled => Code::CrmNotEntitled,
            Self::GymNotEnabled => Code::GymNotEnabled,
            Self::CrmNotConfigured => Code::OwnerConfigurationMissing,
            Self::PermissionMissing(_) | Self::EventsNotAllowed | Self::EventTypeNotAllowed(_) => {
                Code::PermissionMissing
            }
            Self::SessionWithoutCoach => Code::SessionWithoutCoach,
            Self::IdempotencyKeyInvalid | Self::Invalid(_) => Code::InvalidRequest,
            Self::IdempotencyKeyRequired => Code::IdempotencyKeyRequired,
            Self::IdempotencyPayloadMismatch => Code::IdempotencyPayloadMismatch,
            Self::BodyTooLarge => Code::BodyTooLarge,
            Self::UnsupportedMediaType | Self::UnsupportedCoding => Code::UnsupportedMediaType,
            Self::InvalidJson(_) | Self::TooDeep => Code::InvalidJson,
            Self::CursorExpired => Code::CursorExpired,
            Self::NotFound(_) | Self::MergedContactNotFound(_) => Code::NotFound,
            Self::UnknownPath => Code::UnknownPath,
            Self::MethodNotAllowed(_) => Code::MethodNotAllowed,
            Self::IdempotencyInProgress => Code::IdempotencyInProgress,
            Self::PersonErased => Code::PersonErased,
            Self::ContactMerged(_) => Code::ContactMerged,
            Self::StageUnknown(_) => Code::StageUnknown,
            Self::LostReasonRequired => Code::LostReasonRequired,
            Self::LostReasonNotAllowed => Code::LostReasonNotAllowed,
            Self::StagePaymentControlled => Code::StagePaymentControlled,
            Self::SlotUnavailable | Self::CalendarTakesNoBookings => Code::SlotUnavailable,
            Self::CheckoutRequired(_) => Code::CheckoutRequired,
            Self::BookingNotActive => Code::BookingNotActive,
            Self::EmailTaken => Code::EmailTaken,
            Self::ExternalIdTaken => Code::ExternalIdTaken,
            Self::ClientInactive => Code::ClientInactive,
            Self::NoLoginEmail => Code::NoLoginEmail,
            Self::PlanFull => Code::PlanLimitReached,
            Self::TeamFull => Code::TeamLimitReached,
            Self::WorkspaceUnknown => Code::WorkspaceUnknown,
            Self::KeyLimit => Code::KeyLimitReached,
            Self::KeyNotLive => Code::KeyNotLive,
            Self::KeyRevoked => Code::KeyRevoked,
            Self::KeyNotActive | Self::KeyEventsFixed => Code::KeyNotActive,
            Self::EndpointLimit => Code::EndpointLimitReached,
            Self::EndpointGone => Code::EndpointGone,
            Self::EndpointDisabled => Code::EndpointDisabled,
            Self::SecretLimit => Code::SecretLimitReached,
            Self::DeliveryErased => Code::DeliveryErased,
            Self::RecoveryRunning { .. } => Code::RecoveryRunning,
            Self::TestDataWiping => Code::TestDataWiping,
            Self::TestQuota { .. } => Code::TestQuota,
            Self::Unconfirmed(_) => Code::Unconfirmed,
            Self::Internal(_) => Code::Internal,
        }
    }

    /// The body of an answer. A fault has the `event_id` that it is logged under.
    pub fn body(&self, request_id: &str, fault_id: Option<String>) -> Map<String, Value> {
        let mut members = Map::from_iter([
            ("error".to_owned(), json!(self.to_string())),
            ("code".to_owned(), json!(self.code().as_str())),
            ("request_id".to_owned(), json!(request_id)),
        ]);
        match self {
            Self::ContactMerged(into) | Self::MergedContactNotFound(into) => {
                members.insert("mergedIntoId".to_owned(), json!(into))
            }
            Self::CheckoutRequired(booking_url) => members.insert("bookingUrl".to_owned(), json!(booking_url)),
            _ => None,
        };
        members.extend(self.field().map(|field| ("field".to_owned(), json!(field))));
        members.extend(fault_id.map(|id| ("event_id".to_owned(), json!(id))));
        members
    }

    pub(crate) fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::RateLimited(quota) => Some(quota.reset_s),
            Self::RecoveryRunning { retry_after_s } | Self::TestQuota { retry_after_s, .. } => Some(*retry_after_s),
            Self::TestDataWiping => Some(WIPE_RETRY_S),
            Self::IdempotencyInProgress | Self::Unconfirmed(_) => Some(domain::idempotency::IN_PROGRESS_RETRY_S),
            _ => None,
        }
    }

    /// The field or parameter at fault.
    pub fn field(&self) -> Option<String> {
        match self {
            Self::Invalid(invalid) => invalid.field.clone(),
            Self::ExternalIdTaken => Some("external_id".to_owned()),
            Self::StageUnknown(_) => Some("stage".to_owned()),
            Self::LostReasonRequired | Self::LostReasonNotAllowed => Some("lostReason".to_owned()),
            _ => None,
        }
    }
}

/// The ids of the first stages.
fn stage_ids(stages: &[StageId]) -> String {
    let ids: Vec<&str> = stages.iter().take(MAX_NAMED_STAGES).map(StageId::as_str).collect();
    let more = if stages.len() > ids.len() { ", .." } else { "" };
    ids.join(", ") + more
}

fn other_mode(mode: Mode, address: Option<&str>) -> String {
    let (what, keys) = match mode {
        Mode::Live => ("This is a test key, and this is the live service.", "Test keys"),
        Mode::Test => ("This is a live key, and this is a sandbox.", "Live keys"),
    };
    address.map_or_else(|| what.to_owned(), |address| format!("{what} {keys} work at {address}."))
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

impl From<UnknownZone> for Problem {
    fn from(unknown: UnknownZone) -> Self {
        Self::internal("find the workspace's time zone", unknown)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::internal("use the store", error)
    }
}
