//! Table `keys`: API keys. A record copies its workspace's time zone, country and entitlements, so the write that
//! admits a request returns them.
//! pk `KEY#<key_id>`, sk `KEY`: the record, and counters per calendar minute of use: `w<minute>` of requests,
//! `l<minute>` of requests for a login link.
//! pk `COACH#<coach_id>`, sk `KEY#<created_at>#<key_id>`: an entry of the coach's list. sk `KEYS`: the key ring (module
//! `ring`).
//! 1. `authenticate` UpdateItem: checks the key and counts the request under all of its limits or none. A refused
//!    update returns the item, which shows the reason.
//! 2. `drop_windows` UpdateItem: removes counters of past minutes.
//! 3. `page` Query of the base table, which shows a new key at once, then BatchGetItem: module `list`.
//! 4. `get` BatchGetItem. `create`, `replace` Parts of a transaction on the ring and the workspace's version: at most
//!    50 live keys, with current entitlements. On a full ring, GetItem, BatchGetItem and UpdateItem of `make_room`
//!    first remove expired keys.
//! 5. `revoke` Parts of a transaction on the ring.
//! 6. `change` Parts of a transaction. Another expiry also keeps the key on the ring, on the workspace's version. Other
//!    events change the ring too: module `change`.
//! 7. `copy_entitlements` GetItem of the ring, BatchGetItem, UpdateItem of each live key with an older copy.
//! 8. `count_live` GetItem of the ring, BatchGetItem.
//! 9. `may_read_events`, `readers` GetItem of the ring.

mod change;
mod lifecycle;
mod list;
mod present;
mod ring;

use std::collections::HashMap;

use domain::api_key::{ApiKey, KEY_RANDOM_BYTES, Permission, Scope};
use domain::audit::AuditDetail;
use domain::country::Country;
use domain::event_access::EventAccess;
use domain::id::{CoachId, KeyId};
use domain::key::KeyStatus;
use domain::mode::Mode;
use domain::time::Timestamp;
use domain::tz::ZoneName;
use domain::workspace::{CrmConfiguration, Entitlements};
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

pub use list::KeyPage;
pub use present::Presented;
pub use ring::Readers;

use crate::db::{self, Db, Item, StoreError, Table, from_item};

/// An API key as stored, without the secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeyRecord {
    pub key_id: KeyId,
    pub coach_id: CoachId,
    pub name: String,
    pub scope: Scope,
    pub permissions: Vec<Permission>,
    /// The events that the key may read. `None`: no events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<EventAccess>,
    /// Since when keys of the coach have been able to read events without a break, as of the creation of `events`.
    /// Events are stored since then. `None`: no events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_since: Option<Timestamp>,
    /// Prefix and last characters of the secret.
    pub display: String,
    pub created_at: Timestamp,
    /// Milliseconds.
    pub expires_at: Option<i64>,
    /// The key that replaces this one. A key is replaced once.
    pub replaced_by: Option<KeyId>,
    pub revoked_at: Option<i64>,
    /// The start of the minute in which the key was last used, in milliseconds.
    pub last_used_at: Option<i64>,
    /// The features that the workspace may use, as of `workspace_version`.
    pub entitlements: Entitlements,
    pub crm: Option<CrmConfiguration>,
    pub country: Country,
    pub time_zone: ZoneName,
    pub workspace_version: u64,
    /// True while the workspace's test data is being removed, so that writes are refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wiping: bool,
}

impl KeyRecord {
    fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now.ms())
    }

    /// The status of the key at `now`.
    pub fn status(&self, now: Timestamp) -> KeyStatus {
        match (self.revoked_at, self.is_live(now), &self.replaced_by) {
            (Some(_), _, _) => KeyStatus::Revoked,
            (None, false, _) => KeyStatus::Expired,
            (None, true, Some(_)) => KeyStatus::Replaced,
            (None, true, None) => KeyStatus::Active,
        }
    }

    /// The details of an audit record about the key.
    pub fn audit_detail(&self) -> AuditDetail {
        AuditDetail { name: Some(self.name.clone()), ..AuditDetail::default() }
    }
}

