//! The audit trail of a coach's settings: who changed what, and when.
//!
//! A line tells ids, names of fields and counts. It has no secret, and of a URL only the host: the rest may hold a
//! secret.

use serde::{Deserialize, Serialize};

use crate::api_key::Scope;
use crate::delivery::RecoverySelection;
use crate::endpoint::{Endpoint, EndpointStatus};
use crate::event::EventName;
use crate::id::{DeliveryId, EndpointId, KeyId};
use crate::time::Timestamp;

crate::named! {
    /// An action of the trail.
    AuditAction {
        KeyCreated = "key.created",
        KeyUpdated = "key.updated",
        KeyRotated = "key.rotated",
        KeyRevoked = "key.revoked",
        EndpointCreated = "endpoint.created",
        /// By the coach, pausing and enabling included.
        EndpointUpdated = "endpoint.updated",
        EndpointDeleted = "endpoint.deleted",
        EndpointSecretRotated = "endpoint.secret_rotated",
        /// By the service.
        EndpointDisabled = "endpoint.disabled",
        EndpointTestSent = "endpoint.test_sent",
        DeliveryRetried = "delivery.retried",
        DeliveriesRecovered = "deliveries.recovered",
        /// By an operator, like those below. A dead letter was sent to its queue again.
        DeadRedriven = "dead.redriven",
        DeadDropped = "dead.dropped",
        ClientExported = "client.exported",
        CountsRebuilt = "counts.rebuilt",
    }
}

/// The actor of a line that the service itself caused.
const SERVICE: &str = "service";
/// Prefix of the actor of a line that an operator of the service caused.
const OPERATOR: &str = "operator:";
/// Most characters of a subject, as OpenID Connect has it.
pub const MAX_SUBJECT_CHARS: usize = 255;

/// The cause of a change: the subject of a session, the service, or an operator of the service. A subject may be a
/// person's name.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct AuditActor(String);
crate::discreet! { AuditActor }

impl AuditActor {
    /// Creates the actor of a session from its subject: 1 to 255 characters without control characters or outer blanks.
    /// `None`: the subject has another form, or is the name of the service or of an operator.
    pub fn of_session(subject: &str) -> Option<Self> {
        let has_form = (1..=MAX_SUBJECT_CHARS).contains(&subject.chars().count())
            && subject.trim() == subject
            && !subject.contains(char::is_control);
        let is_ours = subject == SERVICE || subject.starts_with(OPERATOR);
        (has_form && !is_ours).then(|| Self(subject.to_owned()))
    }

    /// Creates the actor of a change that the service makes by itself.
    pub fn service() -> Self {
        Self(SERVICE.to_owned())
    }

