//! Idempotency keys, and the retention of the recorded answers.
//!
//! Explicit keys (the header) and derived keys (from the e-mail) never collide. The table holds a SHA-256, never the
//! key: callers put names and order numbers into keys.

use chrono::TimeDelta;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::email::{Email, EmailKey};
use crate::id::{CoachId, parse_uuid};

/// Most characters of the header.
pub const MAX_KEY_CHARS: usize = 255;
/// The characters of the header: printable ASCII. Gateways and clients turn other bytes into one sign, so the keys of
/// two people would become one.
pub const KEY_PATTERN: &str = "^([!-~]|[!-~][ -~]*[!-~])$";
/// Lease of a claim. Functions behind the API end long before.
pub const LEASE: TimeDelta = TimeDelta::seconds(60);
/// The `Retry-After` of a request that meets a claim in progress, in seconds.
pub const IN_PROGRESS_RETRY_S: u32 = 5;
pub const RETENTION: TimeDelta = TimeDelta::hours(24);
/// Retention of a 4xx under a derived key: a corrected request without a header must not be locked out for a day.
pub const DERIVED_REFUSAL_RETENTION: TimeDelta = TimeDelta::seconds(60);
/// Time for which an answer to a coach is replayed with the key or secret that it shows once.
pub const SECRET_RETENTION: TimeDelta = TimeDelta::minutes(10);
/// Retention of an answer with a password under a derived key: anyone who knows the e-mail could request it again.
pub const DERIVED_PASSWORD_RETENTION: TimeDelta = TimeDelta::hours(1);

crate::named! {
    /// An API that requests are made to. Requests to different APIs share no idempotency keys.
    Api {
        Partner = "partner",
        Crm = "crm",
        Settings = "settings",
        Sandbox = "sandbox",
    }
    /// The source of a key.
    KeySource {
        Explicit = "explicit",
        Derived = "derived",
    }
}

/// The kinds of answers with different retention under a derived key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// A refusal of the request (4xx).
    Refusal,
    /// An answer that holds a password.
    Password,
    Other,
}

/// The treatment of a request whose key was used with another payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// The recorded answer is replayed, with a mark. Without a recorded answer, the request takes over the claim.
    Replayed,
    /// The request is refused.
    Refused,
}

impl Api {
    /// The treatment of another payload under a key. The partner API promises a replay.
    pub fn mismatch(self) -> Mismatch {
        match self {
            Self::Partner => Mismatch::Replayed,
            Self::Crm | Self::Settings | Self::Sandbox => Mismatch::Refused,
        }
    }
}

/// The identity of a request and its repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// `coach#api#source#sha256`.
    text: String,
    source: KeySource,
}

/// The header is empty, too long, or has a byte that is not printable ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Idempotency-Key must be 1 to {MAX_KEY_CHARS} printable ASCII characters")]
pub struct InvalidKey;

impl IdempotencyKey {
    pub fn explicit(coach: &CoachId, api: Api, header: &[u8]) -> Result<Self, InvalidKey> {
        Self::check(header)?;
        Ok(Self::new(coach, api, KeySource::Explicit, header))
    }

    /// Checks a text that a caller chose as a key.
    pub fn check(text: &[u8]) -> Result<(), InvalidKey> {
        let is_printable = text.iter().all(|byte| (b' '..=b'~').contains(byte));
        if text.is_empty() || text.len() > MAX_KEY_CHARS || !is_printable { Err(InvalidKey) } else { Ok(()) }
    }

    /// Derives the key from a body's `email`, valid or not. A text that is no address has a key of its own: it must not
    /// share the answer of the address that mail software would read in it.
    pub fn derived(coach: &CoachId, api: Api, email: &str) -> Self {
        let compared = Email::parse(email).map(|email| email.key());
        let source = compared.as_ref().map_or(email, EmailKey::as_str);
        Self::new(coach, api, KeySource::Derived, source.as_bytes())
    }

