//! `/v1/crm/workflows`.

use domain::api_key::Permission;
use domain::workflow::Workflow;

use super::{CRM_WORKFLOWS, Operation, Schemas, crm_list};
use crate::document::crm_examples::{page, workflow};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let schema = schemas.page_of::<Workflow>("WorkflowPage");
    let answer = Answer::json(200, "Workflows, by id.", schema, &[("page", page(workflow()))]);
    let list = Operation::new("GET", "/v1/crm/workflows", "listWorkflows");
    let list = crm_list(list, Permission::WorkflowsRead, answer)
        .tag(CRM_WORKFLOWS)
        .summary("List workflows")
        .about("What sets them off and whether they are on. What they send, and with which credentials, is not part of the API.");
    vec![list]
}
