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
mod portal;
mod records;
mod settings;
mod webhooks;

use domain::fields::Invalid;
use domain::id::InvalidUuid;
use domain::list::{CRM_PAGE, CrmPage};
use edge::Problem;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::examples::CLIENT_ID;
use super::operation::{Answer, Operation};
use super::schemas::Schemas;

pub(super) const EMITTED: &str = "Emitted events";
pub(super) const COMPUTED: &str = "Computed events";

/// A group of operations: one tag of the document.
pub(super) struct Group {
    pub(super) tag: &'static str,
    pub(super) about: &'static str,
    pub(super) operations: fn(&mut Schemas) -> Vec<Operation>,
}

/// All groups, in the order of the reference page.
pub(super) const GROUPS: [Group; 13] = [
    group("Key", "Check a key and its coach.", ping::operations),
    group("Clients", "Create, find, activate and deactivate clients.", clients::operations),
    group(
        "Client records",
        "Compliance, check-ins and daily logs: dates and figures, never answers or logged values.",
        records::operations,
    ),
    group(
        "Sign-in",
        "Single-use links that sign a client in, and the keys with which the application verifies a sign-in.",
        login::operations,
    ),
    group("CRM: contacts", "The coach's contacts. All CRM operations need a CRM key.", crm_contacts::operations),
    group(
        "CRM: opportunities",
        "Possible sales to a contact, and their stage in the coach's pipeline.",
        crm_opportunities::operations,
    ),
    group("CRM: bookings", "Calendars, free times and bookings.", crm_bookings::operations),
    group(
        "CRM: workflows",
        "The triggers of the coach's workflows, and whether the workflows are active.",
        crm_workflows::operations,
    ),
    group(
        "Settings: workspace",
        "The workspace, its events and its audit trail, for a signed-in coach.",
        settings::operations,
    ),
    group("Settings: keys", "API keys, for a signed-in coach.", keys::operations),
    group(
        "Settings: webhooks",
        "Webhook endpoints and their delivery log, for a signed-in coach.",
        webhooks::operations,
    ),
    group("Portal", "The page on which a signed-in coach manages keys and webhooks.", portal::operations),
    group("Documentation", "This document, its reference page and the guides.", documentation::operations),
];

const fn group(tag: &'static str, about: &'static str, operations: fn(&mut Schemas) -> Vec<Operation>) -> Group {
    Group { tag, about, operations }
}

/// Renders the tags of all groups and of the two kinds of events.
pub(super) fn tags() -> Value {
    let events = [
        (EMITTED, "Events that an endpoint subscribes to."),
        (COMPUTED, "Events that the Webhook step of an automation sends."),
    ];
    let all = GROUPS.iter().map(|group| (group.tag, group.about)).chain(events);
    all.map(|(name, about)| json!({ "name": name, "description": about })).collect()
}

/// Adds the id of a client in the path, and the refusal of an unknown id.
fn with_client_id(operation: Operation) -> Operation {
    operation.in_path("clientId", identifier(), "The client's id.", CLIENT_ID).refuses([Problem::NotFound("client")])
}

/// Adds the id of a CRM record in the path, and the refusal of an invalid id.
fn with_record_id(operation: Operation, about: &str, example: &str) -> Operation {
    operation.in_path("id", uuid(), about, example).refuses([invalid("id", InvalidUuid)])
}

/// Adds the parameters, the answer and the refusals of a CRM list.
fn crm_list(operation: Operation, answer: Answer) -> Operation {
    let answer = answer.link(&[operation.id], json!({ "cursor": "$response.body#/next_cursor" }));
    operation
        .size("limit", "Records in the answer", CRM_PAGE)
        .in_query(
            "cursor",
            json!({ "type": "string", "pattern": "^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})?$" }),
            "`next_cursor` of the previous page, a UUID. The page has the records with greater ids, as they are at the \
             time of the request. The record of the cursor may be gone. Empty: the first page.",
        )
        .answers(answer)
        .refuses([invalid("cursor", InvalidUuid)])
}

/// Builds the answer of a CRM list. `name` is the name of its schema.
fn crm_page<T: ToSchema + Serialize>(schemas: &mut Schemas, about: &'static str, name: &str, record: T) -> Answer {
    Answer::new(200, about)
        .content("application/json", schemas.page_of::<T>(name))
        .example("page", &CrmPage { data: vec![record], next_cursor: None })
}

/// Refusal of a field or parameter.
fn invalid(field: &str, rule: impl std::fmt::Display) -> Problem {
    Problem::Invalid(Invalid::field(field, rule))
}

/// Refusal of a cursor.
fn invalid_cursor() -> Problem {
    invalid("cursor", "must be the next_cursor of an earlier answer")
}

fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

/// Schema of an id in a path: any text. An invalid id is 404, like an unknown one.
fn identifier() -> Value {
    json!({ "type": "string", "minLength": 1 })
}
