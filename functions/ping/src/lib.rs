//! `GET /v1/ping`: confirms a key and names its workspace. Changes nothing.

use axum::Router;
use axum::routing::get;
use domain::api_key::Scope;
use domain::ping::{PingCoach, PingResult};
use edge::{Door, Inbound, Partner, Problem, Reply};
use runtime::{BoxError, Environment};
use store::Db;
use store::workspace::Workspaces;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let door = Door::<Partner, _>::new(env, &db, Workspaces::new(env, &db)?)?;
    Ok(Router::new().route("/v1/ping", get(door.read(ping))))
}

async fn ping(workspaces: Workspaces, partner: Partner, _: Inbound) -> Result<Reply, Problem> {
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
