//! `PATCH /v1/test/workspace`: what the coach's plan and settings decide elsewhere.

use domain::fact_time::FactTime;
use domain::sandbox::WorkspacePatch;
use domain::workspace::WorkspaceView;
use edge::{Inbound, KeyHolder, Problem, Reply, Steps};
use futures::future::try_join;
use store::retry;
use store::unit::{Commit, Once, Unit};
use store::watch::DueMark;

use crate::App;

pub(crate) struct Change;

impl Steps for Change {
    type App = App;
    type Caller = KeyHolder;

    /// Changes the workspace, and the copies in its keys.
    async fn run(app: &App, caller: &KeyHolder, inbound: &Inbound) -> Result<Reply, Problem> {
        let patch = WorkspacePatch::parse(inbound.json()?)?;
        let now = caller.now;
        retry("a workspace", || change(app, caller, &patch)).await?;
        app.keys.copy_entitlements(&app.workspace(caller).await?, now).await?;
        let coach = &caller.key.coach_id;
        let counts = async { Ok((app.keys.count_live(coach, now).await?, app.endpoints.count(coach).await?)) };
        let (workspace, (live, endpoints)) = try_join(app.workspace(caller), counts).await?;
        Reply::ok(&WorkspaceView::new(workspace.workspace, live, endpoints))
    }
}

/// Changes the workspace as it is now. `None`: another write was faster.
async fn change(app: &App, caller: &KeyHolder, patch: &WorkspacePatch) -> Result<Option<()>, Problem> {
    let (found, now) = (app.workspace(caller).await?, caller.now);
    if found.is_wiping() {
        return Err(Problem::TestDataWiping);
    }
    let changed = patch.apply(&found.workspace);
    if patch.crm_configured == Some(true) {
        app.contents.lay(&changed).await?;
    }
    let is_moved = changed.time_zone != found.workspace.time_zone;
    let mark = DueMark { now, silent: false };
    let due = is_moved.then(|| app.watches.change_zone(&changed.coach_id, &changed.time_zone, mark));
    let unit = Unit::new().write(app.workspaces.change(&found, &changed, FactTime::from_ms(now.ms()))).write(due);
    Ok(matches!(app.units.commit(unit, Once::ByVersion, now).await?, Commit::Done).then_some(()))
}
