//! The record of an API key: the coach's request, and the record that the settings show. A key itself is shown once, at
//! its creation.

use chrono::TimeDelta;
use serde::Serialize;

use crate::api_key::{Permission, Scope};
use crate::event_access::EventAccess;
use crate::fields::{Fields, Invalid, named_fields};
use crate::id::KeyId;
use crate::time::Timestamp;

/// Most keys of a workspace that are neither revoked nor expired.
pub const MAX_LIVE_KEYS: usize = 50;
/// Time for which a rotated key stays valid.
pub const ROTATION_OVERLAP: TimeDelta = TimeDelta::hours(24);
pub const MAX_KEY_NAME_CHARS: usize = 100;

const FIELDS: [&str; 5] = ["name", "scope", "permissions", "expires_at", "events"];
const MAX_SCOPE_CHARS: usize = 16;

/// A key to create.
#[derive(Debug, Clone)]
pub struct KeyDraft {
    pub name: String,
    pub scope: Scope,
    /// Sorted and unique, at least one.
    pub permissions: Vec<Permission>,
    pub expires_at: Option<Timestamp>,
    /// `None`: the key may not read events.
    pub events: Option<EventAccess>,
}

impl KeyDraft {
    /// Parses the body of `POST /settings/keys`.
    pub fn parse(fields: Fields<'_>, now: Timestamp) -> Result<Self, Invalid> {
        fields.only(&FIELDS)?;
        let name = fields.required_visible_text("name", MAX_KEY_NAME_CHARS)?.to_owned();
        let scope = fields.required("scope", MAX_SCOPE_CHARS, Scope::parse)?;
        let permissions = permissions(fields, scope)?;
        let expires_at = expiry(fields, now)?;
        Ok(Self { name, scope, permissions, expires_at, events: fields.nested("events", EventAccess::parse)? })
    }

    pub fn schema() -> crate::openapi::Body {
        use crate::openapi::{Body, Field};
        let permissions = Permission::ALL.map(Permission::as_str);
        let of = |scope| Permission::of(scope).into_iter().map(Permission::as_str).collect::<Vec<_>>();
        Body::new([
            ("name", Field::visible_text(MAX_KEY_NAME_CHARS).required().about("The coach's name for the key.")),
            ("scope", Field::one_of(&Scope::ALL.map(Scope::as_str)).required().about("The scope of the key.")),
            (
                "permissions",
                Field::list_of(&permissions, 1).about(
                    "The permissions of the key, at least one, all of its scope. A CRM key needs them. A partner key \
                     without the member gets all permissions of its scope.",
                ),
            ),
            ("expires_at", Field::timestamp().about("When the key expires, in the future. Default: never.")),
            ("events", events_schema().about("The events that the key may read. Default: none.")),
        ])
        .closed()
        .names_when("permissions", ("scope", Scope::Partner.as_str()), &of(Scope::Partner), &of(Scope::Crm))
    }
}

/// Reads the permissions of a key of the scope. Without the member a partner key has all of its scope.
fn permissions(fields: Fields<'_>, scope: Scope) -> Result<Vec<Permission>, Invalid> {
    match (scope, fields.list("permissions", &Permission::of(scope), Permission::as_str)?) {
        (Scope::Partner, None) => Ok(Permission::of(scope)),
        (_, Some(named)) if !named.is_empty() => Ok(named),
        (Scope::Partner, Some(_)) => {
            Err(fields.refuse("permissions", "must name at least one permission; leave it out for all"))
        }
        (Scope::Crm, _) => {
            Err(fields.refuse("permissions", "must name at least one permission for a key of scope crm"))
        }
    }
}

fn events_schema() -> crate::openapi::Field {
    crate::openapi::Field::object(EventAccess::schema())
}

/// Reads the expiry of a key; omitted or null is `None`: never.
fn expiry(fields: Fields<'_>, now: Timestamp) -> Result<Option<Timestamp>, Invalid> {
    let expires_at = fields.timestamp("expires_at")?;
    match expires_at {
        Some(at) if at <= now => Err(Invalid::field("expires_at", "must be in the future")),
        _ => Ok(expires_at),
    }
}

/// A change of a key. A field that is `None` stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    pub name: Option<String>,
    /// `Some(None)`: the key never expires.
    pub expires_at: Option<Option<Timestamp>>,
    /// `Some(None)`: the key may not read events.
    pub events: Option<Option<EventAccess>>,
}

impl KeyChange {
    /// Parses the body of `PATCH /settings/keys/{id}`.
    pub fn parse(fields: Fields<'_>, now: Timestamp) -> Result<Self, Invalid> {
        const FIELDS: [&str; 3] = ["name", "expires_at", "events"];
        fields.only(&FIELDS)?;
        if !FIELDS.iter().any(|name| fields.mentions(name)) {
            return Err(Invalid::whole("The body must set at least one of name, expires_at and events."));
        }
        if fields.mentions("name") && !fields.has("name") {
            return Err(Invalid::field("name", "must not be null; leave it out to keep it"));
        }
        let name = fields.visible_text("name", MAX_KEY_NAME_CHARS)?.map(str::to_owned);
        let expires_at = expiry(fields, now)?;
        let events = fields.nested("events", EventAccess::parse)?;
        Ok(Self {
            name,
            expires_at: fields.mentions("expires_at").then_some(expires_at),
            events: fields.mentions("events").then_some(events),
        })
    }