    /// Creates the actor of a change that an operator of the service makes, such as `operator:role/oncall`.
    pub fn operator(name: &str) -> Self {
        Self(format!("{OPERATOR}{name}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Details of a line. An action has few of them.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AuditDetail {
    /// The name of the key, as it was before a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The scope of the key that was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The key that replaces the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_key_id: Option<KeyId>,
    /// The names of the fields that the coach set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
    /// The host of the endpoint's URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The status of the endpoint afterwards, if the action sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<EndpointStatus>,
    /// The endpoint of the delivery that was sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_id: Option<EndpointId>,
    /// The delivery of the test event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<DeliveryId>,
    /// The name of the event.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The number of deliveries that a recovery found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<usize>,
    /// The creation from which deliveries were recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The creation before which deliveries were recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The events that were recovered. Absent if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<String>>,
    /// The reason that an operator of the service gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
crate::discreet! { AuditDetail }

impl AuditDetail {
    /// Creates the details of an action on an endpoint.
    pub fn of_endpoint(endpoint: &Endpoint) -> Self {
        Self { host: Some(endpoint.url.host().to_owned()), ..Self::default() }
    }

    /// Creates the details of a test event.
    pub fn of_test(endpoint: &Endpoint, event: EventName, delivery: &DeliveryId) -> Self {
        let (event_type, delivery_id) = (Some(event.as_str().to_owned()), Some(delivery.clone()));
        Self { event_type, delivery_id, ..Self::of_endpoint(endpoint) }
    }

    /// Creates the details of a recovery.
    pub fn of_recovery(endpoint: &Endpoint, selection: &RecoverySelection) -> Self {
        let RecoverySelection { since, until, types } = selection;
        let types = types.as_ref().map(|types| types.iter().map(|name| name.as_str().to_owned()).collect());
        Self { since: Some(*since), until: *until, types, ..Self::of_endpoint(endpoint) }
    }
}

/// A line of the trail.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct AuditEntry {
    /// When the action was taken.
    pub at: Timestamp,
    /// The subject of the coach's session, `service`, or `operator:` and the role of an operator of the service.
    pub actor: AuditActor,
    pub action: AuditAction,
    /// The id of the key, endpoint, delivery, client, coach or fact. A rotation names the old key; a test event and a
    /// recovery name the endpoint.
    pub target: String,
    pub detail: AuditDetail,
}

/// A page of the trail.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct AuditPage {
    /// The lines of this page, newest first.
    pub data: Vec<AuditEntry>,
    /// The `cursor` of the next page. Null on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// A position in the trail: the time of a line and its distinguisher among the lines of that time. As text: 15 digits
/// of milliseconds, 12 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCursor {
    pub at: Timestamp,
    pub distinguisher: String,
}

const TIME_DIGITS: usize = 15;
/// Hexadecimal digits of a distinguisher.
pub const DISTINGUISHER_DIGITS: usize = 12;

impl AuditCursor {
    /// Creates a position. `None`: the distinguisher is malformed.
    pub fn new(at: Timestamp, distinguisher: &str) -> Option<Self> {
        let is_formed = distinguisher.len() == DISTINGUISHER_DIGITS
            && distinguisher.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        is_formed.then(|| Self { at, distinguisher: distinguisher.to_owned() })
    }

    /// Parses the text of a position.
    pub fn parse(text: &str) -> Option<Self> {
        let (ms, distinguisher) = text.split_at_checked(TIME_DIGITS)?;
        let ms = ms.bytes().all(|b| b.is_ascii_digit()).then(|| ms.parse().ok()).flatten()?;
        Self::new(Timestamp::from_ms(ms), distinguisher)
    }
}

impl From<AuditCursor> for String {
    fn from(AuditCursor { at, distinguisher }: AuditCursor) -> Self {
        format!("{:015}{distinguisher}", at.ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_reads_back_as_it_was_written(ms in 0i64..4_000_000_000_000, seed: [u8; 6]) {
            let cursor = AuditCursor::new(Timestamp::from_ms(ms), &hex::encode(seed)).unwrap();
            let text = String::from(cursor.clone());
            prop_assert_eq!(AuditCursor::parse(&text), Some(cursor));
        }
    }

    #[test]
    fn a_text_of_another_form_is_no_position() {
        let (digits, hex) = ("001790000000000", "0123456789ab");
        assert!(AuditCursor::parse(&format!("{digits}{hex}")).is_some());
        for bad in [
            digits.to_owned(),
            format!("{digits}{}", hex.to_uppercase()),
            format!("{digits}{hex}0"),
            format!("{digits}{}", &hex[1..]),
            format!("+{}{hex}", &digits[1..]),
            format!("-{}{hex}", &digits[1..]),
            "€".repeat(9),
        ] {
            assert_eq!(AuditCursor::parse(&bad), None, "{bad}");
        }
    }

    #[rstest::rstest]
    #[case("auth0|5f7c8ec7c33c6c004bbafe82", true)]
    #[case("Ada Lovelace", true)]
    #[case(&"ü".repeat(MAX_SUBJECT_CHARS), true)]
    #[case("the service", true)]
    #[case(SERVICE, false)]
    #[case("service ", false)]
    #[case("\u{a0}service", false)]
    #[case("operator:role/oncall", false)]
    #[case("ser\0vice", false)]
    #[case("ada\n", false)]
    #[case(" ", false)]
    #[case("", false)]
    #[case(&"ü".repeat(MAX_SUBJECT_CHARS + 1), false)]
    fn a_session_cannot_act_as_the_service_or_under_a_name_that_is_none(#[case] subject: &str, #[case] acts: bool) {
        let actor = AuditActor::of_session(subject);
        assert_eq!(actor.as_ref().map(AuditActor::as_str), acts.then_some(subject));
    }
}
