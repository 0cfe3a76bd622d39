//! Identifiers, opaque to callers: 1 to 128 characters of `[A-Za-z0-9._:|-]`, whether the application or the service
//! chose them.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub const MAX_ID_CHARS: usize = 128;

/// The text is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 128 characters of A-Z, a-z, 0-9, '.', '_', ':', '|' and '-'")]
pub struct InvalidId;

fn check(text: &str) -> Result<(), InvalidId> {
    let valid = !text.is_empty()
        && text.len() <= MAX_ID_CHARS
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'|' | b'-'));
    if valid { Ok(()) } else { Err(InvalidId) }
}

macro_rules! opaque_id {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                check(text).map(|()| Self(text.to_owned()))
            }

            /// Returns the identifier as it is stored and rendered.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                check(&text).map(|()| Self(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

opaque_id! {
    /// A coach, and the coach's workspace. Chosen by the application.
    CoachId
    /// A team of coaches that share a client cap. Chosen by the application.
    TeamId
    /// A client. Chosen by the creator of the client.
    ClientId
    /// A check-in. Chosen by the application.
    CheckInId
    /// A dose of a client's schedule. Chosen by the application.
    DoseId
    /// One log of a dose. Chosen by the application; identifies that log for good.
    DoseLogId
    /// A message that a client sent. Chosen by the application.
    MessageId
    /// A coaching programme. Chosen by the application.
    ProgrammeId
    /// A CRM pipeline. Chosen by the application.
    PipelineId
    /// A stage of a pipeline, unique in its pipeline. Chosen by the application.
    StageId
    /// An API key's record. It reveals nothing about the key.
    KeyId
    /// A registered webhook endpoint.
    EndpointId
    /// An event, the same at every receiver and on every retry: the `webhook-id`.
    EventId
    /// One event for one endpoint. Sorts by the time of its creation.
    DeliveryId
    /// A recovery of failed deliveries.
    RecoveryId
    /// A removal of a workspace's test data.
    WipeId
    /// A fact. Chosen by the application.
    FactId
    /// A change.
    ChangeId
    /// An intake form waiting for its client.
    IntakeId
    /// A coach's automation. Chosen by the application.
    AutomationId
}

impl ClientId {
    /// Creates a new client's id from a UUID of version 7.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("client_{}", uuid.simple()))
    }
}

impl EndpointId {
    const PREFIX: &str = "we_";

    /// Creates a new endpoint's id from a UUID of version 7.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("{}{}", Self::PREFIX, uuid.simple()))
    }

    /// Parses an endpoint id in the form that [`EndpointId::from_uuid`] gives.
    pub fn parse_whole(text: &str) -> Result<Self, InvalidId> {
        digits_after(Self::PREFIX, text).map(|_| Self(text.to_owned()))
    }
}

impl IntakeId {
    /// Creates a new intake's id from a UUID of version 7.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("intake_{}", uuid.simple()))
    }
}

impl RecoveryId {
    /// Creates a new recovery's id from a UUID of version 7.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("recovery_{}", uuid.simple()))
    }
}

impl WipeId {
    /// Creates a new removal's id from a UUID of version 7.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("wipe_{}", uuid.simple()))
    }
}

impl KeyId {
    const PREFIX: &str = "key_";

    /// Returns the id of the key with this hash. The id is derived, so one item serves look-ups by key and by id.
    pub fn from_hash(hash: &[u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex::encode(&hash[..16])))
    }

    /// Parses a key's id in the form that [`KeyId::from_hash`] gives.
    pub fn parse_whole(text: &str) -> Result<Self, InvalidId> {
        digits_after(Self::PREFIX, text).map(|_| Self(text.to_owned()))
    }
}

impl EventId {
    const PREFIX: &str = "evt_";

    /// Derives an event's id from its time and cause. The same cause at the same time is the same event.
    pub fn derive(at_ms: i64, cause: &[&str]) -> Self {
        Self(format!("{}{}", Self::PREFIX, derived_uuid(at_ms, cause).simple()))
    }

    /// Parses an event id in the form that [`EventId::derive`] gives.
    pub fn parse_whole(text: &str) -> Result<Self, InvalidId> {
        digits_after(Self::PREFIX, text).map(|_| Self(text.to_owned()))
    }

    /// Returns the event's time, which leads the id. `None`: the id has another form.
    pub fn at_ms(&self) -> Option<i64> {
        const TIME_DIGITS: usize = 12;
        i64::from_str_radix(&digits_after(Self::PREFIX, &self.0).ok()?[..TIME_DIGITS], 16).ok()
    }
}

impl ChangeId {
    /// Derives the id of a change from its time and cause.
    pub fn derive(at_ms: i64, cause: &[&str]) -> Self {
        Self(format!("change_{}", derived_uuid(at_ms, cause).simple()))
    }
}

impl DeliveryId {
    const PREFIX: &str = "dlv_";

    /// Derives the id of an event's delivery to an endpoint. `at_ms` is the time of the delivery's creation, which
    /// leads the id, so that ids sort by it.
    pub fn derive(at_ms: i64, event: &EventId, endpoint: &EndpointId) -> Self {
        Self::of(derived_uuid(at_ms, &[event.as_str(), endpoint.as_str()]).as_u128())
    }

    /// Parses a delivery id in the form that [`DeliveryId::derive`] gives.
    pub fn parse_whole(text: &str) -> Result<Self, InvalidId> {
        digits_after(Self::PREFIX, text).map(|_| Self(text.to_owned()))
    }

