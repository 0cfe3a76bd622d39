//! `GET /v1/ping`: confirms a key and names its workspace. Changes nothing.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::api_key::Scope;
use domain::ping::{PingCoach, PingResult};
use edge::{Gate, Inbound, Problem, Reply};
use runtime::{BoxError, Environment};
use store::Db;
use store::workspace::Workspaces;

#[derive(Clone)]
struct App {
    gate: Gate,
    workspaces: Workspaces,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let app = App { gate: Gate::new(env, &db)?, workspaces: Workspaces::new(env, &db)? };
    Ok(Router::new().route("/v1/ping", get(ping)).with_state(app))
}

async fn ping(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |partner: edge::Partner, ()| {
        let found = app.workspaces.get(&partner.coach).await?;
        let found = found.ok_or_else(|| Problem::internal("ping", "the key's workspace is missing"))?;
        let workspace = found.workspace;
        Reply::ok(&PingResult {
            ok: true,
            coach: PingCoach { id: workspace.coach_id, email: workspace.email, name: workspace.name },
            active_clients: found.active_count,
            scope: Scope::Partner,
        })
    };
    app.gate.partner(&inbound, async {}, work).await
}
