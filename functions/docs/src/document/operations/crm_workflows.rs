//! `/v1/crm/workflows`.

use super::{Operation, Schemas, crm_list, crm_page};
use crate::document::crm_examples::workflow;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let answer = crm_page(schemas, "Workflows, by id.", "WorkflowPage", workflow());
    let list = Operation::new("GET", "/v1/crm/workflows", "listWorkflows", "List workflows")
        .about("The trigger and the activation of each workflow. Steps and credentials are not part of the API.");
    vec![crm_list(list, answer)]
}
