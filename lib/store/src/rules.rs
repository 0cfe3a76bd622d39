//! What a coach's clients are judged by: automations on computed events, programmes, the time zone. A change of any of it and the note
//! of the change on the coach's watch, which makes the sweep pass over the clients, are one transaction.
//!
//! 1. `of`, `programme`, `zone`  Reads of modules `automation`, `programme`, `watch`.
//! 2. `save_automation`, `delete_automation`  Reads, then transaction: automation, coach's watch.
//! 3. `save_programme`  The same of a programme.
//! 4. `keep_zone`  GetItem, and a transaction where the zone is another: the coach's watch, if the workspace is as it was read.

use domain::automation::Automation;
use domain::fact_time::FactTime;
use domain::id::{AutomationId, CoachId, ProgrammeId};
use domain::programme::Programme;
use domain::sweep::Rule;
use domain::time::Timestamp;
use domain::tz::Tz;
use futures::future::try_join;
use runtime::{BoxError, Environment};

use crate::automation::StoredAutomation;
use crate::client::Telling;
use crate::db::{Db, MAX_ROUNDS, StoreError, stand_back};
use crate::programme::StoredProgramme;
use crate::watch::{Before, Changed, Watches};
use crate::workspace::{StoredWorkspace, Workspaces};

/// The rules of coaches.
#[derive(Clone)]
pub struct Rules {
    workspaces: Workspaces,
    watches: Watches,
}

impl Rules {
    /// With the table that `RECORDS_TABLE` names.
    pub fn new(env: &Environment, db: &Db, workspaces: &Workspaces) -> Result<Self, BoxError> {
        Ok(Self { workspaces: workspaces.clone(), watches: Watches::new(env, db)? })
    }

    /// A coach's automations, whatever they wait for, inactive ones included.
    pub(crate) async fn of(&self, coach: &CoachId) -> Result<Vec<Rule>, StoreError> {
        self.workspaces.rules(coach).await
    }

    /// A programme; one without phases where it has not been seen.
    pub(crate) async fn programme(&self, coach: &CoachId, id: &ProgrammeId) -> Result<StoredProgramme, StoreError> {
        Ok(self.workspaces.programme(coach, id).await?.unwrap_or_default())
    }

    /// Where the days of the coach's clients begin, and where they did before.
    pub(crate) async fn zone(&self, coach: &CoachId) -> Result<(Tz, Option<Before<Tz>>), StoreError> {
        let watch = self.watches.coach(coach).await?;
        if let Some(zone) = watch.zone {
            return Ok((zone, watch.zone_before));
        }
        let workspace = self.workspaces.get(coach).await?;
        let workspace = workspace.ok_or_else(|| StoreError::corrupt("client", "its workspace is missing"))?;
        Ok((workspace.zone()?, None))
    }

    /// Stores an automation as the application has it, unless a newer state is stored.
    pub async fn save_automation(
        &self,
        automation: &Automation,
        said_at: FactTime,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.change_automation(&automation.coach_id, &automation.id, Some(automation), (said_at, now)).await
    }

    /// Deletes an automation, whether or not it has come yet, unless a newer state is stored.
    pub async fn delete_automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
        said_at: FactTime,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.change_automation(coach, id, None, (said_at, now)).await
    }

    async fn change_automation(
        &self,
        coach: &CoachId,
        id: &AutomationId,
        to: Option<&Automation>,
        (said_at, now): (FactTime, Timestamp),
    ) -> Result<(), StoreError> {
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let (found, mut watch) = try_join(self.workspaces.automation(coach, id), self.watches.coach(coach)).await?;
            let is_same = found.as_ref().is_some_and(|found| found.is_same(to));
            if found.as_ref().is_some_and(|found| found.said_at() > said_at || (is_same && found.said_at() == said_at))
            {
                return Ok(());
            }
            let (was, becomes) = (found.as_ref().and_then(StoredAutomation::trigger), to.map(|to| &to.trigger));
            let found_at = found.as_ref().map(StoredAutomation::said_at);
            let mut writes = Vec::new();
            if !is_same && [was, becomes].into_iter().flatten().any(|trigger| trigger.computed().is_some()) {
                let is_watched = to.is_some_and(|to| to.active && to.trigger.computed().is_some());
                watch.change_rules(now, is_watched);
                writes.push(self.watches.put_coach(&watch));
            }
            let next = StoredAutomation::next(found, to, (said_at, now), watch.passed_at);
            writes.push(self.workspaces.put_automation((coach, id), &next, found_at));
            if self.watches.commit(&writes).await? {
                return Ok(());
            }
        }
        Err(StoreError::kept_changing("the automation"))
    }

    /// Stores a programme as the application has it, unless a newer state is stored.
    pub async fn save_programme(&self, programme: &Programme, telling: Telling) -> Result<(), StoreError> {
        let Telling { at: said_at, backfill, now } = telling;
        let (coach, id) = (&programme.coach_id, &programme.programme_id);
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let (found, mut watch) = try_join(self.workspaces.programme(coach, id), self.watches.coach(coach)).await?;
            if found.as_ref().is_some_and(|found| found.said_at() > said_at) {
                return Ok(());
            }
            let StoredProgramme { phases: was, before, .. } = found.clone().unwrap_or_default();
            let mut next = StoredProgramme { phases: programme.phases.clone(), saved_at: said_at.into(), before: None };
            let mut writes = Vec::new();
            if was == next.phases {
                next.before = before;
            } else if watch.is_watched {
                next.before = Some(Before::with(before, was, Changed { at: now, backfill }, watch.passed_at));
                watch.change_rules(now, true);
                writes.push(self.watches.put_coach(&watch));
            }
            writes.push(self.workspaces.put_programme((coach, id), &next, found.as_ref()));
            if self.watches.commit(&writes).await? {
                return Ok(());
            }
        }
        Err(StoreError::kept_changing("the programme"))
    }

    /// Notes the time zone of a workspace that was read. One that is another than before moves the beginnings of all days.
    pub async fn keep_zone(&self, workspace: StoredWorkspace, telling: Telling) -> Result<(), StoreError> {
        let changed = Changed { at: telling.now, backfill: telling.backfill };
        let mut workspace = workspace;
        let coach = workspace.workspace.coach_id.clone();
        for round in 0..MAX_ROUNDS {
            stand_back(round).await;
            let mut watch = self.watches.coach(&coach).await?;
            if !watch.change_zone(workspace.zone()?, changed) {
                return Ok(());
            }
            let writes = [self.watches.put_coach(&watch), self.workspaces.unchanged(&workspace)];
            if self.watches.commit(&writes).await? {
                return Ok(());
            }
            let found = self.workspaces.get(&coach).await?;
            workspace = found.ok_or_else(|| StoreError::corrupt("coach's watch", "its workspace is missing"))?;
        }
        Err(StoreError::kept_changing("the coach's watch"))
    }
}
