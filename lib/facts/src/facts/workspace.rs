//! Whole records of workspaces.

use domain::workspace::Workspace;
use store::StoreError;
use store::unit::Unit;
use store::workspace::StoredWorkspace;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};
use crate::outcome::{Outcome, WIPING};

/// Stores a workspace, unless the stored state is newer. A fact of the same time applies. Another time zone moves the
/// days of all clients, so they are evaluated again.
pub(crate) struct Save<'a>(pub(crate) &'a Workspace);

impl FactCommand for Save<'_> {
    type Snapshot = Option<StoredWorkspace>;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<Self::Snapshot, Stop> {
        Ok(app.workspaces.get(&self.0.coach_id).await?)
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, found: Self::Snapshot) -> Decision<()> {
        if found.as_ref().is_some_and(StoredWorkspace::is_wiping) {
            return Decision::Waits(WIPING);
        }
        let Some(writes) = app.workspaces.save(self.0, found.as_ref(), fact.occurred_at) else {
            return Decision::Nothing;
        };
        let is_moved = found.is_none_or(|found| found.workspace.time_zone != self.0.time_zone);
        let due = || app.watches.change_zone(&self.0.coach_id, &self.0.time_zone, fact.due_mark());
        Decision::Commit(Unit::new().write(writes).write(is_moved.then(due)), ())
    }

    /// Copies the entitlements to the coach's keys.
    async fn after(&self, app: &FactStore, fact: Context<'_>, (): ()) -> Result<Outcome, StoreError> {
        if let Some(stored) = app.workspaces.get(&self.0.coach_id).await? {
            app.keys.copy_entitlements(&stored, fact.now).await?;
        }
        Ok(Outcome::Stored)
    }
}
