//! `GET /v1/key`: what a key of either scope may do. It answers whatever the plan has, so that a caller can always find
//! out.

use domain::mode::Mode;
use domain::own_key::{OwnKey, OwnWorkspace};
use domain::time::Timestamp;
use domain::wall_clock::date_at;
use edge::{Inbound, KeyHolder, Problem, Reply};
use store::workspace::Workspaces;

/// The workspaces, and the mode of the deployment.
pub(crate) type App = (Workspaces, Mode);

pub(crate) async fn read((workspaces, mode): App, caller: KeyHolder, _: Inbound) -> Result<Reply, Problem> {
    let KeyHolder { key, now } = caller;
    let found = workspaces.get(&key.coach_id).await?;
    let workspace = found.ok_or_else(|| Problem::internal("read a key", "the key's workspace is missing"))?.workspace;
    Reply::ok(&OwnKey {
        id: key.key_id,
        name: key.name,
        scope: key.scope,
        permissions: key.permissions,
        events: key.events,
        expires_at: key.expires_at.map(Timestamp::from_ms),
        mode,
        entitled: workspace.entitlements.admit(key.scope),
        today: date_at(workspace.time_zone.zone()?, now),
        workspace: OwnWorkspace { name: workspace.name, time_zone: workspace.time_zone.as_str().to_owned() },
    })
}
