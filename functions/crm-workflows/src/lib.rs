//! `GET /v1/crm/workflows`: a page of a coach's workflows, without the messages that they send.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::crm_list::{ById, PageRequest};
use domain::cursor::CursorList;
use edge::{CrmCaller, Gate, Inbound, crm};
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
    Ok(Router::new().route("/v1/crm/workflows", get(list)).with_state(app))
}

async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let list = CursorList { name: "workflows", coach: &caller.coach };
        inbound.only_parameters(&PageRequest::<ById>::PARAMETERS)?;
        let request = PageRequest::<ById>::parse(|name| inbound.query(name))?;
        crm::page_reply(&list, app.workflows.page(&caller.coach, &request).await?, |workflow| workflow)
    };
    app.gate.crm(&inbound, work).await
}