    /// Returns the names of the fields that the change sets.
    pub fn fields(&self) -> Vec<String> {
        named_fields([
            ("name", self.name.is_some()),
            ("expires_at", self.expires_at.is_some()),
            ("events", self.events.is_some()),
        ])
    }

    /// Returns true if the change sets what the key opens or until when. Only an active key takes such a change.
    pub fn needs_active_key(&self) -> bool {
        self.expires_at.is_some() || self.events.is_some()
    }

    pub fn schema() -> crate::openapi::Body {
        use crate::openapi::{Body, Field};
        Body::change([
            ("name", Field::visible_text(MAX_KEY_NAME_CHARS).about("The coach's name for the key.")),
            ("expires_at", Field::timestamp().about("When the key expires, in the future. Null: never.")),
            ("events", events_schema().about("The events that the key may read. Null: none.")),
        ])
        .clearing(&["expires_at", "events"])
    }
}

crate::named! {
    /// The status of a key.
    KeyStatus {
        Active = "active",
        /// Another key has replaced the key, which works until its overlap ends.
        Replaced = "replaced",
        Expired = "expired",
        Revoked = "revoked",
    }
}

/// An API key, without the key itself.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = Key)]
pub struct KeyView {
    /// Names the key in paths and in the audit trail.
    pub id: KeyId,
    /// The coach's name for the key.
    pub name: String,
    pub scope: Scope,
    /// The permissions of the key, at least one.
    pub permissions: Vec<Permission>,
    /// The events that the key may read. Null: none.
    #[schema(required)]
    pub events: Option<EventAccess>,
    /// The first and last characters of the key, for recognition.
    pub display: String,
    /// When the key was created.
    pub created_at: Timestamp,
    /// When the key expires, which for a replaced key is at the latest when its overlap ends. Null: never.
    #[schema(required)]
    pub expires_at: Option<Timestamp>,
    /// The minute in which the key was last used.
    #[schema(required)]
    pub last_used_at: Option<Timestamp>,
    /// When the key was revoked. Null if it was not.
    #[schema(required)]
    pub revoked_at: Option<Timestamp>,
    pub status: KeyStatus,
    /// The key that replaced the key last. Null: none did, or before the service recorded it.
    #[schema(required)]
    pub replaced_by: Option<KeyId>,
    /// When the key stops working: its expiry, or the end of its overlap if that is earlier. Null: never, or it is
    /// revoked.
    #[schema(required)]
    pub works_until: Option<Timestamp>,
}

/// A new key.
#[derive(Serialize, utoipa::ToSchema)]
pub struct NewKey {
    #[serde(flatten)]
    pub record: KeyView,
    /// The key. Shown once: the service stores only its hash. Absent from a replay after 10 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub key: Option<String>,
}

/// A page of a workspace's keys.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct KeyList {
    /// Live keys first, then those that are revoked or have expired; newest first in both.
    pub keys: Vec<KeyView>,
    /// The `cursor` of the next page. Null on the last page.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// The keys that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFilter {
    All,
    /// Neither revoked nor expired.
    Live,
}

impl KeyFilter {
    pub fn parse(status: Option<&str>) -> Result<Self, Invalid> {
        match status {
            None | Some("") => Ok(Self::All),
            Some(LIVE) => Ok(Self::Live),
            Some(_) => Err(Invalid::field("status", "must be live, or left out")),
        }
    }
}

/// A position in a list of keys. It names the keys that were live on the first page, so that a key that ends
/// between two pages is listed once.
///
/// As text: two digits for `shown`, 32 for each live key, then for the latest of the others `.`, its time and its
/// digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCursor {
    /// The keys that were live, newest first.
    pub live: Vec<KeyId>,
    /// The number of `live` keys that were listed.
    pub shown: usize,
    /// The creation time and the id after which the other keys continue.
    pub after: Option<(Timestamp, KeyId)>,
}

const LIVE: &str = "live";
const KEY_ID_PREFIX: &str = "key_";
const KEY_ID_DIGITS: usize = 32;
const SHOWN_DIGITS: usize = 2;
/// Most live keys in a cursor: after a roll-back a coach may have more than [`MAX_LIVE_KEYS`] for a while.
const MAX_CURSOR_KEYS: usize = 99;
const TIME_DIGITS: usize = 15;

impl KeyCursor {
    /// Parses the text of a position. A repeated key counts once.
    pub fn parse(text: &str) -> Option<Self> {
        let (live, after) = text.split_once('.').map_or((text, None), |(live, after)| (live, Some(after)));
        let (shown, ids) = live.split_at_checked(SHOWN_DIGITS)?;
        let ids = ids.as_bytes().chunks(KEY_ID_DIGITS).map(|digits| key_id(std::str::from_utf8(digits).ok()?));
        let named: Vec<KeyId> = ids.collect::<Option<_>>()?;
        let mut live: Vec<KeyId> = Vec::new();
        for id in named {
            if !live.contains(&id) {
                live.push(id);
            }
        }
        let shown = usize::try_from(decimal(shown)?).ok()?.min(live.len());
        let after = match after {
            Some(after) => {
                let (at, digits) = after.split_at_checked(TIME_DIGITS)?;
                Some((Timestamp::from_ms(decimal(at)?), key_id(digits)?))
            }
            None => None,
        };
        (live.len() <= MAX_CURSOR_KEYS).then_some(Self { live, shown, after })
    }
}

