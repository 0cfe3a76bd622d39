//! Creation, rotation and revocation of keys. Each state of a workspace reaches all of its live keys, without a
//! transaction over them.
//!
//! A key is created on condition that its workspace has not changed since it was read. A change of the workspace then
//! updates the live keys of the ring. So no key misses a change.

use domain::api_key::{ApiKey, Scope};
use domain::audit::{AuditAction, AuditDetail};
use domain::id::KeyId;
use domain::key::{KeyDraft, KeyStatus, ROTATION_OVERLAP};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{KeyItem, KeyRecord, Keys, coach_key, item_key};
use crate::audit::{self, AuditContext};
use crate::db::{ItemWrite, Part, StoreError, Transacted, Write, n, retry, s, to_attribute, to_item};
use crate::workspace::{StoredWorkspace, Workspaces};

/// Concurrent writes of copies.
const CONCURRENT_COPIES: usize = 16;

/// The result of creating a key.
#[derive(Debug)]
pub enum KeyCreation {
    Done(Box<KeyRecord>),
    TooMany,
    UnknownWorkspace,
    /// The key to rotate does not exist.
    NotFound,
    /// The key to rotate is revoked or has expired.
    NotLive,
    /// The key to rotate is replaced already.
    Replaced,
    /// Another request has taken over the claim.
    ClaimLost,
}

/// A key that is about to be created.
#[derive(Clone, Copy)]
struct Creation<'a> {
    draft: &'a KeyDraft,
    key: &'a ApiKey,
    /// The key that is rotated.
    replaces: Option<&'a KeyRecord>,
}

impl Keys {
    /// Creates a key. `answer` gives the parts of the transaction that record the answer.
    pub async fn create(
        &self,
        workspaces: &Workspaces,
        context: AuditContext<'_>,
        draft: &KeyDraft,
        key: &ApiKey,
        answer: impl Fn(&KeyRecord, &ApiKey) -> Vec<Write>,
    ) -> Result<KeyCreation, StoreError> {
        let creation = Creation { draft, key, replaces: None };
        retry("the keys", || self.try_create(workspaces, context, creation, &answer)).await
    }

    /// Creates a key with the name, scope, permissions and expiry of an old one, which stays live for a while.
    pub async fn rotate(
        &self,
        workspaces: &Workspaces,
        context: AuditContext<'_>,
        id: &KeyId,
        new_key: impl Fn(Scope) -> ApiKey,
        answer: impl Fn(&KeyRecord, &ApiKey) -> Vec<Write>,
    ) -> Result<(KeyCreation, Option<ApiKey>), StoreError> {
        retry("the keys", || async {
            let Some(old) = self.get(context.coach, id).await? else { return Ok(Some((KeyCreation::NotFound, None))) };
            match old.status(context.now) {
                KeyStatus::Active => {}
                KeyStatus::Replaced => return Ok(Some((KeyCreation::Replaced, None))),
                KeyStatus::Revoked | KeyStatus::Expired => return Ok(Some((KeyCreation::NotLive, None))),
            }
            let draft = KeyDraft {
                name: old.name.clone(),
                scope: old.scope,
                permissions: old.permissions.clone(),
                expires_at: old.expires_at.map(Timestamp::from_ms),
            };
            let key = new_key(old.scope);
            let creation = Creation { draft: &draft, key: &key, replaces: Some(&old) };
            let made = self.try_create(workspaces, context, creation, &answer).await?;
            Ok(made.map(|made| (made, Some(key))))
        })
        .await
    }

