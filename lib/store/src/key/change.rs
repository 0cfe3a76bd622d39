//! Changes of a key's name and expiry. Authentication reads the same item, so the next use of the key sees the change.
//!
//! A new expiry may prolong the life of a key that has expired since the request arrived. Meanwhile another request may
//! have taken its place on the ring, and a change of the workspace may have passed it over. So the transaction keeps
//! the key on the ring, on condition of the workspace's version, and copies the workspace's state.

use domain::id::CoachId;
use domain::key::KeyChange;
use domain::time::Timestamp;

use super::{KeyRecord, Keys, item_key};
use crate::db::{Part, Write, n, s};
use crate::workspace::StoredWorkspace;

impl KeyRecord {
    /// The record after a change.
    pub fn changed(&self, change: &KeyChange) -> Self {
        Self {
            name: change.name.clone().unwrap_or_else(|| self.name.clone()),
            expires_at: change.expires_at.map_or(self.expires_at, |expires_at| expires_at.map(Timestamp::ms)),
            ..self.clone()
        }
    }
}

impl Keys {
    /// Parts of a transaction: change a key. `workspace` is the workspace of a key whose expiry changes, and must be
    /// checked beside them.
    pub fn change(
        &self,
        coach: &CoachId,
        record: &KeyRecord,
        change: &KeyChange,
        workspace: Option<&StoredWorkspace>,
        now: Timestamp,
    ) -> Vec<Write> {
        let id = &record.key_id;
        let (mut update, kept) = match change.expires_at.zip(workspace) {
            None => (self.table.write(item_key(id)), None),
            Some((expires_at, workspace)) => {
                let is_active = "attribute_not_exists(replaced_by) AND \
                                 (attribute_not_exists(expires_at) OR expires_at > :now)";
                let update = self.copying_write(id, workspace);
                let update = update.set_or_remove("expires_at", expires_at.map(|at| n(at.ms())));
                (update.when(is_active, [(":now", n(now.ms()))]), Some(self.keep_on_ring(coach, id)))
            }
        };
        if let Some(name) = &change.name {
            update = update.set("name", s(name));
        }
        let update = update.when("attribute_exists(pk) AND attribute_not_exists(revoked_at)", []);
        kept.into_iter().chain([update.update(Part::Key)]).collect()
    }
}
