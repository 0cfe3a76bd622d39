//! Creation, rotation and revocation of keys. Each state of a workspace reaches all of its live keys, without a
//! transaction over them.
//!
//! A key is created on condition that its workspace has not changed since it was read. A change of the workspace then
//! updates the live keys of the ring. So no key misses a change.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::api_key::ApiKey;
use domain::id::{CoachId, KeyId};
use domain::key::{KeyDraft, ROTATION_OVERLAP};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{KeyItem, KeyRecord, Keys, Readers, coach_key, item_key};
use crate::db::{ItemWrite, Part, StoreError, Write, n, s, to_attribute, to_item};
use crate::workspace::StoredWorkspace;

/// Concurrent writes of copies.
const CONCURRENT_COPIES: usize = 16;

impl KeyRecord {
    /// A new key of a workspace. `readers`: of a key that may read events.
    pub fn new(
        key: &ApiKey,
        draft: &KeyDraft,
        stored: &StoredWorkspace,
        readers: Option<&Readers>,
        now: Timestamp,
    ) -> Self {
        let StoredWorkspace { workspace, version, .. } = stored;
        Self {
            key_id: key.id(),
            coach_id: workspace.coach_id.clone(),
            name: draft.name.clone(),
            scope: draft.scope,
            permissions: draft.permissions.clone(),
            events: draft.events.clone(),
            events_since: readers.map(|readers| readers.since),
            display: key.display(),
            created_at: now,
            expires_at: draft.expires_at.map(Timestamp::ms),
            replaced_by: None,
            revoked_at: None,
            last_used_at: None,
            entitlements: workspace.entitlements,
            crm: workspace.crm.clone(),
            country: workspace.country,
            time_zone: workspace.time_zone.clone(),
            workspace_version: *version,
            is_wiping: stored.is_wiping(),
        }
    }

    /// The draft of the key that replaces this one.
    pub fn to_draft(&self) -> KeyDraft {
        KeyDraft {
            name: self.name.clone(),
            scope: self.scope,
            permissions: self.permissions.clone(),
            expires_at: self.expires_at.map(Timestamp::from_ms),
            events: self.events.clone(),
        }
    }

    /// The record once a new key has replaced it: it ends after the overlap, or earlier if it was to end earlier.
    fn replaced(&self, new: &KeyId, now: Timestamp) -> Self {
        let overlap_end = (now + ROTATION_OVERLAP).ms();
        let ends_at = self.expires_at.map_or(overlap_end, |at| at.min(overlap_end));
        Self { expires_at: Some(ends_at), replaced_by: Some(new.clone()), ..self.clone() }
    }
}

impl Keys {
    /// Parts of a transaction: store a new key, if the ring has room. The workspace must be checked beside them.
    pub fn create(&self, record: &KeyRecord, key: &ApiKey, readers: Option<&Readers>) -> Vec<Write> {
        self.add(record, key, None, readers).into()
    }

    /// Parts of a transaction: store a new key in place of an old one, which ends after the overlap. The new key has
    /// the name, the expiry and the events that were read, so the old key must still have them, and no other rotation
    /// has replaced it. The workspace must be checked beside them.
    pub fn replace(
        &self,
        old: &KeyRecord,
        record: &KeyRecord,
        key: &ApiKey,
        readers: Option<&Readers>,
        now: Timestamp,
    ) -> Vec<Write> {
        let replaced = old.replaced(&record.key_id, now);
        let update = self.table.write(item_key(&old.key_id)).set("replaced_by", s(record.key_id.as_str()));
        let update = update.set_or_remove("expires_at", replaced.expires_at.map(n));
        let is_active = "attribute_not_exists(revoked_at) AND attribute_not_exists(replaced_by)";
        let update = update.when(is_active, []).when("#name = :name", [(":name", s(&old.name))]);
        let retired = when_as_read(update, old).update(Part::ReplacedKey);
        self.add(record, key, Some(&replaced), readers).into_iter().chain([retired]).collect()
    }

    fn add(
        &self,
        record: &KeyRecord,
        key: &ApiKey,
        replaced: Option<&KeyRecord>,
        readers: Option<&Readers>,
    ) -> [Write; 3] {
        let id = record.key_id.as_str();
        let stored = KeyItem {
            pk: format!("KEY#{id}"),
            sk: "KEY".to_owned(),
            hash: key.hash().to_vec(),
            record: record.clone(),
        };
        let entry = coach_key(&record.coach_id, super::list::entry_sort_key(record.created_at, &record.key_id));
        [
            self.add_to_ring(record, replaced, readers),
            self.table.write(to_item(&stored)).when_absent().put(Part::Key),
            self.table.write(entry).put(Part::Key),
        ]
    }

    /// Parts of a transaction: end a key at once. Its record stays.
    pub fn revoke(&self, coach: &CoachId, id: &KeyId, now: Timestamp) -> [Write; 2] {
        let update = self.table.write(item_key(id)).set("revoked_at", n(now.ms()));
        let update = update.when("attribute_exists(pk) AND attribute_not_exists(revoked_at)", []);
        [self.remove_from_ring(coach, id), update.update(Part::Key)]
    }

    /// Updates the copies of the workspace's state in a coach's live keys. An older state overwrites no newer one.
    /// Expired keys keep their copies: they are refused anyway.
    pub async fn copy_entitlements(&self, workspace: &StoredWorkspace, now: Timestamp) -> Result<(), StoreError> {
        let live = self.live(&workspace.workspace.coach_id, now).await?;
        let copies: Vec<_> = live.iter().map(|key| self.copy_to(&key.key_id, workspace)).collect();
        stream::iter(copies).buffer_unordered(CONCURRENT_COPIES).try_collect().await
    }

    /// An update of a key with a copy of the workspace's state.
    pub(super) fn copying_write(&self, id: &KeyId, stored: &StoredWorkspace) -> ItemWrite<'_> {
        let StoredWorkspace { workspace, version, .. } = stored;
        self.table
            .write(item_key(id))
            .set("workspace_version", n(version))
            .set("country", to_attribute(&workspace.country))
            .set("time_zone", s(workspace.time_zone.as_str()))
            .set("entitlements", to_attribute(&workspace.entitlements))
            .set_or_remove("crm", workspace.crm.as_ref().map(to_attribute))
            .set_or_remove("is_wiping", stored.is_wiping().then_some(AttributeValue::Bool(true)))
    }

    async fn copy_to(&self, id: &KeyId, stored: &StoredWorkspace) -> Result<(), StoreError> {
        let copy = self.copying_write(id, stored);
        copy.when("attribute_exists(pk) AND workspace_version < :workspace_version", []).update_now().await?;
        Ok(())
    }
}

/// Adds the condition that a key still has the expiry and the events that were read.
pub(super) fn when_as_read<'a>(update: ItemWrite<'a>, read: &KeyRecord) -> ItemWrite<'a> {
    let update = match read.expires_at {
        Some(at) => update.when("expires_at = :read_expiry", [(":read_expiry", n(at))]),
        None => update.when("attribute_not_exists(expires_at)", []),
    };
    match &read.events {
        Some(events) => update.when("#events = :read_events", [(":read_events", to_attribute(events))]),
        None => update.when("attribute_not_exists(#events)", []),
    }
}