    fn new(coach: &CoachId, api: Api, source: KeySource, key: &[u8]) -> Self {
        let text = format!("{coach}#{}#{}#{}", api.as_str(), source.as_str(), hex::encode(Sha256::digest(key)));
        Self { text, source }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the retention of an answer of this kind.
    pub fn retention(&self, kind: ReplyKind) -> TimeDelta {
        match (self.source, kind) {
            (KeySource::Derived, ReplyKind::Refusal) => DERIVED_REFUSAL_RETENTION,
            (KeySource::Derived, ReplyKind::Password) => DERIVED_PASSWORD_RETENTION,
            (KeySource::Derived, ReplyKind::Other) | (KeySource::Explicit, _) => RETENTION,
        }
    }
}

/// The fingerprint of a request. Two requests have the same fingerprint if their method, path and parsed body are
/// equal: neither the order of members nor the case of a UUID matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Computes the fingerprint of a request. The path's UUIDs are in canonical form.
    pub fn new(method: &str, path: &str, body: &Value) -> Self {
        Self(digest(method, path, &with_parsed_ids(body)))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns true if the recorded fingerprint belongs to the same request.
    pub fn is(&self, recorded: &[u8]) -> bool {
        recorded == self.0
    }
}

/// Returns a body with parsed UUIDs, which are the members named `..Id`.
fn with_parsed_ids(body: &Value) -> Value {
    let Value::Object(members) = body else { return body.clone() };
    let parsed = members.iter().map(|(name, value)| {
        let id = value.as_str().filter(|_| name.ends_with("Id")).and_then(|text| parse_uuid(text).ok());
        (name.clone(), id.map_or_else(|| value.clone(), |id| Value::from(id.to_string())))
    });
    Value::Object(parsed.collect())
}

fn digest(method: &str, path: &str, body: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [method, path, &canonical(body).to_string()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

/// Integers below this limit are exact as floating-point numbers (RFC 8785 treats all numbers as such).
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Returns the value with a canonical JSON text. `serde_json` sorts the members of objects. Equal numbers become one
/// spelling: 3, 3.0 and 3e0, or 0 and -0.0.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.as_str(), canonical(value))).collect(),
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < MAX_SAFE_INTEGER => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn coach(id: &str) -> CoachId {
        CoachId::parse(id).unwrap()
    }

    #[test]
    fn explicit_and_derived_keys_coaches_and_apis_are_apart() {
        let explicit = |c: &str, api| IdempotencyKey::explicit(&coach(c), api, b"a@example.com").unwrap();
        let derived = IdempotencyKey::derived(&coach("c1"), Api::Partner, "A@example.com");
        let own = Api::ALL.map(|api| explicit("c1", api));
        let all = [own.to_vec(), vec![derived, explicit("c2", Api::Partner)]].concat();
        for (i, one) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|other| other != one));
            assert!(!one.as_str().contains("example"));
        }
    }

    #[test]
    fn equal_emails_derive_equal_keys() {
        let derived = |email: &str| IdempotencyKey::derived(&coach("c"), Api::Partner, email);
        assert_eq!(derived("ΝΙΚΟΣ@example.com"), derived("νικοσ@example.com"));
        assert_ne!(derived("ΝΙΚΟ@example.com"), derived("νικοσ@example.com"));
    }

    #[test]
    fn a_header_has_1_to_255_printable_ascii_characters() {
        let parse = |header: &[u8]| IdempotencyKey::explicit(&coach("c"), Api::Partner, header);
        for good in [&b"x"[..], b" ~", &[b'x'; 255]] {
            assert!(parse(good).is_ok(), "{good:?}");
        }
        for bad in
            [&b""[..], &[b'x'; 256], b"name-\xeb", b"name-\xc3\xab", "name-\u{fffd}".as_bytes(), b"a\tb", b"a\x7f"]
        {
            assert_eq!(parse(bad), Err(InvalidKey), "{bad:?}");
        }
    }

    #[test]
    fn answers_count_for_a_day_but_for_refusals_and_passwords_under_a_derived_key() {
        let explicit = IdempotencyKey::explicit(&coach("c"), Api::Partner, b"k").unwrap();
        let derived = IdempotencyKey::derived(&coach("c"), Api::Partner, "a@example.com");
        for kind in [ReplyKind::Refusal, ReplyKind::Password, ReplyKind::Other] {
            assert_eq!(explicit.retention(kind), RETENTION);
        }
        assert_eq!(derived.retention(ReplyKind::Refusal), TimeDelta::seconds(60));
        assert_eq!(derived.retention(ReplyKind::Password), TimeDelta::hours(1));
        assert_eq!(derived.retention(ReplyKind::Other), RETENTION);
    }

    #[test]
    fn only_the_case_of_uuids_is_ignored() {
        const ID: &str = "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69";
        let capitals = ID.to_uppercase();
        let print = |body: Value| Fingerprint::new("POST", "/x", &body);
        for name in ["leadId", "contactId", "calendarId"] {
            let (small, other) = (print(json!({ (name): ID })), print(json!({ (name): capitals })));
            assert!(small.is(other.as_bytes()) && other.is(small.as_bytes()), "{name}");
        }
        for text in [json!({ "name": ID }), json!({ "valid": ID }), json!([ID]), json!({ "leadId": { "x": ID } })] {
            let shouted: Value = serde_json::from_str(&text.to_string().replace(ID, &capitals)).unwrap();
            assert!(!print(text).is(print(shouted).as_bytes()));
        }
        assert!(!print(json!({ "leadId": "ab" })).is(print(json!({ "leadId": "AB" })).as_bytes()));
    }

    #[test]
    fn the_order_of_members_does_not_change_a_fingerprint() {
        let one: serde_json::Value = serde_json::from_str(r#"{"a":1,"b":{"c":[1,2],"d":null}}"#).unwrap();
        let same: serde_json::Value = serde_json::from_str(r#"{ "b": {"d":null,"c":[1,2]}, "a": 1 }"#).unwrap();
        assert_eq!(Fingerprint::new("POST", "/x", &one), Fingerprint::new("POST", "/x", &same));
        assert_ne!(Fingerprint::new("POST", "/x", &one), Fingerprint::new("PATCH", "/x", &one));
        assert_ne!(Fingerprint::new("POST", "/x", &one), Fingerprint::new("POST", "/x", &json!({"a": 2})));
    }

    #[test]
    fn a_number_is_the_same_however_it_is_written() {
        let print = |text: &str| Fingerprint::new("POST", "/x", &serde_json::from_str(text).unwrap());
        for same in ["3.0", "3e0", "30e-1"] {
            assert_eq!(print(same), print("3"), "{same}");
        }
        assert_eq!((print("-0.0"), print("-0e1")), (print("0"), print("0")));
        for other in ["3.5", "-3", "\"3\"", "30", "3e1"] {
            assert_ne!(print(other), print("3"), "{other}");
        }
        assert_ne!(print("9007199254740993"), print("9007199254740992"));
    }
}
