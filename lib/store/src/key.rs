//! Table `keys`: API keys.
//! pk `KEY#<key_id>`, sk `KEY`: the record, a copy of what its workspace may use, and a counter `w<minute>` per calendar minute of use.
//! pk `COACH#<coach_id>`, sk `KEY#<created_at>#<key_id>`: says that the key is the coach's. sk `KEYS`: a version that each new key moves.
//!
//! 1. `authenticate` UpdateItem: checks the key and counts the request at once. The refused update returns what tells unknown, revoked,
//!    expired and limited apart.
//! 2. `drop_windows` UpdateItem: removes counters of minutes long past.
//! 3. `list`         Query of the coach's partition, then BatchGetItem.
//! 4. `create`, `rotate` Transaction on the versions of the list and the workspace: at most 50 live keys, entitlements never missed.
//! 5. `revoke`       Transaction with the audit record.
//! 6. `copy_entitlements` Query, then UpdateItem of each key that has an older copy.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, KeysAndAttributes, Put, ReturnConsumedCapacity, ReturnValue,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use chrono::TimeDelta;
use domain::api_key::{ApiKey, Permission, Scope};
use domain::id::{CoachId, KeyId};
use domain::phone::Country;
use domain::rate_limit::{Minute, Quota, REQUESTS_PER_MINUTE};
use domain::time::Timestamp;
use domain::workspace::{CrmConfiguration, Entitlements};
use runtime::{BoxError, Environment, random_bytes};
use serde::{Deserialize, Serialize};

use crate::audit;
use crate::db::{Db, Item, StoreError, Transacted, Written, b, from_item, n, read_failed, s, to_attribute, to_item, write};
use crate::outbox::serde_bytes_attribute;
use crate::workspace::{StoredWorkspace, Workspaces, key as workspace_key};

/// Most keys of a workspace that are neither revoked nor expired.
pub const MAX_LIVE_KEYS: usize = 50;
/// How long a rotated key lives on.
pub const ROTATION_OVERLAP: TimeDelta = TimeDelta::hours(24);
/// Counters of past minutes that an item may gather before they are removed.
const MAX_STALE_WINDOWS: usize = 8;
const MAX_ROUNDS: u32 = 10;
const BATCH: usize = 100;

/// A key's record, without the key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeyRecord {
    pub key_id: KeyId,
    pub coach_id: CoachId,
    pub name: String,
    pub scope: Scope,
    pub permissions: Vec<Permission>,
    /// Prefix and last characters.
    pub display: String,
    pub created_at: Timestamp,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<i64>,
    /// The start of the minute in which the key was last used, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<i64>,
    /// What the workspace may use, as of `workspace_version`.
    pub entitlements: Entitlements,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crm: Option<CrmConfiguration>,
    pub country: Country,
    pub workspace_version: u64,
}

impl KeyRecord {
    fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now.ms())
    }
}

#[derive(Serialize, Deserialize)]
struct Stored {
    pk: String,
    sk: String,
    #[serde(with = "serde_bytes_attribute")]
    hash: Vec<u8>,
    #[serde(flatten)]
    record: KeyRecord,
}

/// A key to be made.
#[derive(Debug, Clone)]
pub struct KeyDraft {
    pub name: String,
    pub scope: Scope,
    pub permissions: Vec<Permission>,
    pub expires_at: Option<Timestamp>,
}

/// What came of presenting a key.
#[derive(Debug)]
pub enum Presented {
    /// It counts. `stale_windows` are to be dropped beside the work.
    Accepted { record: Box<KeyRecord>, quota: Quota, stale_windows: Vec<String> },
    /// No such key, or it is revoked or has expired.
    Rejected,
    /// The key counts, but its minute is used up.
    Limited(Quota),
}

/// What came of making a key.
#[derive(Debug)]
pub enum Made {
    Done(Box<KeyRecord>),
    TooMany,
    UnknownWorkspace,
    /// The key to rotate does not exist.
    NotFound,
    /// The key to rotate is revoked or has expired.
    NotLive,
}

