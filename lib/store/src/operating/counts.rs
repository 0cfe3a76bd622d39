//! The counts of a coach's clients, counted again.
//!
//! 1. `counted` Query of `by_owner`, which may lag.
//! 2. `set_counts` Part of a transaction, on the counts that were read.

use domain::id::CoachId;

use super::Overview;
use super::coach::ClientCounts;
use crate::db::{Part, StoreError, Write, n};
use crate::workspace::key as workspace_key;

impl Overview {
    /// Counts the clients of a coach in the list of clients.
    pub async fn counted(&self, coach: &CoachId) -> Result<ClientCounts, StoreError> {
        let (stored, active) = self.clients.count(coach).await?;
        Ok(ClientCounts { stored, active })
    }

    /// Part of a transaction: sets both counts, if they are as they were read.
    pub fn set_counts(&self, coach: &CoachId, read: ClientCounts, counted: ClientCounts) -> Write {
        let write = self.workspaces.table.write(workspace_key(coach));
        let write = write.set("client_count", n(counted.stored)).set("active_count", n(counted.active));
        let as_read = [(":read_clients", n(read.stored)), (":read_active", n(read.active))];
        write.when("client_count = :read_clients AND active_count = :read_active", as_read).update(Part::Workspace)
    }
}