#[derive(Serialize, Deserialize)]
struct KeyItem {
    pk: String,
    sk: String,
    #[serde(with = "crate::binary")]
    hash: Vec<u8>,
    #[serde(flatten)]
    record: KeyRecord,
}

/// The keys table.
#[derive(Clone)]
pub struct Keys {
    table: Table,
    /// The mode of the deployment, and of its keys.
    mode: Mode,
}

impl Keys {
    /// The table that `KEYS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "KEYS_TABLE")?, mode: env.config().parse(Mode::SETTING)? })
    }

    /// The mode of the deployment, and of its keys.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Generates a key of the scope, for the deployment.
    pub fn generate(&self, scope: Scope, random: &[u8; KEY_RANDOM_BYTES]) -> ApiKey {
        ApiKey::generate(scope, self.mode, random)
    }

    /// Reads a key of a coach.
    pub async fn get(&self, coach: &CoachId, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let records = self.records(std::slice::from_ref(id)).await?;
        Ok(records.into_iter().find(|record| record.coach_id == *coach))
    }

    /// Reads a key, whosever it is.
    pub async fn of_any_coach(&self, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        Ok(self.records(std::slice::from_ref(id)).await?.pop())
    }

    /// Reads the records of these ids, in their order.
    async fn records(&self, ids: &[KeyId]) -> Result<Vec<KeyRecord>, StoreError> {
        let mut found: HashMap<KeyId, KeyRecord> = HashMap::new();
        for item in self.table.read(ids.iter().map(item_key).collect()).await? {
            let stored: KeyItem = from_item("key", item)?;
            found.insert(stored.record.key_id.clone(), stored.record);
        }
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }
}

fn item_key(id: &KeyId) -> Item {
    db::key(format!("KEY#{id}"), "KEY")
}

fn coach_partition(coach: &CoachId) -> String {
    format!("COACH#{coach}")
}

fn coach_key(coach: &CoachId, sk: impl Into<String>) -> Item {
    db::key(coach_partition(coach), sk)
}

#[cfg(test)]
mod tests {
    use domain::tz::Tz;

    use super::*;

    fn stored_record() -> KeyRecord {
        KeyRecord {
            key_id: KeyId::from_hash(&[1; 32]),
            coach_id: CoachId::parse("coach_1").unwrap(),
            name: "EMR".to_owned(),
            scope: Scope::Partner,
            permissions: Vec::new(),
            events: None,
            events_since: None,
            display: "svc_live_…abcd".to_owned(),
            created_at: Timestamp::from_ms(1),
            expires_at: None,
            replaced_by: None,
            revoked_at: None,
            last_used_at: None,
            entitlements: Entitlements { partner_api: true, pro_crm: false, gym: false },
            crm: None,
            country: Country::parse("US").unwrap(),
            time_zone: ZoneName::from("Europe/Berlin".parse::<Tz>().unwrap()),
            workspace_version: 1,
            is_wiping: false,
        }
    }

    #[test]
    fn a_key_is_active_until_it_is_replaced_ends_or_is_revoked() {
        let successor = Some(KeyId::parse("key_2").unwrap());
        for (expires_at, replaced_by, revoked_at, status) in [
            (None, None, None, KeyStatus::Active),
            (Some(11), None, None, KeyStatus::Active),
            (Some(10), None, None, KeyStatus::Expired),
            (Some(11), successor.clone(), None, KeyStatus::Replaced),
            (Some(10), successor.clone(), None, KeyStatus::Expired),
            (Some(10), successor, Some(5), KeyStatus::Revoked),
            (None, None, Some(5), KeyStatus::Revoked),
        ] {
            let record = KeyRecord { expires_at, replaced_by, revoked_at, ..stored_record() };
            assert_eq!(record.status(Timestamp::from_ms(10)), status, "{record:?}");
        }
    }
}
