//! `GET /v1/crm/opportunities`: a page of a coach's opportunities, in all pipelines.

use axum::extract::State;
use axum::response::Response;
use edge::{CrmCaller, Inbound, crm};
use futures::future::try_join;

use crate::App;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let page = app.opportunities.page(&caller.coach, crm::page(&inbound)?);
        let (listed, pipelines) = try_join(page, app.pipelines.all(&caller.coach)).await?;
        crm::page_reply(
            listed,
            |opportunity| opportunity.id.0,
            |opportunity| {
                let pipeline = pipelines.iter().find(|pipeline| pipeline.pipeline_id == opportunity.place.pipeline_id);
                opportunity.view(pipeline)
            },
        )
    };
    app.gate.crm(&inbound, work).await
}