    /// Returns the bound below all ids of deliveries that were created at that time or later.
    pub fn first_at(at_ms: i64) -> Self {
        Self::of(u128::from(leading_ms(at_ms)) << DERIVED_BITS)
    }

    /// Returns the bound above all ids.
    pub fn last() -> Self {
        Self::of(u128::MAX)
    }

    /// Returns the greatest id below this one, if there is one.
    pub fn predecessor(&self) -> Option<Self> {
        let number = u128::from_str_radix(digits_after(Self::PREFIX, &self.0).ok()?, 16).ok()?;
        number.checked_sub(1).map(Self::of)
    }

    fn of(number: u128) -> Self {
        Self(format!("{}{number:032x}", Self::PREFIX))
    }
}

/// Returns the 32 hexadecimal digits of an id that the service chose.
fn digits_after<'a>(prefix: &str, text: &'a str) -> Result<&'a str, InvalidId> {
    const DIGITS: usize = 32;
    let digits = text.strip_prefix(prefix).filter(|digits| digits.len() == DIGITS).ok_or(InvalidId)?;
    let is_digit = |b| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if digits.bytes().all(is_digit) { Ok(digits) } else { Err(InvalidId) }
}

/// Bits of a derived UUID after its time.
const DERIVED_BITS: u32 = 80;
const MAX_TIME_MS: i64 = (1 << 48) - 1;

/// Returns the time that leads a derived UUID, in 48 bits.
fn leading_ms(at_ms: i64) -> u64 {
    at_ms.clamp(0, MAX_TIME_MS).unsigned_abs()
}

/// Returns a UUID of version 8 (RFC 9562): 48 bits of milliseconds as in version 7, then a hash of the cause.
pub(crate) fn derived_uuid(at_ms: i64, cause: &[&str]) -> Uuid {
    let mut hash = Sha256::new();
    for part in cause {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    let mut bytes = [0u8; 16];
    bytes[..6].copy_from_slice(&leading_ms(at_ms).to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&digest[..10]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Creates a UUID of version 7 (RFC 9562): sortable by time, and not guessable.
pub fn new_uuid(now_ms: i64, random: [u8; 10]) -> Uuid {
    let since_epoch_ms = u64::try_from(now_ms.max(0)).unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(since_epoch_ms, &random).into_uuid()
}

/// The text is not a UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a UUID such as 0197a6a0-5c3b-7000-8000-2f1d3c4b5a69")]
pub struct InvalidUuid;

const UUID_CHARS: usize = 36;

/// Parses a UUID: 32 digits and four hyphens (RFC 9562), in either case.
pub fn parse_uuid(text: &str) -> Result<Uuid, InvalidUuid> {
    let formed = text.len() == UUID_CHARS;
    Uuid::try_parse(text).ok().filter(|_| formed).ok_or(InvalidUuid)
}

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(try_from = "String")]
        #[schema(value_type = String, format = Uuid)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Parses an identifier by the rules of [`parse_uuid`].
            pub fn parse(text: &str) -> Result<Self, InvalidUuid> {
                parse_uuid(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidUuid;
            fn try_from(text: String) -> Result<Self, InvalidUuid> {
                Self::parse(&text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0.hyphenated())
            }
        }
    )*};
}

uuid_id! {
    /// A CRM contact.
    ContactId
    /// A CRM opportunity.
    OpportunityId
    /// A calendar that takes bookings.
    CalendarId
    /// An event on a coach's calendars: a booking, or a private entry.
    CalendarEntryId
    /// A workflow of a coach.
    WorkflowId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_1_to_128_characters_of_its_alphabet() {
        assert!(ClientId::parse("a").is_ok());
        assert!(ClientId::parse(&"Z9._:|".repeat(21)).is_ok());
        assert!(CoachId::parse("auth0|5f7c8ec7c33c6c004bbafe82").is_ok());
        assert_eq!(ClientId::parse(""), Err(InvalidId));
        assert_eq!(ClientId::parse(&"a".repeat(129)), Err(InvalidId));
        for bad in ["a b", "a/b", "ä", "a\0", "a#b"] {
            assert_eq!(ClientId::parse(bad), Err(InvalidId), "{bad:?}");
        }
    }

    #[test]
    fn derived_ids_are_stable_and_sort_by_time() {
        let endpoint = EndpointId::parse("we_1").unwrap();
        let event = EventId::derive(1_000, &["new_client", "c1"]);
        assert_eq!(event, EventId::derive(1_000, &["new_client", "c1"]));
        assert_ne!(event, EventId::derive(1_000, &["new_clientc", "1"]));
        assert_eq!(event.at_ms(), Some(1_000));
        assert_eq!(EventId::derive(MAX_TIME_MS + 1, &["late"]).at_ms(), Some(MAX_TIME_MS));
        assert_eq!(EventId::parse("evt_1").unwrap().at_ms(), None);
        let early = DeliveryId::derive(1_000, &event, &endpoint);
        let late = DeliveryId::derive(1_001, &event, &endpoint);
        assert!(early < late);
        assert_eq!(DeliveryId::parse_whole(early.as_str()), Ok(early.clone()));
        let first = DeliveryId::first_at(1_001);
        assert!(early < first && first < late && late < DeliveryId::last());
        assert!(early < first.predecessor().unwrap() && late.predecessor().unwrap() < late);
        assert_eq!(DeliveryId::first_at(0).predecessor(), None);
        assert_eq!(DeliveryId::first_at(-5), DeliveryId::first_at(0));
    }
}
