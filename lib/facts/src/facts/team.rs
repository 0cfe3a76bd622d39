//! Whole records of teams.

use domain::workspace::Team;
use store::unit::Unit;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};

/// Stores a team, unless the stored state is newer. A fact of the same time applies.
pub(crate) struct Save<'a>(pub(crate) &'a Team);

impl FactCommand for Save<'_> {
    type Snapshot = ();
    type Rest = ();

    async fn read(&self, _: &FactStore, _: Context<'_>) -> Result<(), Stop> {
        Ok(())
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, (): ()) -> Decision<()> {
        Decision::Commit(Unit::new().write([app.workspaces.put_team(self.0, fact.occurred_at)]), ())
    }
}
