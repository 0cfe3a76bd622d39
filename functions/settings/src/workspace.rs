//! `GET /settings/workspace`: what the workspace may use, and how much of its limits is in use.

use domain::endpoint::MAX_ENDPOINTS;
use domain::key::MAX_LIVE_KEYS;
use domain::workspace::{EndpointUsage, KeyUsage, Workspace, WorkspaceView};
use edge::{Inbound, Problem, Reply, Session};

use crate::App;

pub(crate) async fn read(app: App, session: Session, _: Inbound) -> Result<Reply, Problem> {
    let (workspace, live, count) = tokio::try_join!(
        app.workspaces.get(&session.coach),
        app.keys.count_live(&session.coach, session.now),
        app.endpoints.count(&session.coach),
    )?;
    let Workspace { coach_id, name, entitlements, crm, .. } = workspace.ok_or(Problem::WorkspaceUnknown)?.workspace;
    Reply::ok(&WorkspaceView {
        coach_id,
        name,
        entitlements,
        crm_configured: crm.is_some(),
        keys: KeyUsage { live, max: MAX_LIVE_KEYS },
        endpoints: EndpointUsage { count, max: MAX_ENDPOINTS },
    })
}
