//! `/v1/crm/opportunities` and `/v1/crm/opportunities/{id}`.

use domain::id::InvalidUuid;
use domain::opportunity::{OpportunityDraft, OpportunityPatch, OpportunityResult, OpportunityView};
use edge::Problem;
use serde_json::json;

use super::{Operation, Schemas, crm_list, crm_page, invalid, with_record_id};
use crate::document::crm_examples::{CONTACT_ID, OPPORTUNITY_ID, lost_opportunity, merged_into, opportunity, stages};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![list(schemas), create(schemas), update(schemas)]
}

fn list(schemas: &mut Schemas) -> Operation {
    let answer = crm_page(schemas, "Opportunities, by id.", "OpportunityPage", opportunity())
        .link(&["updateOpportunity"], json!({ "id": "$response.body#/data/0/id" }));
    let list = Operation::new("GET", "/v1/crm/opportunities", "listOpportunities", "List opportunities").about(
        "The opportunities of all pipelines of the coach. `status` follows from the stage in the current pipeline.",
    );
    crm_list(list, answer)
}

fn create(schemas: &mut Schemas) -> Operation {
    Operation::new("POST", "/v1/crm/opportunities", "createOpportunity", "Create an opportunity")
        .idempotent()
        .about(
            "The opportunity starts in the pipeline and the initial stage that the coach chose for the API. A request \
             cannot choose pipeline, stage, owner or labels.",
        )
        .body(schemas, "CreateOpportunity", OpportunityDraft::schema())
        .example("least", json!({ "contactId": CONTACT_ID }))
        .example("most", json!({ "contactId": CONTACT_ID, "name": "Twelve weeks", "valueCents": 180_000 }))
        .answers(answer(schemas, 201, "The opportunity.", opportunity()))
        .refuses([
            invalid("contactId", InvalidUuid),
            Problem::NotFound("contact"),
            Problem::ContactMerged(merged_into()),
        ])
}

fn update(schemas: &mut Schemas) -> Operation {
    let path = "/v1/crm/opportunities/{id}";
    let update = Operation::new("PATCH", path, "updateOpportunity", "Change an opportunity");
    with_record_id(update, "The opportunity's id.", OPPORTUNITY_ID)
        .idempotent()
        .about(
            "An opportunity of another pipeline is 404. A lost stage needs a `lostReason`; an open stage clears it. \
             Only payments win an opportunity: a request cannot choose a won stage, and can change only the name of a \
             won opportunity.",
        )
        .body(schemas, "UpdateOpportunity", OpportunityPatch::schema())
        .example("move", json!({ "stage": "qualified", "valueCents": 240_000 }))
        .example("lose", json!({ "stage": "lost", "lostReason": "Chose another coach." }))
        .example("rename", json!({ "name": "Six months" }))
        .answers(answer(schemas, 200, "The opportunity after the change.", lost_opportunity()))
        .refuses([
            Problem::NotFound("opportunity"),
            Problem::StageUnknown(stages()),
            Problem::LostReasonRequired,
            Problem::LostReasonNotAllowed,
            Problem::StagePaymentControlled,
        ])
}

fn answer(schemas: &mut Schemas, status: u16, about: &'static str, opportunity: OpportunityView) -> Answer {
    Answer::of(schemas, status, about, "opportunity", &OpportunityResult { opportunity })
        .link(&["updateOpportunity"], json!({ "id": "$response.body#/opportunity/id" }))
}
