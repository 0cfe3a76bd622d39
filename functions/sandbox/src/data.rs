//! `/v1/test/data`: the removal of everything that the workspace holds.

use domain::sandbox::{WipeJob, WipeStarted, WipeStatus};
use edge::{Inbound, KeyHolder, Problem, Reply, Steps};
use store::workspace::WipeStage;

use crate::App;

pub(crate) async fn read(app: App, caller: KeyHolder, _: Inbound) -> Result<Reply, Problem> {
    let wipe = app.workspace(&caller).await?.wipe.ok_or(Problem::NotFound("job"))?;
    let status = match wipe.stage {
        WipeStage::Removing | WipeStage::Opening => WipeStatus::Running,
        WipeStage::Done => WipeStatus::Done,
    };
    Reply::ok(&WipeJob { job: wipe.job, status })
}

pub(crate) struct Remove;

impl Steps for Remove {
    type App = App;
    type Caller = KeyHolder;

    /// Starts a removal, or joins the one that is running.
    async fn run(app: &App, caller: &KeyHolder, _: &Inbound) -> Result<Reply, Problem> {
        let started = app.wipes.start(&caller.key.coach_id, caller.now).await;
        let job = started.map_err(|error| Problem::internal("start a removal of test data", error))?;
        Reply::accepted(&WipeStarted { job })
    }
}
