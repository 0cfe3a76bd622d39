//! Whole records of workflows.

use domain::fact::WorkflowSaved;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};

/// Stores a workflow, unless the stored state is newer. A fact of the same time applies.
pub(crate) struct Save<'a>(pub(crate) &'a WorkflowSaved);

impl FactCommand for Save<'_> {
    type Snapshot = ();
    type Rest = ();

    async fn read(&self, _: &FactStore, _: Context<'_>) -> Result<(), Stop> {
        Ok(())
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, (): ()) -> Decision<()> {
        let put = app.workflows.put(&self.0.coach_id, &self.0.workflow(), fact.occurred_at);
        Decision::Commit(Unit::new().write([put]), ())
    }
}
