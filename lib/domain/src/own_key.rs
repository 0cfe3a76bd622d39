//! The answer that says what the caller's key may do.

use chrono::NaiveDate;
use serde::Serialize;

use crate::api_key::{Permission, Scope};
use crate::event_access::EventAccess;
use crate::id::KeyId;
use crate::mode::Mode;
use crate::time::Timestamp;

/// A key, what it may do, and its workspace.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct OwnKey {
    /// Identifies the key.
    pub id: KeyId,
    /// The coach's name for the key.
    pub name: String,
    /// The scope of the key.
    pub scope: Scope,
    /// The permissions of the key.
    pub permissions: Vec<Permission>,
    /// The events that the key may read. Null: none.
    #[schema(required)]
    pub events: Option<EventAccess>,
    /// When the key expires. Null: never.
    #[schema(required)]
    pub expires_at: Option<Timestamp>,
    /// `live`: the records of a coach's business. `test`: those of a sandbox.
    pub mode: Mode,
    /// True if the workspace's plan lets the key in at present. False: requests are refused with 402 or 403.
    pub entitled: bool,
    pub workspace: OwnWorkspace,
    /// The calendar date at present in the workspace's zone.
    pub today: NaiveDate,
}

/// The workspace that a key belongs to.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct OwnWorkspace {
    /// The name of the workspace. It may be empty.
    pub name: String,
    /// The IANA name of the workspace's zone.
    pub time_zone: String,
}
crate::discreet! { OwnWorkspace }
