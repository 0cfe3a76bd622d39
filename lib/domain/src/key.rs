//! The record of an API key: what a coach asks for, and what the settings show of it. A key itself is shown once, when it is made.

use chrono::TimeDelta;
use serde::Serialize;

use crate::api_key::{Permission, Scope};
use crate::fields::{Fields, Invalid};
use crate::id::KeyId;
use crate::time::Timestamp;

/// Most keys of a workspace that are neither revoked nor expired.
pub const MAX_LIVE_KEYS: usize = 50;
/// How long a rotated key lives on.
pub const ROTATION_OVERLAP: TimeDelta = TimeDelta::hours(24);
/// Most characters of a key's name.
pub const MAX_KEY_NAME_CHARS: usize = 100;

const FIELDS: [&str; 4] = ["name", "scope", "permissions", "expires_at"];
const MAX_SCOPE_CHARS: usize = 16;

/// A key to be made.
#[derive(Debug, Clone)]
pub struct KeyDraft {
    pub name: String,
    pub scope: Scope,
    /// Sorted, each once. None for a partner key.
    pub permissions: Vec<Permission>,
    pub expires_at: Option<Timestamp>,
}

impl KeyDraft {
    /// Reads the body of `POST /settings/keys`.
    pub fn parse(fields: Fields<'_>, now: Timestamp) -> Result<Self, Invalid> {
        fields.only(&FIELDS)?;
        let name = fields.required_text("name", MAX_KEY_NAME_CHARS)?.to_owned();
        let scope = fields.required("scope", MAX_SCOPE_CHARS, Scope::parse)?;
        let mut permissions = fields.list("permissions", Permission::parse)?.unwrap_or_default();
        if scope == Scope::Partner && !permissions.is_empty() {
            return Err(Invalid::field(
                "permissions",
                "belong to keys of scope crm; a partner key opens all partner operations",
            ));
        }
        permissions.sort_unstable();
        permissions.dedup();
        let expires_at = fields.timestamp("expires_at")?;
        if expires_at.is_some_and(|at| at <= now) {
            return Err(Invalid::field("expires_at", "must be in the future"));
        }
        Ok(Self { name, scope, permissions, expires_at })
    }

    /// What [`KeyDraft::parse`] takes.
    #[cfg(feature = "openapi")]
    pub fn schema() -> crate::openapi::Body {
        use crate::openapi::{Body, Field};
        let permissions = Permission::ALL.map(Permission::as_str);
        Body::new([
            ("name", Field::text(MAX_KEY_NAME_CHARS).required().about("What the coach calls the key.")),
            (
                "scope",
                Field::one_of(&[Scope::Partner.as_str(), Scope::Crm.as_str()]).required().about("What the key opens."),
            ),
            (
                "permissions",
                Field::list_of(&permissions, 0)
                    .about("What a CRM key may do. Left out or empty: nothing. A partner key has none: it opens all partner operations."),
            ),
            (
                "expires_at",
                Field::timestamp().about("From when on the key is refused. In the future. Left out: never."),
            ),
        ])
        .closed()
        .empty_when("permissions", "scope", Scope::Partner.as_str())
    }
}

/// An API key, without the key itself.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Key))]
pub struct KeyView {
    pub id: KeyId,
    pub name: String,
    pub scope: Scope,
    /// What a CRM key may do; empty for a partner key.
    pub permissions: Vec<Permission>,
    /// The key's beginning and end, by which the coach knows it again.
    pub display: String,
    pub created_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(required))]
    pub expires_at: Option<Timestamp>,
    /// The minute in which the key was last used.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub last_used_at: Option<Timestamp>,
    #[cfg_attr(feature = "openapi", schema(required))]
    pub revoked_at: Option<Timestamp>,
}

/// A key that was made a moment ago.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewKey {
    #[serde(flatten)]
    pub record: KeyView,
    /// The key. Shown this once: only its hash is kept.
    pub key: String,
}

/// All keys of a workspace.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyList {
    /// Newest first, revoked ones too.
    pub keys: Vec<KeyView>,
}
