//! Table `workspaces`, the contents that a workspace of a sandbox begins with: the items of modules `workspace`,
//! `pipeline`, `calendar` and `programme`. Any fact of the application is newer.
//!
//! 1. `found` Transaction: a new workspace with its contents, unless the workspace is stored.
//! 2. `lay` Reads, then a transaction for each record that is not stored.

use domain::fact_time::FactTime;
use domain::sandbox::{FirstContents, first_contents};
use domain::workspace::Workspace;
use runtime::{BoxError, Environment};

use crate::calendar::Calendars;
use crate::db::{Db, StoreError, Write};
use crate::pipeline::Pipelines;
use crate::workspace::Workspaces;

/// Lays first contents.
#[derive(Clone)]
pub struct FirstContentsWriter {
    db: Db,
    workspaces: Workspaces,
    pipelines: Pipelines,
    calendars: Calendars,
}

impl FirstContentsWriter {
    /// The table that `WORKSPACES_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self {
            db: db.clone(),
            workspaces: Workspaces::new(env, db)?,
            pipelines: Pipelines::new(env, db)?,
            calendars: Calendars::new(env, db)?,
        })
    }

    /// Stores a new workspace with its contents, unless the workspace is stored by now.
    pub async fn found(&self, workspace: &Workspace) -> Result<(), StoreError> {
        let contents = contents_of(workspace)?;
        let mut writes = self.workspaces.save(workspace, None, oldest()).unwrap_or_default();
        writes.extend(self.pipeline(workspace, &contents, None));
        writes.extend(self.calendars(workspace, &contents));
        writes.push(self.workspaces.put_programme(&contents.programme, oldest(), None));
        // Refused: another request was faster.
        self.db.transact(&writes).await.map(drop)
    }

    /// Lays the contents of a stored workspace. A record that is stored stays.
    pub async fn lay(&self, workspace: &Workspace) -> Result<(), StoreError> {
        let contents = contents_of(workspace)?;
        let coach = &workspace.coach_id;
        let mut writes = Vec::new();
        for (calendar, put) in contents.calendars.iter().zip(self.calendars(workspace, &contents)) {
            if self.calendars.get(coach, calendar.id).await?.is_none() {
                writes.push(put);
            }
        }
        if self.pipelines.set_at(coach, &contents.pipeline.pipeline_id).await?.is_none() {
            writes.extend(self.pipeline(workspace, &contents, None));
        }
        if self.workspaces.stored_programme(coach, &contents.programme.programme_id).await?.is_none() {
            writes.push(self.workspaces.put_programme(&contents.programme, oldest(), None));
        }
        for write in writes {
            // Refused: a fact was faster, and is newer.
            self.db.transact(&[write]).await?;
        }
        Ok(())
    }

    fn pipeline(&self, workspace: &Workspace, contents: &FirstContents, found: Option<FactTime>) -> Option<Write> {
        self.pipelines.put(&workspace.coach_id, &contents.pipeline, oldest(), found)
    }

    fn calendars(&self, workspace: &Workspace, contents: &FirstContents) -> [Write; 2] {
        contents.calendars.each_ref().map(|calendar| self.calendars.put(&workspace.coach_id, calendar, oldest()))
    }
}

/// The time of the contents, before the time of any fact.
fn oldest() -> FactTime {
    FactTime::from_ms(0)
}

fn contents_of(workspace: &Workspace) -> Result<FirstContents, StoreError> {
    let zone = workspace.time_zone.zone().map_err(|unknown| StoreError::corrupt("workspace", unknown))?;
    Ok(first_contents(&workspace.coach_id, zone, &workspace.canonical_host))
}
