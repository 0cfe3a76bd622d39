//! Facts that change the rules of a coach's clients: automations and programmes. (Module `workspace` has the time
//! zone.) One transaction stores the change and makes the coach due, so the sweep passes over the clients.
//!
//! 1. `save_automation`, `delete_automation`, `save_programme` Read, then a transaction on the items read, with the
//!    coach's watch.

use domain::automation::Automation;
use domain::fact_time::FactTime;
use domain::id::{AutomationId, CoachId};
use domain::programme::Programme;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};

use crate::db::{Db, StoreError, retry};
use crate::fact::FactContext;
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
    pub async fn save_automation(
        &self,
        automation: &Automation,
        occurred_at: FactTime,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.change_automation(&automation.coach_id, &automation.id, Some(automation), occurred_at, now).await
    }

    /// Deletes an automation, even one that is not stored yet, unless the stored state is newer.
    pub async fn delete_automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
        occurred_at: FactTime,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.change_automation(coach, id, None, occurred_at, now).await
    }

    async fn change_automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
        to: Option<&Automation>,
        occurred_at: FactTime,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retry("the automation", || async {
            let found = self.workspaces.automation(coach, id).await?;
            let Some(next) = found.next(to, occurred_at, now) else { return Ok(Some(())) };
            let mut writes: Vec<_> = self.workspaces.put_automation(coach, id, &next, &found).into();
            writes.extend(next.changes_rules.then(|| self.watches.change_rules(coach, DueMark { now, silent: false })));
            Ok(self.workspaces.table.db.transact(&writes).await?.is_done().then_some(()))
        })
        .await
    }

    /// Stores a programme from a fact, unless the stored state is newer.
    pub async fn save_programme(&self, programme: &Programme, fact: FactContext<'_>) -> Result<(), StoreError> {
        let occurred_at = fact.occurred_at;
        let Programme { coach_id: coach, programme_id: id, phases } = programme;
        retry("the programme", || async {
            let found = self.workspaces.stored_programme(coach, id).await?;
            if found.as_ref().is_some_and(|found| found.occurred_at() > occurred_at) {
                return Ok(Some(()));
            }
            let is_same = found.as_ref().map_or(phases.is_empty(), |found| found.phases == *phases);
            let mut writes = vec![self.workspaces.put_programme(programme, occurred_at, found.as_ref())];
            writes.extend((!is_same).then(|| self.watches.change_rules(coach, fact.due_mark())));
            Ok(self.workspaces.table.db.transact(&writes).await?.is_done().then_some(()))
        })
        .await
    }
}
