//! `/v1/clients`.

use domain::client::{MAX_CLIENT_EMAIL_CHARS, MAX_GOALS_CHARS};
use domain::client_draft::{ClientDraft, activation_schema};
use domain::list::CLIENT_PAGE;
use edge::Problem;
use serde_json::json;

use super::{Operation, Schemas, invalid, invalid_cursor, of_client};
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
        .about("Newest first. A parameter that is given twice counts as it stands first.")
        .size("limit", "Clients in the answer", CLIENT_PAGE)
        .in_query(
            "active",
            json!({ "type": "string" }),
            "`true`: clients on the active roster alone. Any other value, `false` too, is ignored.",
        )
        .in_query(
            "email",
            json!({ "type": "string", "maxLength": MAX_CLIENT_EMAIL_CHARS }),
            "The client with this e-mail address, compared without regard to case. Looked up directly: a client made a moment ago is \
             found, whatever `limit` is. Any address that a record shows is found. A blank is read as `+`.",
        )
        .in_query("cursor", json!({ "type": "string", "format": "cursor" }), "`next_cursor` of the page before. Empty: the first page.")
        .answers(answer)
        .refuses([invalid("email", format!("must be at most {MAX_CLIENT_EMAIL_CHARS} characters")), invalid_cursor()])
}

fn create(schemas: &mut Schemas) -> Operation {
    let answer = Answer::of(schemas, 201, "The client is made.", "mailed", &created_and_mailed())
        .example("to_deliver_yourself", &created())
        .link(
            &["readClient", "updateClient", "createLoginLink", "readCompliance", "listCheckIns", "listDailyLogs"],
            json!({ "clientId": "$response.body#/client_id" }),
        );
    let goals_rule = format!("must be at most {MAX_GOALS_CHARS} characters; it has {}", MAX_GOALS_CHARS + 381);
    Operation::new("POST", "/v1/clients", "createClient", "Create a client")
        .about(
            "Makes an account, takes a seat of the plan and of the team, mints one intake, links a CRM contact with the same e-mail \
             address or phone number, and fires `new_client`. Once per idempotency key, however often it is sent: see \
             [idempotency](/docs/guides/idempotency). E-mail addresses are compared lower-cased and with the domain in ASCII form, one \
             account each over the whole service.",
        )
        .parameter(idempotency_key(
            false,
            "Makes repeats one request. Left out, a key derived from the e-mail address takes its place; an explicit one survives a \
             corrected address.",
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
    of_client(Operation::new("GET", "/v1/clients/{clientId}", "readClient", "Read a client"))
        .about("A client of another coach, handed over to a teammate for instance, is not found.")
        .answers(Answer::of(schemas, 200, "The client.", "client", &client().to_detail()))
}

fn update(schemas: &mut Schemas) -> Operation {
    let about = "The client as it is now. Setting what is set changes nothing.";
    of_client(Operation::new("PATCH", "/v1/clients/{clientId}", "updateClient", "Switch a client on or off"))
        .about(
            "Neither frees nor takes a seat: a seat is held by the record. Switching off ends the client's login links, and switching \
             on again revives none.",
        )
        .body(schemas, "UpdateClient", activation_schema())
        .example("off", json!({ "is_active": false }))
        .example("on", json!({ "is_active": true }))
        .answers(Answer::of(schemas, 200, about, "client", &client().to_profile()))
        .refuses([invalid("is_active", "is required and must be a boolean")])
}
