//! `GET /v1/crm/opportunities/{id}`: one opportunity, in any pipeline.

use domain::id::OpportunityId;
use domain::id_kind::IdKind;
use domain::opportunity::OpportunityResult;
use edge::{CrmCaller, Inbound, Problem, Reply, crm};
use futures::future::try_join;

use crate::App;
use crate::list::view;

pub(crate) async fn read(app: App, caller: CrmCaller, inbound: Inbound) -> Result<Reply, Problem> {
    let id = crm::path_id(&inbound, OpportunityId::parse)?;
    let opportunity = app.opportunities.get(&caller.coach, id);
    let (found, pipelines) = try_join(opportunity, app.pipelines.all(&caller.coach)).await?;
    let found = found.ok_or(Problem::not_found(IdKind::Opportunity))?;
    Reply::ok(&OpportunityResult { opportunity: view(&found.opportunity, &pipelines) })
}
