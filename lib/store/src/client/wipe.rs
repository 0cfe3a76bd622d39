//! Removal of a client of a sandbox without a trace. First facts about the client are made to wait. Later one
//! transaction removes the record with everything that hangs on it, and leaves a mark, by which the client's partition
//! of the table `records` is removed afterwards.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::{ClientId, CoachId};

use super::Clients;
use super::item::{ClientState, client_pk};
use crate::db::{self, Part, StoreError, retry, s};
use crate::workspace::key_of;

/// Beginning of the sort keys of the marks, in the coach's partition of the table `workspaces`.
pub(crate) const WIPED: &str = "WIPED#";

impl Clients {
    /// Marks a client of the coach, so that facts about the client wait.
    pub(crate) async fn close(&self, id: &ClientId, coach: &CoachId) -> Result<(), StoreError> {
        let client = self.table.write(db::pk(client_pk(id))).set("is_wiping", AttributeValue::Bool(true));
        let client = client.count("version").when("#owner = :coach", [(":coach", s(coach.as_str()))]);
        client.update_now().await.map(drop)
    }

    /// Removes a client of the coach.
    pub(crate) async fn wipe(&self, id: &ClientId, coach: &CoachId) -> Result<(), StoreError> {
        retry("the client", || async {
            let record = match self.lookup.state(id).await? {
                ClientState::Known(record) if record.client.coach_id == *coach => record,
                ClientState::Known(_) | ClientState::Unknown | ClientState::Erased => return Ok(Some(())),
            };
            let mut writes = self.leaving_writes(&record.client).await?;
            let mark = key_of(coach, &format!("{WIPED}{id}"));
            writes.push(self.workspaces.table.write(mark).put(Part::EmittedMark));
            let client = self.table.write(db::pk(client_pk(id))).when_version(Some(record.version));
            writes.push(client.delete(Part::Client));
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(()))
        })
        .await
    }

    /// Removes the tombstone of an erased client of the coach.
    pub(crate) async fn wipe_tombstone(&self, id: &ClientId, coach: &CoachId) -> Result<(), StoreError> {
        let is_ours = "attribute_exists(erased_at) AND contains(coaches, :coach)";
        let tombstone = self.table.write(db::pk(client_pk(id))).when(is_ours, [(":coach", s(coach.as_str()))]);
        tombstone.delete_now().await.map(drop)
    }
}
