//! `/v1/crm/contacts` and `/v1/crm/contacts/{id}`.

use domain::api_key::Permission;
use domain::contact::{Contact, ContactDraft, ContactPatch};
use domain::fields::Invalid;
use edge::Problem;
use serde_json::{Value, json};

use super::{CRM_CONTACTS, Operation, Schemas, crm_list, of_record};
use crate::document::crm_examples::{CONTACT_ID, contact, merged_into, new_contact, page, suppressed_contact};
use crate::document::examples::to_json;
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![list(schemas), create(schemas), update(schemas)]
}

fn list(schemas: &mut Schemas) -> Operation {
    let answer =
        Answer::json(200, "Contacts, by id.", schemas.page_of::<Contact>("ContactPage"), &[("page", page(contact()))]);
    let answer = what_next(answer, "/data/0");
    crm_list(Operation::new("GET", "/v1/crm/contacts", "listContacts"), Permission::ContactsRead, answer)
        .tag(CRM_CONTACTS)
        .summary("List contacts")
        .about("Contacts that were merged into another are not among them.")
}

fn create(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("CreateContact", ContactDraft::schema().into_json());
    let answer = answer(schemas, 201, "The contact: a new one, or the one that has the address.", &new_contact());
    Operation::new("POST", "/v1/crm/contacts", "createContact")
        .tag(CRM_CONTACTS)
        .crm(Permission::ContactsWrite)
        .once()
        .summary("Create a contact, or find it")
        .about(
            "By e-mail address, compared lower-cased and with the domain in ASCII form. A contact that has it is answered as it is: its name, its preferences and its \
             suppression stay. If a contact had it that was merged into another, that other one is answered. Nothing is sent to anybody, no workflow begins, and no account is made.",
        )
        .body(body, &[("contact", json!({ "name": "Grace Hopper", "email": "grace@example.com" }))])
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("email", "is required")))
}

fn update(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("UpdateContact", ContactPatch::schema().into_json());
    let answer = answer(schemas, 200, "The contact as it is now.", &suppressed_contact());
    of_record(Operation::new("PATCH", "/v1/crm/contacts/{id}", "updateContact"), "The contact's id.", CONTACT_ID)
        .tag(CRM_CONTACTS)
        .crm(Permission::ContactsWrite)
        .once()
        .summary("Change a contact")
        .about(
            "`doNotContact` stops all messages, and is not taken back here: neither suppression nor consent is the API's to lift or to \
             give.",
        )
        .body(
            body,
            &[("suppress", json!({ "doNotContact": true })), ("rename", json!({ "name": "Rear Admiral Grace Hopper" }))],
        )
        .answers(answer)
        .refuses(Problem::NotFound("contact"))
        .refuses(Problem::ContactMerged(merged_into()))
}

fn answer(schemas: &mut Schemas, status: u16, about: &'static str, example: &Contact) -> Answer {
    let example = json!({ "contact": to_json(example) });
    let schema = schemas.answer_with::<Contact>("ContactResult", "contact");
    what_next(Answer::json(status, about, schema, &[("contact", example)]), "/contact")
}

/// What can be done with the contact at this place of an answer.
fn what_next(answer: Answer, place: &str) -> Answer {
    let id = Value::from(format!("$response.body#{place}/id"));
    answer
        .link("updateContact", json!({ "id": id }))
        .link_with_body("createOpportunity", json!({}), json!({ "contactId": id }))
        .link_with_body("findTimes", json!({}), json!({ "leadId": id }))
}