impl From<KeyCursor> for String {
    fn from(KeyCursor { live, shown, after }: KeyCursor) -> Self {
        let mut text = format!("{shown:02}");
        live.iter().for_each(|id| text.push_str(digits_of(id)));
        if let Some((at, id)) = after {
            text.push_str(&format!(".{:015}{}", at.ms(), digits_of(&id)));
        }
        text
    }
}

/// Parses digits without a sign.
fn decimal(text: &str) -> Option<i64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn key_id(digits: &str) -> Option<KeyId> {
    let is_formed =
        digits.len() == KEY_ID_DIGITS && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    is_formed.then(|| KeyId::parse(&format!("{KEY_ID_PREFIX}{digits}")).ok()).flatten()
}

fn digits_of(id: &KeyId) -> &str {
    id.as_str().strip_prefix(KEY_ID_PREFIX).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(seed: u8) -> KeyId {
        KeyId::from_hash(&[seed; 32])
    }

    proptest! {
        #[test]
        fn a_cursor_reads_back_as_it_was_written(
            live in prop::collection::hash_set(any::<u8>(), 0..=MAX_CURSOR_KEYS),
            shown in 0..=MAX_CURSOR_KEYS,
            after in prop::option::of((0i64..4_000_000_000_000, any::<u8>())),
        ) {
            let shown = shown.min(live.len());
            let after = after.map(|(ms, seed)| (Timestamp::from_ms(ms), id(seed)));
            let cursor = KeyCursor { live: live.into_iter().map(id).collect(), shown, after };
            let text = String::from(cursor.clone());
            prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.'));
            prop_assert_eq!(KeyCursor::parse(&text), Some(cursor));
        }

        #[test]
        fn no_text_but_a_cursor_is_read(text in "\\PC{1,80}") {
            if let Some(cursor) = KeyCursor::parse(&text) {
                let written = String::from(cursor.clone());
                prop_assert_eq!(KeyCursor::parse(&written), Some(cursor));
            }
        }
    }

    #[test]
    fn a_text_of_another_form_is_no_position() {
        let (digits, many) = (
            "0123456789abcdef".repeat(2),
            (0..=MAX_CURSOR_KEYS).map(|number| format!("{number:032x}")).collect::<String>(),
        );
        for bad in [
            "0".to_owned(),
            "x0".to_owned(),
            "+0".to_owned(),
            format!("00{}", digits.to_uppercase()),
            format!("00{}", &digits[1..]),
            format!("00{digits}."),
            format!("00{digits}.{digits}"),
            format!("00{digits}.000001790000000{digits}0"),
            format!("00{digits}.-00001790000000{digits}"),
            format!("00{many}"),
            "€€€€".to_owned(),
        ] {
            assert_eq!(KeyCursor::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_change_sets_a_name_or_an_expiry_and_null_only_clears_the_expiry() {
        let now = Timestamp::from_ms(1_790_000_000_000);
        let parse = |body: serde_json::Value| KeyChange::parse(Fields::body(&body)?, now);
        let later = now + TimeDelta::milliseconds(1);
        for (body, name, expires_at, fields) in [
            (serde_json::json!({ "name": "EMR" }), Some("EMR"), None, vec!["name"]),
            (serde_json::json!({ "expires_at": null }), None, Some(None), vec!["expires_at"]),
            (
                serde_json::json!({ "name": "EMR", "expires_at": later }),
                Some("EMR"),
                Some(Some(later)),
                vec!["name", "expires_at"],
            ),
        ] {
            let change = parse(body).unwrap();
            assert_eq!((change.name.as_deref(), change.expires_at), (name, expires_at));
            assert_eq!(change.fields(), fields);
        }
        for (body, field) in [
            (serde_json::json!({}), None),
            (serde_json::json!({ "name": null }), Some("name")),
            (serde_json::json!({ "expires_at": now }), Some("expires_at")),
            (serde_json::json!({ "name": "EMR", "scope": "crm" }), Some("scope")),
        ] {
            assert_eq!(parse(body).unwrap_err().field.as_deref(), field);
        }
    }

    #[test]
    fn a_list_shows_all_keys_or_the_live_ones() {
        for (given, filter) in [(None, KeyFilter::All), (Some(""), KeyFilter::All), (Some("live"), KeyFilter::Live)] {
            assert_eq!(KeyFilter::parse(given), Ok(filter));
        }
        for bad in ["Live", "revoked", "live "] {
            assert_eq!(KeyFilter::parse(Some(bad)).unwrap_err().field.as_deref(), Some("status"), "{bad}");
        }
    }
}
