//! Changes of a key's name, expiry and events. Authentication reads the same item, so the next use of the key sees the
//! change.
//!
//! A new expiry may prolong the life of a key that has expired since the request arrived. Meanwhile another request may
//! have taken its place on the ring, and a change of the workspace may have passed it over. So the transaction keeps
//! the key on the ring, on condition of the workspace's version, and copies the workspace's state.

use domain::key::KeyChange;
use domain::time::Timestamp;

use super::lifecycle::when_as_read;
use super::{KeyRecord, Keys, Readers, item_key};
use crate::db::{Part, Write, n, s, to_attribute};
use crate::workspace::StoredWorkspace;

impl KeyRecord {
    /// The record after a change. `readers`: of a key that could not read events, and may read them now.
    pub fn changed(&self, change: &KeyChange, readers: Option<&Readers>) -> Self {
        let events = change.events.clone().unwrap_or_else(|| self.events.clone());
        let events_since = readers.map(|readers| readers.since).or(self.events_since);
        Self {
            events_since: events_since.filter(|_| events.is_some()),
            events,
            name: change.name.clone().unwrap_or_else(|| self.name.clone()),
            expires_at: change.expires_at.map_or(self.expires_at, |expires_at| expires_at.map(Timestamp::ms)),
            ..self.clone()
        }
    }
}

impl Keys {
    /// Parts of a transaction: change a key. `workspace` is the workspace of a key whose expiry changes, and must be
    /// checked beside them. `readers`: of a key that could not read events, and may read them now.
    pub fn change(
        &self,
        record: &KeyRecord,
        change: &KeyChange,
        workspace: Option<&StoredWorkspace>,
        readers: Option<&Readers>,
        now: Timestamp,
    ) -> Vec<Write> {
        let (id, changed) = (&record.key_id, record.changed(change, readers));
        let mut update = match workspace {
            Some(workspace) => self.copying_write(id, workspace),
            None => self.table.write(item_key(id)),
        };
        if let Some(name) = &change.name {
            update = update.set("name", s(name));
        }
        if let Some(expires_at) = change.expires_at {
            update = update.set_or_remove("expires_at", expires_at.map(|at| n(at.ms())));
        }
        if let Some(events) = &change.events {
            update = update.set_or_remove("events", events.as_ref().map(to_attribute));
            update = update.set_or_remove("events_since", changed.events_since.as_ref().map(to_attribute));
        }
        let ring = match (change.expires_at, &change.events) {
            (Some(_), _) => Some(self.keep_on_ring(&changed, readers)),
            (None, Some(_)) => Some(self.put_reader(&changed, readers)),
            (None, None) => None,
        };
        if change.needs_active_key() {
            let is_active =
                "attribute_not_exists(replaced_by) AND (attribute_not_exists(expires_at) OR expires_at > :now)";
            update = when_as_read(update.when(is_active, [(":now", n(now.ms()))]), record);
        }
        let update = update.when("attribute_exists(pk) AND attribute_not_exists(revoked_at)", []);
        ring.into_iter().chain([update.update(Part::Key)]).collect()
    }
}
