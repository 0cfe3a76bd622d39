//! `GET /v1/crm/workflows`: a page of a coach's workflows, without the messages that they send.

use axum::Router;
use axum::routing::get;
use domain::crm_list::{ById, PageRequest};
use domain::cursor::CursorList;
use edge::{CrmCaller, Door, Inbound, Problem, Reply, crm};
use runtime::{BoxError, Environment};
use store::Db;
use store::workflow::Workflows;

/// The function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let db = Db::new(env);
    let door = Door::<CrmCaller, _>::new(env, &db, Workflows::new(env, &db)?)?;
    Ok(Router::new().route("/v1/crm/workflows", get(door.read(list))))
}

async fn list(workflows: Workflows, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let list = CursorList { name: "workflows", coach: &caller.coach };
    inbound.only_known_parameters()?;
    let request = PageRequest::<ById>::parse(|name| inbound.query(name))?;
    crm::page_reply(&list, workflows.page(&caller.coach, &request).await?, |workflow| workflow)
}
