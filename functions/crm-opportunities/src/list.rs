//! `GET /v1/crm/opportunities`: a page of a coach's opportunities, in all pipelines.

use domain::crm_list::{PageRequest, Walk};
use domain::cursor::CursorList;
use domain::opportunity::{Opportunity, OpportunityView};
use domain::pipeline::Pipeline;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;

use crate::App;

pub(crate) async fn list(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let list = CursorList { name: "opportunities", coach: &caller.coach };
    inbound.only_known_parameters()?;
    let request = PageRequest::<Walk>::parse(&list, |name| inbound.query(name))?;
    let page = app.opportunities.page(&caller.coach, &request);
    let (page, pipelines) = try_join(page, app.pipelines.all(&caller.coach)).await?;
    crm::page_reply(&list, page, |opportunity| view(&opportunity, &pipelines))
}

/// An opportunity in its own pipeline.
pub(crate) fn view(opportunity: &Opportunity, pipelines: &[Pipeline]) -> OpportunityView {
    opportunity.view(pipelines.iter().find(|pipeline| pipeline.pipeline_id == opportunity.place.pipeline_id))
}
