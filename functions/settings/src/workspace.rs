//! `GET /settings/workspace`: what the workspace may use, and how much of its limits is in use.

use domain::workspace::WorkspaceView;
use edge::{Inbound, Problem, Reply, Session};

use crate::App;

pub(crate) async fn read(app: App, session: Session, _: Inbound) -> Result<Reply, Problem> {
    let (workspace, live, count) = tokio::try_join!(
        app.workspaces.get(&session.coach),
        app.keys.count_live(&session.coach, session.now),
        app.endpoints.count(&session.coach),
    )?;
    Reply::ok(&WorkspaceView::new(workspace.ok_or(Problem::WorkspaceUnknown)?.workspace, live, count))
}
