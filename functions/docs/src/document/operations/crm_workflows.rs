//! `/v1/crm/workflows`.

use super::{Operation, Schemas, crm_list, crm_page};
use crate::document::crm_examples::workflow;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    let answer = crm_page(schemas, "Workflows, by id.", "WorkflowPage", workflow());
    let list = Operation::new("GET", "/v1/crm/workflows", "listWorkflows", "List workflows")
        .about("What sets them off and whether they are on. What they send, and with which credentials, is not part of the API.");
    vec![crm_list(list, answer)]
}
