//! `PATCH /v1/test/workspace`: what the coach's plan and settings decide elsewhere.

use domain::fact::{Fact, FactBody};
use domain::id::{FactId, new_uuid};
use domain::sandbox::WorkspacePatch;
use domain::workspace::WorkspaceView;
use edge::{Inbound, KeyHolder, Problem, Reply, Steps};
use facts::{Outcome, Progress};
use runtime::random_bytes;

use crate::App;
use crate::app::fact_time;

pub(crate) struct Change;

impl Steps for Change {
    type App = App;
    type Caller = KeyHolder;

    /// Stores the changed workspace as a fact, which also reaches the keys.
    async fn run(app: &App, caller: &KeyHolder, inbound: &Inbound) -> Result<Reply, Problem> {
        let patch = WorkspacePatch::parse(inbound.json()?)?;
        let (found, now) = (app.workspace(caller).await?, caller.now);
        let changed = patch.apply(&found.workspace);
        if patch.crm_configured == Some(true) {
            app.contents.lay(&changed).await?;
        }
        let id = format!("patch_{}", new_uuid(now.ms(), random_bytes()).simple());
        let fact = Fact {
            id: FactId::parse(&id).map_err(|error| Problem::internal("name a fact", error))?,
            occurred_at: fact_time(now).max(found.saved_at()),
            backfill: false,
            body: FactBody::WorkspaceSaved(changed),
        };
        match app.facts.store(&fact, Progress::default(), now).await? {
            Outcome::Waits(_) => return Err(Problem::TestDataWiping),
            Outcome::Stored | Outcome::Unchanged => {}
            Outcome::Continues(_) | Outcome::Unknown(_) | Outcome::Refused(_) => {
                return Err(Problem::internal("store a workspace", "the fact was refused"));
            }
        }
        let coach = &caller.key.coach_id;
        let counts = async { Ok((app.keys.count_live(coach, now).await?, app.endpoints.count(coach).await?)) };
        let (workspace, (live, endpoints)) = futures::future::try_join(app.workspace(caller), counts).await?;
        Reply::ok(&WorkspaceView::new(workspace.workspace, live, endpoints))
    }
}
