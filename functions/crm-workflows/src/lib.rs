//! `/v1/crm/workflows`: a coach's workflows, without the messages that they send. One file per operation.

mod list;

use axum::Router;
use axum::routing::get;
use edge::Gate;
use runtime::{BoxError, Environment};
use store::Db;
use store::workflow::Workflows;

#[derive(Clone)]
struct App {
    gate: Gate,
    workflows: Workflows,
}

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let app = App { gate: Gate::new(env, &db)?, workflows: Workflows::new(env, &db)? };
    Ok(Router::new().route("/v1/crm/workflows", get(list::list)).with_state(app))
}
