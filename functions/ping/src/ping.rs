//! `GET /v1/ping`: confirms a key and names its workspace.

use domain::api_key::Scope;
use domain::ping::{PingCoach, PingResult};
use edge::{Inbound, Partner, Problem, Reply};
use store::workspace::Workspaces;

pub(crate) async fn ping(workspaces: Workspaces, partner: Partner, _: Inbound) -> Result<Reply, Problem> {
    let found = workspaces.get(&partner.coach).await?;
    let found = found.ok_or_else(|| Problem::internal("ping", "the key's workspace is missing"))?;
    let workspace = found.workspace;
    Reply::ok(&PingResult {
        ok: true,
        coach: PingCoach { id: workspace.coach_id, email: workspace.email, name: workspace.name },
        active_clients: found.active_count,
        scope: Scope::Partner,
    })
}
