//! Facts that change the rules of a coach's clients: automations, programmes, and workspaces with their time zone. One
//! transaction stores the change and makes the coach due, so the sweep passes over the clients.
//!
//! 1. `save_automation`, `delete_automation`, `save_programme`, `save_workspace` Read, and build a transaction on the
//!    items read, with the coach's watch.

use domain::automation::Automation;
use domain::id::{AutomationId, CoachId};
use domain::programme::Programme;
use domain::workspace::Workspace;
use runtime::{BoxError, Environment};

use crate::db::Db;
use crate::fact::{FactContext, Halt};
use crate::unit::Unit;
use crate::watch::{DueMark, Watches};
use crate::workspace::Workspaces;

/// The rules of coaches.
#[derive(Clone)]
pub struct Rules {
    workspaces: Workspaces,
    watches: Watches,
}

impl Rules {
    /// The rules, with the table that `RECORDS_TABLE` names.
    pub fn new(env: &Environment, db: &Db, workspaces: &Workspaces) -> Result<Self, BoxError> {
        Ok(Self { workspaces: workspaces.clone(), watches: Watches::new(env, db)? })
    }

    /// Stores an automation from a fact, unless the stored state is newer.
    pub async fn save_automation(&self, automation: &Automation, fact: FactContext<'_>) -> Result<Unit, Halt> {
        self.change_automation(&automation.coach_id, &automation.id, Some(automation), fact).await
    }

    /// Deletes an automation, even one that is not stored yet, unless the stored state is newer.
    pub async fn delete_automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
        fact: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        self.change_automation(coach, id, None, fact).await
    }

    async fn change_automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
        to: Option<&Automation>,
        FactContext { occurred_at, now, .. }: FactContext<'_>,
    ) -> Result<Unit, Halt> {
        let found = self.workspaces.automation(coach, id).await?;
        let next = found.next(to, occurred_at, now).ok_or(Halt::Done)?;
        let due = || self.watches.change_rules(coach, DueMark { now, silent: false });
        let writes = self.workspaces.put_automation(coach, id, &next, &found);
        Ok(Unit::new().write(writes).write(next.changes_rules.then(due)))
    }

    /// Stores a programme from a fact, unless the stored state is newer.
    pub async fn save_programme(&self, programme: &Programme, fact: FactContext<'_>) -> Result<Unit, Halt> {
        let Programme { coach_id: coach, programme_id: id, phases } = programme;
        let found = self.workspaces.stored_programme(coach, id).await?;
        if found.as_ref().is_some_and(|found| found.occurred_at() > fact.occurred_at) {
            return Err(Halt::Done);
        }
        let is_same = found.as_ref().map_or(phases.is_empty(), |found| found.phases == *phases);
        let put = self.workspaces.put_programme(programme, fact.occurred_at, found.as_ref());
        let due = || self.watches.change_rules(coach, fact.due_mark());
        Ok(Unit::new().write([put]).write((!is_same).then(due)))
    }

    /// Stores a workspace from a fact, unless the stored state is newer. A fact of the same time applies. Another time
    /// zone moves the days of all clients, so they are evaluated again.
    pub async fn save_workspace(&self, workspace: &Workspace, fact: FactContext<'_>) -> Result<Unit, Halt> {
        let found = self.workspaces.get(&workspace.coach_id).await?;
        let writes = self.workspaces.save(workspace, found.as_ref(), fact.occurred_at).ok_or(Halt::Done)?;
        let is_moved = found.is_none_or(|found| found.workspace.time_zone != workspace.time_zone);
        let due = || self.watches.change_zone(&workspace.coach_id, &workspace.time_zone, fact.due_mark());
        Ok(Unit::new().write(writes).write(is_moved.then(due)))
    }
}
