//! Whole records of programmes.

use domain::programme::Programme;
use store::programme::StoredProgramme;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};

/// Stores a programme, unless the stored state is newer. Other phases make the clients of the coach due.
pub(crate) struct Save<'a>(pub(crate) &'a Programme);

impl FactCommand for Save<'_> {
    type Snapshot = Option<StoredProgramme>;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<Self::Snapshot, Stop> {
        Ok(app.workspaces.stored_programme(&self.0.coach_id, &self.0.programme_id).await?)
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, found: Self::Snapshot) -> Decision<()> {
        let Programme { coach_id, phases, .. } = self.0;
        if found.as_ref().is_some_and(|found| found.occurred_at() > fact.occurred_at) {
            return Decision::Nothing;
        }
        let is_same = found.as_ref().map_or(phases.is_empty(), |found| found.phases == *phases);
        let put = app.workspaces.put_programme(self.0, fact.occurred_at, found.as_ref());
        let due = || app.watches.change_rules(coach_id, fact.due_mark());
        Decision::Commit(Unit::new().write([put]).write((!is_same).then(due)), ())
    }
}
