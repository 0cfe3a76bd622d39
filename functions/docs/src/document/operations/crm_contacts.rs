//! `/v1/crm/contacts` and `/v1/crm/contacts/{id}`.

use domain::contact::{Contact, ContactDraft, ContactPatch};
use edge::Problem;
use serde_json::{Value, json};

use super::{Operation, Schemas, crm_list, crm_page, invalid, with_record_id};
use crate::document::crm_examples::{CONTACT_ID, contact, merged_into, new_contact, suppressed_contact};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![list(schemas), create(schemas), update(schemas)]
}

fn list(schemas: &mut Schemas) -> Operation {
    let answer = with_links(crm_page(schemas, "Contacts, by id.", "ContactPage", contact()), "/data/0");
    let list = Operation::new("GET", "/v1/crm/contacts", "listContacts", "List contacts")
        .about("Merged contacts are not listed.");
    crm_list(list, answer)
}

fn create(schemas: &mut Schemas) -> Operation {
    let answer = answer(schemas, 201, "The new contact, or the contact that has the address.", &new_contact());
    Operation::new("POST", "/v1/crm/contacts", "createContact", "Create or find a contact")
        .idempotent()
        .about(
            "If a contact has the e-mail address, the answer is that contact, unchanged. If a merged contact had the \
             address, the answer is the contact that remains. Addresses are compared lower-cased, with the domain in \
             ASCII form. The request sends no message, starts no workflow and creates no account.",
        )
        .body(schemas, "CreateContact", ContactDraft::schema())
        .example("contact", json!({ "name": "Grace Hopper", "email": "grace@example.com" }))
        .answers(answer)
        .refuses([invalid("email", "is required")])
}

fn update(schemas: &mut Schemas) -> Operation {
    let answer = answer(schemas, 200, "The contact after the change.", &suppressed_contact());
    let update = Operation::new("PATCH", "/v1/crm/contacts/{id}", "updateContact", "Change a contact");
    with_record_id(update, "The contact's id.", CONTACT_ID)
        .idempotent()
        .about("`doNotContact` stops all messages. The API cannot lift a suppression or give consent.")
        .body(schemas, "UpdateContact", ContactPatch::schema())
        .example("suppress", json!({ "doNotContact": true }))
        .example("rename", json!({ "name": "Rear Admiral Grace Hopper" }))
        .answers(answer)
        .refuses([Problem::NotFound("contact"), Problem::ContactMerged(merged_into())])
}

fn answer(schemas: &mut Schemas, status: u16, about: &'static str, contact: &Contact) -> Answer {
    let schema = schemas.answer_with::<Contact>("ContactResult", "contact");
    let answer = Answer::new(status, about).content("application/json", schema);
    with_links(answer.example("contact", &json!({ "contact": contact })), "/contact")
}

/// Links to the operations on a contact. `pointer` is the place of the contact in the answer.
fn with_links(answer: Answer, pointer: &str) -> Answer {
    let id = Value::from(format!("$response.body#{pointer}/id"));
    answer
        .link(&["updateContact"], json!({ "id": id }))
        .link_with_body(&["createOpportunity"], json!({}), json!({ "contactId": id }))
        .link_with_body(&["findTimes"], json!({}), json!({ "leadId": id }))
}
