//! `GET /v1/crm/opportunities/{id}`: one opportunity, in any pipeline.

use axum::extract::State;
use axum::response::Response;
use domain::id::OpportunityId;
use domain::opportunity::OpportunityResult;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;

use crate::App;
use crate::list::view;
use crate::update::OPPORTUNITY;

pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let id = crm::path_id(&inbound, OpportunityId::parse)?;
        let opportunity = app.opportunities.get(&caller.coach, id);
        let (found, pipelines) = try_join(opportunity, app.pipelines.all(&caller.coach)).await?;
        let found = found.ok_or(Problem::NotFound(OPPORTUNITY))?;
        Reply::ok(&OpportunityResult { opportunity: view(&found.opportunity, &pipelines) })
    };
    app.gate.crm(&inbound, work).await
}
