//! `/v1/clients`.

use domain::client::{MAX_CLIENT_EMAIL_CHARS, MAX_GOALS_CHARS};
use domain::client_draft::{ClientDraft, activation_schema};
use domain::list::CLIENT_PAGE;
use edge::Problem;
use serde_json::json;

use super::{Operation, Schemas, invalid, invalid_cursor, with_client_id};
use crate::document::examples::{client, client_list, created, created_and_mailed};
use crate::document::headers::idempotency_key;
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![list(schemas), create(schemas), read(schemas), update(schemas)]
}

fn list(schemas: &mut Schemas) -> Operation {
    let answer = Answer::of(schemas, 200, "Clients, newest first.", "page", &client_list())
        .link(&["listClients"], json!({ "cursor": "$response.body#/next_cursor" }));
    Operation::new("GET", "/v1/clients", "listClients", "List clients")
        .about("Newest first. If a parameter is given twice, the first one counts.")
        .size("limit", "Clients in the answer", CLIENT_PAGE)
        .in_query(
            "active",
            json!({ "type": "string" }),
            "`true`: only active clients. Any other value is ignored, `false` included.",
        )
        .in_query(
            "email",
            json!({ "type": "string", "maxLength": MAX_CLIENT_EMAIL_CHARS }),
            "The client with this e-mail address, in any case. The filter finds a client immediately after its \
             creation, independent of `limit`, by any address that a record shows. A blank is read as `+`.",
        )
        .in_query(
            "cursor",
            json!({ "type": "string", "format": "cursor" }),
            "`next_cursor` of the previous page. Empty: the first page.",
        )
        .answers(answer)
        .refuses([invalid("email", format!("must be at most {MAX_CLIENT_EMAIL_CHARS} characters")), invalid_cursor()])
}

fn create(schemas: &mut Schemas) -> Operation {
    let answer = Answer::of(schemas, 201, "The client was created.", "mailed", &created_and_mailed())
        .example("to_deliver_yourself", &created())
        .link(
            &["readClient", "updateClient", "createLoginLink", "readCompliance", "listCheckIns", "listDailyLogs"],
            json!({ "clientId": "$response.body#/client_id" }),
        );
    let goals_rule = format!("must be at most {MAX_GOALS_CHARS} characters; it has {}", MAX_GOALS_CHARS + 381);
    Operation::new("POST", "/v1/clients", "createClient", "Create a client")
        .about(
            "Creates an account and one intake, takes a seat of the plan and of the team, links a CRM contact with the \
             same e-mail address or phone number, and emits `new_client`. The service does this once per idempotency \
             key: see [idempotency](/docs/guides/idempotency). One e-mail address has one account in the whole \
             service. Addresses are compared lower-cased, with the domain in ASCII form.",
        )
        .parameter(idempotency_key(
            false,
            "Identifies retries of one request. If you omit the header, the service derives a key from the e-mail \
             address. An explicit key stays the same if you correct the address.",
        ))
        .body(schemas, "CreateClient", ClientDraft::schema())
        .example(
            "mailed",
            json!({ "email": "grace@example.com", "full_name": "Grace Hopper", "phone": "+1 415 555 0132" }),
        )
        .example(
            "to_deliver_yourself",
            json!({
                "email": "ada@example.com", "full_name": "Ada Lovelace", "goals": "Sleep through the night.",
                "height_in": 65.5, "weight_lbs": 140, "external_id": "patient-1815", "send_welcome": false,
            }),
        )
        .replays()
        .answers(answer)
        .refuses([
            invalid("goals", goals_rule),
            Problem::IdempotencyKeyInvalid,
            Problem::IdempotencyInProgress,
            Problem::EmailTaken,
            Problem::PlanFull,
            Problem::TeamFull,
        ])
}

fn read(schemas: &mut Schemas) -> Operation {
    with_client_id(Operation::new("GET", "/v1/clients/{clientId}", "readClient", "Read a client"))
        .about("A client of another coach is 404, for example after a hand-over to a teammate.")
        .answers(Answer::of(schemas, 200, "The client.", "client", &client().to_detail()))
}

fn update(schemas: &mut Schemas) -> Operation {
    let about = "The client after the change. Setting the current value changes nothing.";
    with_client_id(Operation::new("PATCH", "/v1/clients/{clientId}", "updateClient", "Activate or deactivate a client"))
        .about(
            "The stored record holds the seat, so the request neither frees nor takes one. Deactivation revokes the \
             client's login links. Activation does not restore them.",
        )
        .body(schemas, "UpdateClient", activation_schema())
        .example("off", json!({ "is_active": false }))
        .example("on", json!({ "is_active": true }))
        .answers(Answer::of(schemas, 200, about, "client", &client().to_profile()))
        .refuses([invalid("is_active", "is required and must be a boolean")])
}
