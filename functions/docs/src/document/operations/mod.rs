//! All operations, one file per noun.

mod clients;
mod documentation;
mod keys;
mod login;
mod ping;
mod records;
mod webhooks;

use domain::list::PageSize;
use serde_json::{Value, json};

use super::examples::CLIENT_ID;
use super::operation::Operation;
use super::schemas::Schemas;

const KEY: &str = "Key";
const CLIENTS: &str = "Clients";
const RECORDS: &str = "Client records";
const SIGN_IN: &str = "Sign-in";
const SETTINGS_KEYS: &str = "Settings: keys";
const SETTINGS_WEBHOOKS: &str = "Settings: webhooks";
const DOCUMENTATION: &str = "Documentation";
pub(super) const EMITTED: &str = "Emitted events";
pub(super) const COMPUTED: &str = "Computed events";

/// Names of groups, and what is in them.
pub(super) const TAGS: [(&str, &str); 9] = [
    (KEY, "Whether a key counts, and whose it is."),
    (CLIENTS, "Create, find, switch on and off."),
    (RECORDS, "When things happened in a client's life: dates and figures, never what was answered or logged."),
    (SIGN_IN, "Links that sign a client in once, and what the application verifies them with."),
    (SETTINGS_KEYS, "API keys, for a signed-in coach."),
    (SETTINGS_WEBHOOKS, "Webhook endpoints and their delivery log, for a signed-in coach."),
    (DOCUMENTATION, "This document, its reference page and the guides."),
    (EMITTED, "What an endpoint subscribes to."),
    (COMPUTED, "What the Webhook step of an automation sends."),
];

/// All operations, in the order in which a reader meets them.
pub(super) fn all(schemas: &mut Schemas) -> Vec<Operation> {
    let parts: [fn(&mut Schemas) -> Vec<Operation>; 7] = [
        ping::operations,
        clients::operations,
        records::operations,
        login::operations,
        keys::operations,
        webhooks::operations,
        documentation::operations,
    ];
    parts.into_iter().flat_map(|part| part(schemas)).collect()
}

/// Operations on one client name it in the path.
fn of_client(operation: Operation) -> Operation {
    operation.in_path("clientId", identifier(), "The client's id.", CLIENT_ID)
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
