//! `/v1/crm/opportunities` and `/v1/crm/opportunities/{id}`.

use domain::api_key::Permission;
use domain::fields::Invalid;
use domain::id::InvalidUuid;
use domain::opportunity::{OpportunityDraft, OpportunityPatch, OpportunityResult, OpportunityView};
use edge::Problem;
use serde_json::json;

use super::{CRM_OPPORTUNITIES, Operation, Schemas, crm_list, of_record};
use crate::document::crm_examples::{
    CONTACT_ID, OPPORTUNITY_ID, lost_opportunity, merged_into, opportunity, page, stages,
};
use crate::document::examples::to_json;
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![list(schemas), create(schemas), update(schemas)]
}

fn list(schemas: &mut Schemas) -> Operation {
    let schema = schemas.page_of::<OpportunityView>("OpportunityPage");
    let answer = Answer::json(200, "Opportunities, by id.", schema, &[("page", page(opportunity()))])
        .link("updateOpportunity", json!({ "id": "$response.body#/data/0/id" }));
    crm_list(Operation::new("GET", "/v1/crm/opportunities", "listOpportunities"), Permission::OpportunitiesRead, answer)
        .tag(CRM_OPPORTUNITIES)
        .summary("List opportunities")
        .about("Of all the coach's pipelines. `status` is read off the stage, as the pipeline is now.")
}

fn create(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("CreateOpportunity", OpportunityDraft::schema().into_json());
    let answer = answer(schemas, 201, "The opportunity.", opportunity());
    Operation::new("POST", "/v1/crm/opportunities", "createOpportunity")
        .tag(CRM_OPPORTUNITIES)
        .crm(Permission::OpportunitiesWrite)
        .once()
        .summary("Create an opportunity")
        .about(
            "In the pipeline, and in the initial stage, that the coach has chosen for the API in the application. A request chooses \
             neither, nor owner or labels.",
        )
        .body(
            body,
            &[
                ("least", json!({ "contactId": CONTACT_ID })),
                ("most", json!({ "contactId": CONTACT_ID, "name": "Twelve weeks", "valueCents": 180_000 })),
            ],
        )
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("contactId", InvalidUuid)))
        .refuses(Problem::NotFound("contact"))
        .refuses(Problem::ContactMerged(merged_into()))
}

fn update(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("UpdateOpportunity", OpportunityPatch::schema().into_json());
    let answer = answer(schemas, 200, "The opportunity as it is now.", lost_opportunity());
    let operation = Operation::new("PATCH", "/v1/crm/opportunities/{id}", "updateOpportunity");
    of_record(operation, "The opportunity's id.", OPPORTUNITY_ID)
        .tag(CRM_OPPORTUNITIES)
        .crm(Permission::OpportunitiesWrite)
        .once()
        .summary("Change an opportunity")
        .about(
            "One of the pipeline that the coach has chosen for the API; others are not found. A lost stage needs a `lostReason`, and an \
             open stage clears it. Payments alone win: a won stage cannot be chosen, and a won opportunity takes a new name only.",
        )
        .body(
            body,
            &[
                ("move", json!({ "stage": "qualified", "valueCents": 240_000 })),
                ("lose", json!({ "stage": "lost", "lostReason": "Chose another coach." })),
                ("rename", json!({ "name": "Six months" })),
            ],
        )
        .answers(answer)
        .refuses(Problem::NotFound("opportunity"))
        .refuses(Problem::StageUnknown(stages()))
        .refuses(Problem::LostReasonRequired)
        .refuses(Problem::LostReasonNotAllowed)
        .refuses(Problem::StagePaymentControlled)
}

fn answer(schemas: &mut Schemas, status: u16, about: &'static str, opportunity: OpportunityView) -> Answer {
    let example = to_json(&OpportunityResult { opportunity });
    Answer::json(status, about, schemas.of::<OpportunityResult>(), &[("opportunity", example)])
        .link("updateOpportunity", json!({ "id": "$response.body#/opportunity/id" }))
}
