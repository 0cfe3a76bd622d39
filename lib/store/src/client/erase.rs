//! Erasure of a client. One transaction removes the record, the address, the external id's lock, the intake and the
//! seat. A tombstone of ids and dates stays, so that no late fact restores the client, and the relay drops what waits
//! in the outbox. The tombstone keeps the id of the contact that the client was: ingest erases the contact next.
//!
//! Ingest erases in three passes, the last a quarter of an hour after the second. They catch writes that were under
//! way: claims, attempts, entries of the relay. Bookings stay as busy time without a contact.

use std::collections::BTreeSet;

use domain::client::Client;
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Clients;
use super::item::{ClientState, CreationRefs, StoredClient, client_pk, intake_pk};
use super::seats::Seats;
use crate::audit;
use crate::db::{self, Part, StoreError, Write, retry, to_item};

/// References from a tombstone to what is to be erased elsewhere. Holds ids only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ErasedClient {
    #[serde(flatten)]
    pub creation_refs: CreationRefs,
    /// The coaches that the client had. Their event feeds may hold events about the client.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub coaches: BTreeSet<CoachId>,
}

#[derive(Serialize, Deserialize)]
struct ClientTombstone {
    pk: String,
    erased_at: Timestamp,
    #[serde(flatten)]
    refs: ErasedClient,
}

impl Clients {
    /// Erases a client, even one that is not stored yet. Returns references to the items that are to be erased
    /// elsewhere. Idempotent.
    pub async fn erase(&self, id: &ClientId, now: Timestamp) -> Result<ErasedClient, StoreError> {
        retry("the client", || async {
            let (writes, refs) = match self.lookup.state(id).await? {
                ClientState::Erased => return self.erased(id).await.map(Some),
                ClientState::Unknown => {
                    (vec![self.put_tombstone(id, &ErasedClient::default(), None, now)], ErasedClient::default())
                }
                ClientState::Known(record) => {
                    let refs = record.erasure_refs();
                    (self.erasure_writes(*record, &refs, now).await?, refs)
                }
            };
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(refs))
        })
        .await
    }

    async fn erased(&self, id: &ClientId) -> Result<ErasedClient, StoreError> {
        let found: Option<ClientTombstone> = self.table.get("tombstone", db::pk(client_pk(id))).await?;
        Ok(found.map(|tombstone| tombstone.refs).unwrap_or_default())
    }

    /// Removes the claim's key, which derives from an address, from the tombstone. The claim is erased by now.
    pub async fn forget_claim(&self, id: &ClientId) -> Result<(), StoreError> {
        let tombstone = self.table.write(db::pk(client_pk(id))).when("attribute_exists(erased_at)", []);
        tombstone.remove(["claim", "claimed_at"]).update_now().await?;
        Ok(())
    }

    async fn erasure_writes(
        &self,
        record: StoredClient,
        refs: &ErasedClient,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let client = record.client;
        let mut writes = self.leaving_writes(&client).await?;
        writes.push(self.put_tombstone(&client.id, refs, Some(record.version), now));
        writes.push(audit::record_erasure(&self.workspaces.table, &client.coach_id, &client.id, now));
        Ok(writes)
    }

    /// Parts of a transaction: remove everything that hangs on a client's record. Reads the workspace and the holders
    /// of the address.
    pub(super) async fn leaving_writes(&self, client: &Client) -> Result<Vec<Write>, StoreError> {
        let mut writes = Vec::new();
        let workspace = self.workspaces.get(&client.coach_id).await?;
        if let Some(workspace) = &workspace {
            let mut seats = Seats::default();
            seats.add(workspace, -1, -i64::from(client.is_active));
            writes.extend(self.move_seats(&seats));
        }
        if let Some(email) = &client.profile.email {
            writes.extend(self.leave_address(&email.key(), &client.id).await?);
        }
        writes.extend(self.move_external_id(Some(client), None));
        writes.push(self.watches.delete(&client.id));
        writes.push(self.table.write(db::pk(intake_pk(&client.id))).delete(Part::Intake));
        Ok(writes)
    }

    fn put_tombstone(&self, id: &ClientId, refs: &ErasedClient, version: Option<u64>, now: Timestamp) -> Write {
        let tombstone = ClientTombstone { pk: client_pk(id), erased_at: now, refs: refs.clone() };
        self.table.write(to_item(&tombstone)).when_version(version).put(Part::Client)
    }
}

impl StoredClient {
    /// References to what an erasure of the client reaches elsewhere.
    pub(crate) fn erasure_refs(&self) -> ErasedClient {
        let coaches = self.former_coaches.iter().chain([&self.client.coach_id]).cloned().collect();
        ErasedClient { creation_refs: self.creation_refs.clone().unwrap_or_default(), coaches }
    }
}