    /// Creates a key. `None`: the workspace, the ring or the replaced key has changed meanwhile.
    async fn try_create(
        &self,
        workspaces: &Workspaces,
        context: AuditContext<'_>,
        Creation { draft, key, replaces }: Creation<'_>,
        answer: &impl Fn(&KeyRecord, &ApiKey) -> Vec<Write>,
    ) -> Result<Option<KeyCreation>, StoreError> {
        let AuditContext { coach, now, .. } = context;
        let Some(workspace) = workspaces.get(coach).await? else { return Ok(Some(KeyCreation::UnknownWorkspace)) };
        let record = KeyRecord {
            key_id: key.id(),
            coach_id: coach.clone(),
            name: draft.name.clone(),
            scope: draft.scope,
            permissions: draft.permissions.clone(),
            display: key.display(),
            created_at: now,
            expires_at: draft.expires_at.map(Timestamp::ms),
            replaced_by: None,
            revoked_at: None,
            last_used_at: None,
            entitlements: workspace.workspace.entitlements,
            crm: workspace.workspace.crm.clone(),
            country: workspace.workspace.country,
            time_zone: workspace.workspace.time_zone.clone(),
            workspace_version: workspace.version,
        };
        let mut writes = vec![self.add_to_ring(coach, &record.key_id), workspaces.check_unchanged(&workspace)];
        writes.extend(replaces.map(|old| self.retirement_write(old, &record.key_id, now)));
        writes.extend(self.creation_writes(&record, key));
        let trail = match replaces {
            None => {
                let detail = AuditDetail { scope: Some(record.scope), ..record.audit_detail() };
                audit::record(&workspaces.table, context, AuditAction::KeyCreated, record.key_id.as_str(), detail)
            }
            Some(old) => {
                let detail = AuditDetail { new_key_id: Some(record.key_id.clone()), ..old.audit_detail() };
                audit::record(&workspaces.table, context, AuditAction::KeyRotated, old.key_id.as_str(), detail)
            }
        };
        writes.push(trail);
        writes.extend(answer(&record, key));
        match self.table.db.transact(&writes).await? {
            Transacted::Done => Ok(Some(KeyCreation::Done(Box::new(record)))),
            Transacted::Refused(refused) if refused.is(Part::Claim) => Ok(Some(KeyCreation::ClaimLost)),
            Transacted::Refused(refused) if refused.is(Part::KeyRing) && !self.make_room(coach, now).await? => {
                Ok(Some(KeyCreation::TooMany))
            }
            // The workspace or the replaced key has changed, or the ring has room again.
            Transacted::Refused(_) => Ok(None),
        }
    }

    fn creation_writes(&self, record: &KeyRecord, key: &ApiKey) -> [Write; 2] {
        let id = record.key_id.as_str();
        let stored = KeyItem {
            pk: format!("KEY#{id}"),
            sk: "KEY".to_owned(),
            hash: key.hash().to_vec(),
            record: record.clone(),
        };
        let entry = coach_key(&record.coach_id, super::list::entry_sort_key(record.created_at, &record.key_id));
        [self.table.write(to_item(&stored)).when_absent().put(Part::Key), self.table.write(entry).put(Part::Key)]
    }

    /// The write that ends a rotated key after the overlap, or earlier if it was to end earlier. The new key has the
    /// name and the expiry that were read, so the old key must still have them, and no other rotation has replaced it.
    fn retirement_write(&self, old: &KeyRecord, new: &KeyId, now: Timestamp) -> Write {
        let overlap_end = (now + ROTATION_OVERLAP).ms();
        let ends_at = old.expires_at.map_or(overlap_end, |at| at.min(overlap_end));
        let update = self.table.write(item_key(&old.key_id)).set("expires_at", n(ends_at));
        let update = update.set("replaced_by", s(new.as_str()));
        let is_active = "attribute_not_exists(revoked_at) AND attribute_not_exists(replaced_by)";
        let update = update.when(is_active, []).when("#name = :name", [(":name", s(&old.name))]);
        let update = match old.expires_at {
            Some(at) => update.when("expires_at = :read", [(":read", n(at))]),
            None => update.when("attribute_not_exists(expires_at)", []),
        };
        update.update(Part::ReplacedKey)
    }

    /// Ends a key at once. Its record stays. Returns `None` if the coach has no such key. A repeated call changes
    /// nothing.
    pub async fn revoke(
        &self,
        workspaces: &Workspaces,
        context: AuditContext<'_>,
        id: &KeyId,
    ) -> Result<Option<KeyRecord>, StoreError> {
        let AuditContext { coach, now, .. } = context;
        retry("the keys", || async {
            let Some(record) = self.get(coach, id).await? else { return Ok(Some(None)) };
            if record.revoked_at.is_some() {
                return Ok(Some(Some(record)));
            }
            let update = self.table.write(item_key(id)).set("revoked_at", n(now.ms()));
            let update = update.when("attribute_exists(pk) AND attribute_not_exists(revoked_at)", []);
            let (action, detail) = (AuditAction::KeyRevoked, record.audit_detail());
            let trail = audit::record(&workspaces.table, context, action, id.as_str(), detail);
            let writes = [self.remove_from_ring(coach, id), update.update(Part::Key), trail];
            match self.table.db.transact(&writes).await? {
                Transacted::Done => self.get(coach, id).await.map(Some),
                Transacted::Refused(_) => Ok(None),
            }
        })
        .await
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
    }

    async fn copy_to(&self, id: &KeyId, stored: &StoredWorkspace) -> Result<(), StoreError> {
        let copy = self.copying_write(id, stored);
        copy.when("attribute_exists(pk) AND workspace_version < :workspace_version", []).update_now().await?;
        Ok(())
    }
}
