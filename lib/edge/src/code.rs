//! The stable codes of problems. Callers branch on codes: a published code stays and keeps its status.

use std::fmt;

use http::StatusCode;

macro_rules! codes {
    ($($name:ident = $text:literal $status:ident $meaning:literal,)*) => {
        /// The `code` of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($name,)*
        }

        impl Code {
            /// All codes, by status.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The value of `code` in answers.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The status of the code.
            pub fn status(self) -> StatusCode {
                match self {
                    $(Self::$name => StatusCode::$status,)*
                }
            }

            /// The meaning, in one or two sentences of Markdown for the reference.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    InvalidRequest = "invalid_request" BAD_REQUEST
        "A header, parameter or field is missing or breaks its rule. `error` names it and the rule.",
    InvalidJson = "invalid_json" BAD_REQUEST
        "The body is not a JSON object, or nests too deep.",
    IdempotencyKeyRequired = "idempotency_key_required" BAD_REQUEST
        "Every write of the CRM needs an `Idempotency-Key`.",
    StageUnknown = "stage_unknown" BAD_REQUEST
        "The key's pipeline has no such stage.",
    LostReasonRequired = "lost_reason_required" BAD_REQUEST
        "A lost stage needs a `lostReason`.",
    LostReasonNotAllowed = "lost_reason_not_allowed" BAD_REQUEST
        "An open stage takes no `lostReason`.",
    CursorExpired = "cursor_expired" BAD_REQUEST
        "The cursor leads to events that may be deleted, or that were not kept. Begin without a cursor.",
    ExternalIdTaken = "external_id_taken" BAD_REQUEST
        "Another client of the coach has this external id.",
    NoLoginEmail = "no_login_email" BAD_REQUEST
        "The client has no e-mail address to sign in with.",
    Unauthorized = "unauthorized" UNAUTHORIZED
        "No key or session, or one that is malformed, unknown, revoked or expired.",
    PartnerApiNotEntitled = "partner_api_not_entitled" PAYMENT_REQUIRED
        "The key is valid, but its workspace is not entitled to the Partner API.",
    WrongScope = "wrong_scope" FORBIDDEN
        "The key is valid, but has another scope.",
    CrmNotEntitled = "crm_not_entitled" FORBIDDEN
        "The key is valid, but its workspace is not entitled to the Pro CRM.",
    GymNotEnabled = "gym_not_enabled" FORBIDDEN
        "The key is valid, but its workspace does not have the gym capability.",
    OwnerConfigurationMissing = "owner_configuration_missing" FORBIDDEN
        "The coach has not chosen the pipeline and the initial stage for the API, or they no longer exist.",
    PermissionMissing = "permission_missing" FORBIDDEN
        "The key lacks the permission that the operation needs, or may not read the events.",
    SessionWithoutCoach = "session_without_coach" FORBIDDEN
        "The session is valid, but its token has no usable coach id or subject.",
    NotFound = "not_found" NOT_FOUND
        "The record does not exist, or belongs to another coach.",
    UnknownPath = "unknown_path" NOT_FOUND
        "The path does not exist.",
    MethodNotAllowed = "method_not_allowed" METHOD_NOT_ALLOWED
        "The path does not have this method. `Allow` names its methods.",
    IdempotencyInProgress = "idempotency_in_progress" CONFLICT
        "A request with the same idempotency key is running. Wait for `Retry-After`, then retry unchanged.",
    IdempotencyPayloadMismatch = "idempotency_payload_mismatch" CONFLICT
        "The idempotency key stands for another method, path or body.",
    PersonErased = "person_erased" CONFLICT
        "The idempotency key stands for a request about a person who is erased. Nothing is done again.",
    ContactMerged = "contact_merged" CONFLICT
        "The contact was merged into another, which `mergedIntoId` names.",
    SlotUnavailable = "slot_unavailable" CONFLICT
        "The time is not free, or is not a slot of the calendar.",
    CheckoutRequired = "checkout_required" CONFLICT
        "The calendar is paid: the person books at `bookingUrl`. Nothing was charged or reserved.",
    BookingNotActive = "booking_not_active" CONFLICT
        "The booking is cancelled or past.",
    StagePaymentControlled = "stage_payment_controlled" CONFLICT
        "Only payments win an opportunity. Only the name of a won opportunity can change.",
    EmailTaken = "email_taken" CONFLICT
        "An account with this e-mail address exists, with this coach or another.",
    ClientInactive = "client_inactive" CONFLICT
        "The client is not active.",
    PlanLimitReached = "plan_limit_reached" CONFLICT
        "The plan's client limit is reached. Every stored client counts, deactivated ones too.",
    TeamLimitReached = "team_limit_reached" CONFLICT
        "The team's client limit is reached.",
    WorkspaceUnknown = "workspace_unknown" CONFLICT
        "The application has not sent the coach's workspace yet.",
    KeyLimitReached = "key_limit_reached" CONFLICT
        "The workspace has the maximum number of live keys.",
    KeyNotLive = "key_not_live" CONFLICT
        "The key is revoked or has expired.",
    KeyRevoked = "key_revoked" CONFLICT
        "The key is revoked, so it cannot change.",
    KeyNotActive = "key_not_active" CONFLICT
        "The key has expired or is replaced, so its expiry cannot change.",
    EndpointLimitReached = "endpoint_limit_reached" CONFLICT
        "The workspace has the maximum number of webhook endpoints.",
    EndpointGone = "endpoint_gone" CONFLICT
        "The endpoint's receiver answered 410. The endpoint stays `gone`.",
    EndpointDisabled = "endpoint_disabled" CONFLICT
        "The endpoint is disabled.",
    SecretLimitReached = "secret_limit_reached" CONFLICT
        "The endpoint has the maximum number of signing secrets, because of recent rotations.",
    DeliveryErased = "delivery_erased" CONFLICT
        "The client that the event is about is erased, and the event with it.",
    RecoveryRunning = "recovery_running" CONFLICT
        "Another recovery of the endpoint is running. Try again after `Retry-After`.",
    TestDataWiping = "test_data_wiping" CONFLICT
        "The test data of the workspace is being removed, in a sandbox. Retry unchanged after `Retry-After`.",
    BodyTooLarge = "body_too_large" PAYLOAD_TOO_LARGE
        "The body is too large.",
    UnsupportedMediaType = "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE
        "`Content-Type` names something other than JSON.",
    RateLimited = "rate_limited" TOO_MANY_REQUESTS
        "The limit of this calendar minute is used up. The next minute begins after `Retry-After`.",
    TestQuota = "test_quota" TOO_MANY_REQUESTS
        "The facts or events of this UTC day are used up, in a sandbox. The next day begins after `Retry-After`.",
    Internal = "internal" INTERNAL_SERVER_ERROR
        "A fault of the service. Retry unchanged, with the same idempotency key. Give support the `event_id`.",
    Unconfirmed = "unconfirmed" SERVICE_UNAVAILABLE
        "The write may or may not have happened. Retry unchanged, with the same idempotency key. The write happens \
         once.",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_snake_case_stand_once_and_go_up_by_status() {
        let names: std::collections::BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        assert!(Code::ALL.is_sorted_by_key(|code| code.status()));
        assert!(Code::ALL.iter().all(|code| code.status().is_client_error() || code.status().is_server_error()));
    }
}
