//! Automations: whole records, and deletions.

use domain::automation::Automation;
use domain::id::{AutomationId, CoachId};
use store::automation::FoundAutomation;
use store::unit::Unit;
use store::watch::DueMark;

use crate::FactStore;
use crate::command::{Context, Decision, FactCommand, Stop};

/// Stores an automation, or deletes it (`to` is `None`), unless the stored state is newer. Another rule makes the
/// clients of the coach due. An automation that is not stored yet is deleted, too.
pub(crate) struct Change<'a> {
    pub(crate) coach: &'a CoachId,
    pub(crate) id: &'a AutomationId,
    pub(crate) to: Option<&'a Automation>,
}

impl FactCommand for Change<'_> {
    type Snapshot = FoundAutomation;
    type Rest = ();

    async fn read(&self, app: &FactStore, _: Context<'_>) -> Result<FoundAutomation, Stop> {
        Ok(app.workspaces.automation(self.coach, self.id).await?)
    }

    fn decide(&self, app: &FactStore, fact: Context<'_>, found: FoundAutomation) -> Decision<()> {
        let Some(next) = found.next(self.to, fact.occurred_at, fact.now) else { return Decision::Nothing };
        let due = || app.watches.change_rules(self.coach, DueMark { now: fact.now, silent: false });
        let writes = app.workspaces.put_automation(self.coach, self.id, &next, &found);
        Decision::Commit(Unit::new().write(writes).write(next.changes_rules.then(due)), ())
    }
}
