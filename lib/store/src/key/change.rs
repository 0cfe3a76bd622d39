//! Changes of a key's name and expiry. Authentication reads the same item, so the next use of the key sees the change.
//!
//! A new expiry may prolong the life of a key that has expired since the request arrived. Meanwhile another request may
//! have taken its place on the ring, and a change of the workspace may have passed it over. So the transaction keeps
//! the key on the ring, on condition of the workspace's version, and copies the workspace's state.

use domain::audit::{AuditAction, AuditDetail};
use domain::id::KeyId;
use domain::key::{KeyChange, KeyStatus};
use domain::time::Timestamp;

use super::{KeyRecord, Keys, item_key};
use crate::audit::{self, AuditContext};
use crate::db::{Part, StoreError, Transacted, n, retry, s};
use crate::workspace::Workspaces;

/// The result of changing a key.
#[derive(Debug)]
pub enum KeyUpdate {
    Done(Box<KeyRecord>),
    NotFound,
    Revoked,
    /// The key is expired or replaced, so its expiry cannot change.
    NotActive,
}

impl Keys {
    /// Changes a key.
    pub async fn change(
        &self,
        workspaces: &Workspaces,
        context: AuditContext<'_>,
        id: &KeyId,
        change: &KeyChange,
    ) -> Result<KeyUpdate, StoreError> {
        let AuditContext { coach, now, .. } = context;
        retry("the keys", || async {
            let Some(record) = self.get(coach, id).await? else { return Ok(Some(KeyUpdate::NotFound)) };
            match record.status(now) {
                KeyStatus::Revoked => return Ok(Some(KeyUpdate::Revoked)),
                KeyStatus::Expired | KeyStatus::Replaced if change.expires_at.is_some() => {
                    return Ok(Some(KeyUpdate::NotActive));
                }
                KeyStatus::Expired | KeyStatus::Replaced | KeyStatus::Active => {}
            }
            let detail = AuditDetail { changed: Some(change.fields()), ..record.audit_detail() };
            let mut writes =
                vec![audit::record(&workspaces.table, context, AuditAction::KeyUpdated, id.as_str(), detail)];
            let mut update = match change.expires_at {
                None => self.table.write(item_key(id)),
                Some(expires_at) => {
                    let workspace = workspaces.get(coach).await?;
                    let workspace = workspace.ok_or_else(|| StoreError::corrupt("key", "its workspace is missing"))?;
                    writes.extend([self.keep_on_ring(coach, id), workspaces.check_unchanged(&workspace)]);
                    let is_active = "attribute_not_exists(replaced_by) AND \
                                     (attribute_not_exists(expires_at) OR expires_at > :now)";
                    self.copying_write(id, &workspace)
                        .set_or_remove("expires_at", expires_at.map(|at| n(at.ms())))
                        .when(is_active, [(":now", n(now.ms()))])
                }
            };
            if let Some(name) = &change.name {
                update = update.set("name", s(name));
            }
            writes.push(update.when("attribute_exists(pk) AND attribute_not_exists(revoked_at)", []).update(Part::Key));
            match self.table.db.transact(&writes).await? {
                Transacted::Done => Ok(Some(KeyUpdate::Done(Box::new(changed(record, change))))),
                // The key has expired, and another one has its place.
                Transacted::Refused(refused)
                    if refused.is(Part::KeyRing) && !self.has_place(coach, id, now).await? =>
                {
                    Ok(Some(KeyUpdate::NotActive))
                }
                Transacted::Refused(_) => Ok(None),
            }
        })
        .await
    }
}

/// The record after the change.
fn changed(record: KeyRecord, change: &KeyChange) -> KeyRecord {
    KeyRecord {
        name: change.name.clone().unwrap_or(record.name),
        expires_at: change.expires_at.map_or(record.expires_at, |expires_at| expires_at.map(Timestamp::ms)),
        ..record
    }
}