/// The keys table.
#[derive(Clone)]
pub struct Keys {
    db: Db,
    table: String,
}

impl Keys {
    /// The table that `KEYS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("KEYS_TABLE")?.to_owned() })
    }

    /// Checks a key and counts the request against its minute.
    pub async fn authenticate(&self, key: &ApiKey, now: Timestamp) -> Result<Presented, StoreError> {
        let minute = Minute::of(now);
        let (current, before_last) = (window(minute), window(Minute(minute.0 - 2)));
        let id = key.id();
        let written = write("UpdateItem", || {
            self.db
                .client()
                .update_item()
                .table_name(&self.table)
                .set_key(Some(item_key(&id)))
                .update_expression("SET last_used_at = :minute ADD #current :one REMOVE #before_last")
                .condition_expression(
                    "#hash = :hash AND attribute_not_exists(revoked_at) \
                     AND (attribute_not_exists(expires_at) OR expires_at > :now) \
                     AND (attribute_not_exists(#current) OR #current < :limit)",
                )
                .expression_attribute_names("#hash", "hash")
                .expression_attribute_names("#current", &current)
                .expression_attribute_names("#before_last", &before_last)
                .expression_attribute_values(":hash", b(key.hash()))
                .expression_attribute_values(":minute", n(minute.0 * 60_000))
                .expression_attribute_values(":one", n(1))
                .expression_attribute_values(":now", n(now.ms()))
                .expression_attribute_values(":limit", n(REQUESTS_PER_MINUTE))
                .return_values(ReturnValue::AllNew)
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        match written.await? {
            Written::Done(output) => {
                let item = output.attributes.unwrap_or_default();
                let used = used_in(&item, &current);
                let stale_windows = stale_windows(&item, minute);
                let stored: Stored = from_item("key", item)?;
                Ok(Presented::Accepted { record: Box::new(stored.record), quota: Quota::after(used, now), stale_windows })
            }
            Written::Refused(Some(item)) => {
                let used = used_in(&item, &current);
                let stored: Stored = from_item("key", item)?;
                let counts = stored.hash == key.hash() && stored.record.is_live(now);
                Ok(if counts { Presented::Limited(Quota::after(used, now)) } else { Presented::Rejected })
            }
            Written::Refused(None) => Ok(Presented::Rejected),
        }
    }

    /// Removes counters of minutes long past.
    pub async fn drop_windows(&self, id: &KeyId, windows: &[String]) -> Result<(), StoreError> {
        let names: Vec<String> = (0..windows.len()).map(|i| format!("#w{i}")).collect();
        write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(item_key(id)));
            let update = names.iter().zip(windows).fold(update, |update, (name, window)| {
                update.expression_attribute_names(name, window)
            });
            update
                .update_expression(format!("REMOVE {}", names.join(", ")))
                .condition_expression("attribute_exists(pk)")
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        })
        .await?;
        Ok(())
    }

    /// All keys that the coach ever had, newest first.
    pub async fn list(&self, coach: &CoachId) -> Result<Vec<KeyRecord>, StoreError> {
        let ids = self.key_ids(coach).await?.1;
        self.records(&ids).await
    }

    /// Makes a key. The version of the workspace is part of the condition: a change of entitlements either sees the new key or is seen.
    pub async fn create(
        &self,
        workspaces: &Workspaces,
        coach: &CoachId,
        draft: &KeyDraft,
        key: &ApiKey,
        now: Timestamp,
    ) -> Result<Made, StoreError> {
        self.make(workspaces, coach, draft, key, None, now).await
    }

    /// Makes a key like an old one, which lives on for a while.
    pub async fn rotate(
        &self,
        workspaces: &Workspaces,
        coach: &CoachId,
        id: &KeyId,
        new_key: impl FnOnce(Scope) -> ApiKey,
        now: Timestamp,
    ) -> Result<(Made, Option<ApiKey>), StoreError> {
        let Some(old) = self.get(coach, id).await? else { return Ok((Made::NotFound, None)) };
        if !old.is_live(now) {
            return Ok((Made::NotLive, None));
        }
        let draft = KeyDraft {
            name: old.name.clone(),
            scope: old.scope,
            permissions: old.permissions.clone(),
            expires_at: old.expires_at.map(Timestamp::from_ms),
        };
        let key = new_key(old.scope);
        let made = self.make(workspaces, coach, &draft, &key, Some(&old), now).await?;
        Ok((made, Some(key)))
    }

    async fn make(
        &self,
        workspaces: &Workspaces,
        coach: &CoachId,
        draft: &KeyDraft,
        key: &ApiKey,
        replaces: Option<&KeyRecord>,
        now: Timestamp,
    ) -> Result<Made, StoreError> {
        for _ in 0..MAX_ROUNDS {
            let Some(workspace) = workspaces.get(coach).await? else { return Ok(Made::UnknownWorkspace) };
            let (version, ids) = self.key_ids(coach).await?;
            let live = self.records(&ids).await?.iter().filter(|record| record.is_live(now)).count();
            if live >= MAX_LIVE_KEYS {
                return Ok(Made::TooMany);
            }
            let record = KeyRecord {
                key_id: key.id(),
                coach_id: coach.clone(),
                name: draft.name.clone(),
                scope: draft.scope,
                permissions: draft.permissions.clone(),
                display: key.display(),
                created_at: now,
                expires_at: draft.expires_at.map(Timestamp::ms),
                revoked_at: None,
                last_used_at: None,
                entitlements: workspace.workspace.entitlements,
                crm: workspace.workspace.crm.clone(),
                country: workspace.workspace.country,
                workspace_version: workspace.version,
            };
            let action = if replaces.is_some() { "key.rotated" } else { "key.created" };
            let subject = replaces.map_or(record.key_id.as_str(), |old| old.key_id.as_str());
            let mut writes = self.creation(&record, key, version);
            writes.push(unchanged(workspaces, &workspace));
            writes.push(audit::record(workspaces.table(), coach, action, subject, now));
            writes.extend(replaces.map(|old| self.retirement(old, now)));
            if let Transacted::Done = self.db.transact(&writes).await? {
                return Ok(Made::Done(Box::new(record)));
            }
            let replaced = match replaces {
                Some(old) => self.get(coach, &old.key_id).await?,
                None => None,
            };
            if replaces.is_some() && !replaced.is_some_and(|old| old.is_live(now)) {
                return Ok(Made::NotLive);
            }
        }
        Err(StoreError::Unavailable { operation: "TransactWriteItems", source: "the keys kept changing".into() })
    }

    fn creation(&self, record: &KeyRecord, key: &ApiKey, version: Option<u64>) -> Vec<TransactWriteItem> {
        let id = record.key_id.as_str();
        let stored = Stored {
            pk: format!("KEY#{id}"),
            sk: "KEY".to_owned(),
            hash: key.hash().to_vec(),
            record: record.clone(),
        };
        let put_key = Put::builder()
            .table_name(&self.table)
            .set_item(Some(to_item(&stored)))
            .condition_expression("attribute_not_exists(pk)");
        let entry = coach_key(&record.coach_id, format!("KEY#{:015}#{id}", record.created_at.ms()));
        let put_entry = Put::builder().table_name(&self.table).set_item(Some(entry));
        let list = Update::builder()
            .table_name(&self.table)
            .set_key(Some(coach_key(&record.coach_id, "KEYS")))
            .update_expression("ADD version :one")
            .expression_attribute_values(":one", n(1));
        let list = match version {
            None => list.condition_expression("attribute_not_exists(pk)"),
            Some(version) => {
                list.condition_expression("version = :version").expression_attribute_values(":version", n(version))
            }
        };
        vec![
            TransactWriteItem::builder().put(put_key.build().expect("a table and an item are given")).build(),
            TransactWriteItem::builder().put(put_entry.build().expect("a table and an item are given")).build(),
            TransactWriteItem::builder().update(list.build().expect("a table, a key and an expression are given")).build(),
        ]
    }

    /// A rotated key ends after the overlap, or earlier if it was to end earlier.
    fn retirement(&self, old: &KeyRecord, now: Timestamp) -> TransactWriteItem {
        let overlap_end = (now + ROTATION_OVERLAP).ms();
        let ends_at = old.expires_at.map_or(overlap_end, |at| at.min(overlap_end));
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(item_key(&old.key_id)))
            .update_expression("SET expires_at = :ends")
            .condition_expression("attribute_not_exists(revoked_at) AND (attribute_not_exists(expires_at) OR expires_at > :now)")
            .expression_attribute_values(":ends", n(ends_at))
            .expression_attribute_values(":now", n(now.ms()));
        TransactWriteItem::builder().update(update.build().expect("a table, a key and an expression are given")).build()
    }

    /// Ends a key at once; the record stays. `None`: the coach has no such key. A second time changes nothing.
    pub async fn revoke(
        &self,
        workspaces: &Workspaces,
        coach: &CoachId,
        id: &KeyId,
        now: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError> {
        let Some(record) = self.get(coach, id).await? else { return Ok(None) };
        if record.revoked_at.is_some() {
            return Ok(Some(record));
        }
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(item_key(id)))
            .update_expression("SET revoked_at = :now")
            .condition_expression("attribute_exists(pk) AND attribute_not_exists(revoked_at)")
            .expression_attribute_values(":now", n(now.ms()));
        let writes = [
            TransactWriteItem::builder().update(update.build().expect("a table, a key and an expression are given")).build(),
            audit::record(workspaces.table(), coach, "key.revoked", id.as_str(), now),
        ];
        self.db.transact(&writes).await?;
        self.get(coach, id).await
    }

    /// Brings the copies that a coach's keys hold up to the workspace's state. An older state overwrites no newer one.
    pub async fn copy_entitlements(&self, workspace: &StoredWorkspace) -> Result<(), StoreError> {
        let (_, ids) = self.key_ids(&workspace.workspace.coach_id).await?;
        let copies = ids.iter().map(|id| self.copy_to(id, workspace));
        futures::future::try_join_all(copies).await?;
        Ok(())
    }

    async fn copy_to(&self, id: &KeyId, workspace: &StoredWorkspace) -> Result<(), StoreError> {
        let crm = workspace.workspace.crm.as_ref();
        write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(item_key(id)));
            let update = update
                .condition_expression("attribute_exists(pk) AND workspace_version < :version")
                .expression_attribute_values(":version", n(workspace.version))
                .expression_attribute_values(":country", to_attribute(&workspace.workspace.country))
                .expression_attribute_values(":entitlements", to_attribute(&workspace.workspace.entitlements))
                .return_consumed_capacity(ReturnConsumedCapacity::Total);
            let copied = "SET workspace_version = :version, entitlements = :entitlements, country = :country";
            match crm {
                Some(crm) => update
                    .update_expression(format!("{copied}, crm = :crm"))
                    .expression_attribute_values(":crm", to_attribute(crm))
                    .send(),
                None => update.update_expression(format!("{copied} REMOVE crm")).send(),
            }
        })
        .await?;
        Ok(())
    }

    async fn get(&self, coach: &CoachId, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let records = self.records(std::slice::from_ref(id)).await?;
        Ok(records.into_iter().find(|record| record.coach_id == *coach))
    }

    /// The list's version (`None` before the first key) and the ids in it, newest first.
    async fn key_ids(&self, coach: &CoachId) -> Result<(Option<u64>, Vec<KeyId>), StoreError> {
        let mut version = None;
        let mut ids = Vec::new();
        let mut start: Option<Item> = None;
        loop {
            let query = self.db.client().query().table_name(&self.table).consistent_read(true).scan_index_forward(false);
            let page = query
                .key_condition_expression("pk = :pk")
                .expression_attribute_values(":pk", s(coach_partition(coach)))
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| read_failed("Query", error))?;
            for item in page.items.unwrap_or_default() {
                let sk = item.get("sk").and_then(|sk| sk.as_s().ok()).map_or("", String::as_str);
                match sk.strip_prefix("KEY#").and_then(|rest| rest.split_once('#')) {
                    Some((_, id)) => ids.push(KeyId::parse(id).map_err(|rule| StoreError::corrupt("key", rule))?),
                    None => version = item.get("version").and_then(|v| v.as_n().ok()).and_then(|v| v.parse().ok()),
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok((version, ids));
            }
        }
    }

    /// The records of these ids, in their order.
    async fn records(&self, ids: &[KeyId]) -> Result<Vec<KeyRecord>, StoreError> {
        let mut found: HashMap<KeyId, KeyRecord> = HashMap::new();
        for chunk in ids.chunks(BATCH) {
            let mut wanted: Vec<Item> = chunk.iter().map(item_key).collect();
            while !wanted.is_empty() {
                let keys = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(true).build();
                let got = self
                    .db
                    .client()
                    .batch_get_item()
                    .request_items(&self.table, keys.expect("keys are given"))
                    .return_consumed_capacity(ReturnConsumedCapacity::Total)
                    .send()
                    .await
                    .map_err(|error| read_failed("BatchGetItem", error))?;
                for item in got.responses.unwrap_or_default().remove(&self.table).unwrap_or_default() {
                    let stored: Stored = from_item("key", item)?;
                    found.insert(stored.record.key_id.clone(), stored.record);
                }
                let rest = got.unprocessed_keys.unwrap_or_default().remove(&self.table);
                wanted = rest.map(|rest| rest.keys).unwrap_or_default();
            }
        }
        Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
    }
}

