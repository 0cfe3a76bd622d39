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
        "A header, parameter or field is missing or breaks its rule. The message says which, and what would be right.",
    InvalidJson = "invalid_json" BAD_REQUEST
        "The body is no JSON object, or nests too deep.",
    IdempotencyKeyRequired = "idempotency_key_required" BAD_REQUEST
        "Every write of the CRM needs an `Idempotency-Key`.",
    StageUnknown = "stage_unknown" BAD_REQUEST
        "The key's pipeline has no such stage.",
    LostReasonRequired = "lost_reason_required" BAD_REQUEST
        "A lost stage is chosen with a `lostReason`.",
    LostReasonNotAllowed = "lost_reason_not_allowed" BAD_REQUEST
        "An open stage has no `lostReason`.",
    NoLoginEmail = "no_login_email" BAD_REQUEST
        "The client has no e-mail address to sign in with.",
    Unauthorized = "unauthorized" UNAUTHORIZED
        "No key or session, or one that is malformed, unknown, revoked or expired.",
    PartnerApiNotEntitled = "partner_api_not_entitled" PAYMENT_REQUIRED
        "The key is good, but its workspace is not entitled to the Partner API.",
    WrongScope = "wrong_scope" FORBIDDEN
        "The key is good, but has another scope.",
    CrmNotEntitled = "crm_not_entitled" FORBIDDEN
        "The key is good, but its workspace is not entitled to the Pro CRM.",
    GymNotEnabled = "gym_not_enabled" FORBIDDEN
        "The key is good, but its workspace does not have the gym capability.",
    OwnerConfigurationMissing = "owner_configuration_missing" FORBIDDEN
        "The coach has not chosen the pipeline and the initial stage for the API, or they no longer exist.",
    PermissionMissing = "permission_missing" FORBIDDEN
        "The key lacks the permission that the operation needs.",
    NotFound = "not_found" NOT_FOUND
        "It does not exist, or is another coach's.",
    UnknownPath = "unknown_path" NOT_FOUND
        "Nothing is at this path.",
    MethodNotAllowed = "method_not_allowed" METHOD_NOT_ALLOWED
        "The path takes other methods, which `Allow` names.",
    NotAcceptable = "not_acceptable" NOT_ACCEPTABLE
        "The answer is large and sent compressed alone, and `Accept-Encoding` does not take gzip.",
    IdempotencyInProgress = "idempotency_in_progress" CONFLICT
        "A request with the same idempotency key is running. The one conflict to retry as it is, after `Retry-After`.",
    IdempotencyPayloadMismatch = "idempotency_payload_mismatch" CONFLICT
        "The idempotency key was used for another request: another method, path or body.",
    ContactMerged = "contact_merged" CONFLICT
        "The contact was merged into another, which `mergedIntoId` names.",
    SlotUnavailable = "slot_unavailable" CONFLICT
        "The time is not one that the calendar offers, or no longer.",
    CheckoutRequired = "checkout_required" CONFLICT
        "The calendar is paid for: the person books at `bookingUrl`. Nothing was charged or reserved.",
    BookingNotActive = "booking_not_active" CONFLICT
        "The booking is cancelled or past.",
    StagePaymentControlled = "stage_payment_controlled" CONFLICT
        "Payments alone win an opportunity; of one that is won, the name alone can be changed.",
    EmailTaken = "email_taken" CONFLICT
        "An account with this e-mail address exists, with this coach or another.",
    ClientInactive = "client_inactive" CONFLICT
        "The client is not active.",
    PlanLimitReached = "plan_limit_reached" CONFLICT
        "The plan's client limit is reached. Every stored client counts, deactivated ones too.",
    TeamLimitReached = "team_limit_reached" CONFLICT
        "The team's client limit is reached.",
    WorkspaceUnknown = "workspace_unknown" CONFLICT
        "The application has not handed the coach's workspace over yet.",
    KeyLimitReached = "key_limit_reached" CONFLICT
        "The workspace has as many live keys as it may have.",
    KeyNotLive = "key_not_live" CONFLICT
        "The key is revoked or has expired.",
    EndpointLimitReached = "endpoint_limit_reached" CONFLICT
        "The workspace has as many webhook endpoints as it may have.",
    EndpointGone = "endpoint_gone" CONFLICT
        "The endpoint's receiver has answered 410, which is for good.",
    EndpointDisabled = "endpoint_disabled" CONFLICT
        "The endpoint is switched off.",
    SecretLimitReached = "secret_limit_reached" CONFLICT
        "As many secrets sign for the endpoint as may, after rotations within 24 hours.",
    DeliveryInProgress = "delivery_in_progress" CONFLICT
        "An attempt at the delivery is under way.",
    DeliveryErased = "delivery_erased" CONFLICT
        "The client that the event is about is erased, and what there was to send.",
    RecoveryRunning = "recovery_running" CONFLICT
        "Another recovery of the endpoint is running. `Retry-After` says when it has ended at the latest.",
    BodyTooLarge = "body_too_large" PAYLOAD_TOO_LARGE
        "The body is too large.",
    UnsupportedMediaType = "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE
        "`Content-Type` names something other than JSON.",
    RateLimited = "rate_limited" TOO_MANY_REQUESTS
        "The limit of this calendar minute is used up. `Retry-After` says when the next begins.",
    Internal = "internal" INTERNAL_SERVER_ERROR
        "A fault of the service. Retry as it is, with the same idempotency key; `event_id` is what support asks for.",
    Unconfirmed = "unconfirmed" SERVICE_UNAVAILABLE
        "A write of the CRM could not be confirmed: it may or may not have happened. Retry with the same idempotency key, which finds out.",
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
