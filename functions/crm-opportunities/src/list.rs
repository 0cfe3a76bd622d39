//! `GET /v1/crm/opportunities`: a page of a coach's opportunities, in all pipelines.

use axum::extract::State;
use axum::response::Response;
use domain::crm_list::{PageRequest, Walk};
use domain::cursor::CursorList;
use domain::opportunity::{Opportunity, OpportunityView};
use domain::pipeline::Pipeline;
use edge::{CrmCaller, Inbound, crm};
use futures::future::try_join;

use crate::App;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |caller: CrmCaller| {
        let list = CursorList { name: "opportunities", coach: &caller.coach };
        inbound.only_parameters(&PageRequest::<Walk>::PARAMETERS)?;
        let request = PageRequest::<Walk>::parse(&list, |name| inbound.query(name))?;
        let page = app.opportunities.page(&caller.coach, &request);
        let (page, pipelines) = try_join(page, app.pipelines.all(&caller.coach)).await?;
        crm::page_reply(&list, page, |opportunity| view(&opportunity, &pipelines))
    };
    app.gate.crm(&inbound, work).await
}

/// An opportunity in its own pipeline.
pub(crate) fn view(opportunity: &Opportunity, pipelines: &[Pipeline]) -> OpportunityView {
    opportunity.view(pipelines.iter().find(|pipeline| pipeline.pipeline_id == opportunity.place.pipeline_id))
}
