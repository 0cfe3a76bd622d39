//! `/settings/workspace`, `/settings/audit` and `/settings/event-types`.

use domain::audit::AuditCursor;
use domain::list::AUDIT_PAGE;
use serde_json::json;

use super::{Operation, Schemas, invalid_cursor};
use crate::document::examples::{audit_page, event_catalog, workspace};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![read_workspace(schemas), list_event_types(schemas), list_audit(schemas)]
}

fn read_workspace(schemas: &mut Schemas) -> Operation {
    let about = "The workspace.";
    Operation::new("GET", "/settings/workspace", "readWorkspace", "Read the workspace")
        .about(
            "What the workspace may use, and how many keys and endpoints it has. A partner key needs `partner_api`; a \
             CRM key needs `pro_crm`, `gym` and a configured CRM.",
        )
        .answers(Answer::of(schemas, 200, about, "workspace", &workspace()))
}

fn list_event_types(schemas: &mut Schemas) -> Operation {
    Operation::new("GET", "/settings/event-types", "listEventTypes", "List event types")
        .about(
            "Every event with the JSON Schema of its `data` and an example for each payload mode. The example here is \
             shortened to one event.",
        )
        .answers(Answer::of(schemas, 200, "All events, emitted ones first.", "event_types", &event_catalog()))
}

fn list_audit(schemas: &mut Schemas) -> Operation {
    let answer = Answer::of(schemas, 200, "Changes, newest first.", "page", &audit_page())
        .link(&["listAudit"], json!({ "cursor": "$response.body#/next_cursor" }));
    Operation::new("GET", "/settings/audit", "listAudit", "Read the audit trail")
        .about(
            "Who changed keys and endpoints, and who ordered deliveries. A page before the end may have fewer lines \
             than `limit`.",
        )
        .size("limit", "Lines in the answer", AUDIT_PAGE)
        .in_query(
            "cursor",
            json!({ "type": "string", "pattern": AuditCursor::PATTERN }),
            "`next_cursor` of the page before. Empty: the first page.",
        )
        .answers(answer)
        .refuses([invalid_cursor()])
}
