//! All operations, one file per noun.

mod clients;
mod crm_bookings;
mod crm_contacts;
mod crm_opportunities;
mod crm_workflows;
mod documentation;
mod keys;
mod login;
mod ping;
mod records;
mod webhooks;

use domain::api_key::Permission;
use domain::fields::Invalid;
use domain::id::InvalidUuid;
use domain::list::{CRM_PAGE, PageSize};
use edge::Problem;
use serde_json::{Value, json};

use super::examples::CLIENT_ID;
use super::operation::{Answer, Operation};
use super::schemas::Schemas;

const KEY: &str = "Key";
const CLIENTS: &str = "Clients";
const RECORDS: &str = "Client records";
const SIGN_IN: &str = "Sign-in";
const CRM_CONTACTS: &str = "CRM: contacts";
const CRM_OPPORTUNITIES: &str = "CRM: opportunities";
const CRM_BOOKINGS: &str = "CRM: bookings";
const CRM_WORKFLOWS: &str = "CRM: workflows";
const SETTINGS_KEYS: &str = "Settings: keys";
const SETTINGS_WEBHOOKS: &str = "Settings: webhooks";
const DOCUMENTATION: &str = "Documentation";
pub(super) const EMITTED: &str = "Emitted events";
pub(super) const COMPUTED: &str = "Computed events";

/// Names of groups, and what is in them.
pub(super) const TAGS: [(&str, &str); 13] = [
    (KEY, "Whether a key counts, and whose it is."),
    (CLIENTS, "Create, find, switch on and off."),
    (RECORDS, "When things happened in a client's life: dates and figures, never what was answered or logged."),
    (SIGN_IN, "Links that sign a client in once, and what the application verifies them with."),
    (CRM_CONTACTS, "Who is in the coach's address book. With a CRM key, as all of the CRM."),
    (CRM_OPPORTUNITIES, "What a contact may come to buy, and where that stands in the coach's pipeline."),
    (CRM_BOOKINGS, "Calendars, the times that are free, and what is booked."),
    (CRM_WORKFLOWS, "What sets the coach's workflows off, and whether they are on."),
    (SETTINGS_KEYS, "API keys, for a signed-in coach."),
    (SETTINGS_WEBHOOKS, "Webhook endpoints and their delivery log, for a signed-in coach."),
    (DOCUMENTATION, "This document, its reference page and the guides."),
    (EMITTED, "What an endpoint subscribes to."),
    (COMPUTED, "What the Webhook step of an automation sends."),
];

/// All operations, in the order in which a reader meets them.
pub(super) const PARTS: [fn(&mut Schemas) -> Vec<Operation>; 11] = [
    ping::operations,
    clients::operations,
    records::operations,
    login::operations,
    crm_contacts::operations,
    crm_opportunities::operations,
    crm_bookings::operations,
    crm_workflows::operations,
    keys::operations,
    webhooks::operations,
    documentation::operations,
];

/// Operations on one client name it in the path.
fn of_client(operation: Operation) -> Operation {
    operation.in_path("clientId", identifier(), "The client's id.", CLIENT_ID)
}

/// Operations on one record of the CRM name it in the path.
fn of_record(operation: Operation, about: &str, example: &str) -> Operation {
    operation.in_path("id", uuid(), about, example).refuses(Problem::Invalid(Invalid::field("id", InvalidUuid)))
}

/// A list of the CRM.
fn crm_list(operation: Operation, permission: Permission, answer: Answer) -> Operation {
    let next = json!({ "cursor": "$response.body#/next_cursor" });
    let answer = answer.link(operation.id, next);
    operation
        .crm(permission)
        .in_query("limit", size(CRM_PAGE), size_rule("Records in the answer", CRM_PAGE))
        .in_query(
            "cursor",
            json!({ "type": "string", "pattern": "^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})?$" }),
            "`next_cursor` of the page before, a UUID: records with greater ids. It may be gone meanwhile. Pages are read as things are \
             then, not as they were at the first page. Empty: the first page.",
        )
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("cursor", InvalidUuid)))
}

fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

/// What may stand for an id in a path: any text. One that is no id names nothing.
fn identifier() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

/// A size that is never refused.
fn size(page: PageSize) -> Value {
    json!({ "type": ["integer", "string"], "default": page.default })
}

/// How a size is read.
fn size_rule(what: &str, page: PageSize) -> String {
    format!(
        "{what}: 1 to {max}. Never refused: more counts as {max}, and anything that is not digits of a positive integer as {default}.",
        max = page.max,
        default = page.default
    )
}