fn unchanged(workspaces: &Workspaces, workspace: &StoredWorkspace) -> TransactWriteItem {
    let check = ConditionCheck::builder()
        .table_name(workspaces.table())
        .set_key(Some(workspace_key(&workspace.workspace.coach_id)))
        .condition_expression("version = :version")
        .expression_attribute_values(":version", n(workspace.version));
    TransactWriteItem::builder().condition_check(check.build().expect("a table, a key and a condition are given")).build()
}

fn window(minute: Minute) -> String {
    format!("w{}", minute.0)
}

fn used_in(item: &Item, window: &str) -> u32 {
    item.get(window).and_then(|used| used.as_n().ok()).and_then(|used| used.parse().ok()).unwrap_or(0)
}

/// Counters that have had their time, once there are enough of them to be worth a write.
fn stale_windows(item: &Item, now: Minute) -> Vec<String> {
    let past = |name: &&String| {
        let minute: Option<i64> = name.strip_prefix('w').and_then(|digits| digits.parse().ok());
        minute.is_some_and(|minute| minute < now.0 - 1)
    };
    let stale: Vec<String> = item.keys().filter(past).cloned().collect();
    if stale.len() > MAX_STALE_WINDOWS { stale } else { Vec::new() }
}

fn item_key(id: &KeyId) -> HashMap<String, AttributeValue> {
    Item::from([("pk".to_owned(), s(format!("KEY#{id}"))), ("sk".to_owned(), s("KEY"))])
}

fn coach_partition(coach: &CoachId) -> String {
    format!("COACH#{coach}")
}

fn coach_key(coach: &CoachId, sk: impl Into<String>) -> Item {
    Item::from([("pk".to_owned(), s(coach_partition(coach))), ("sk".to_owned(), s(sk))])
}

/// A new key of the scope.
pub fn new_api_key(scope: Scope) -> ApiKey {
    ApiKey::generate(scope, &random_bytes())
}
