//! `GET /v1/crm/workflows`: a page of a coach's workflows.

use axum::extract::State;
use axum::response::Response;
use edge::{CrmCaller, Inbound, crm};

use crate::App;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let listed = app.workflows.page(&caller.coach, crm::page(&inbound)?).await?;
        crm::page_reply(listed, |workflow| workflow.id.0, |workflow| workflow)
    };
    app.gate.crm(&inbound, work).await
}
