//! `/v1/clients`.

use domain::client::{
    ClientDetail, ClientList, ClientProfile, CreateClientResult, MAX_CLIENT_EMAIL_CHARS, MAX_GOALS_CHARS,
};
use domain::client_draft::{ClientDraft, activation_schema};
use domain::fields::Invalid;
use domain::list::CLIENT_PAGE;
use edge::Problem;
use serde_json::json;

use super::{CLIENTS, Operation, Schemas, of_client, size, size_rule};
use crate::document::examples::{client, client_list, created, created_and_mailed, to_json};
use crate::document::headers::idempotency_key;
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![list(schemas), create(schemas), read(schemas), update(schemas)]
}

fn list(schemas: &mut Schemas) -> Operation {
    let too_long = format!("must be at most {MAX_CLIENT_EMAIL_CHARS} characters");
    let answer =
        Answer::json(200, "Clients, newest first.", schemas.of::<ClientList>(), &[("page", to_json(&client_list()))])
            .link("listClients", json!({ "cursor": "$response.body#/next_cursor" }));
    Operation::new("GET", "/v1/clients", "listClients")
        .tag(CLIENTS)
        .partner()
        .summary("List clients")
        .about("Newest first. A parameter that is given twice counts as it stands first.")
        .in_query("limit", size(CLIENT_PAGE), size_rule("Clients in the answer", CLIENT_PAGE))
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
        .refuses(Problem::Invalid(Invalid::field("email", too_long)))
        .refuses(Problem::Invalid(Invalid::field("cursor", "must be the next_cursor of an earlier answer")))
}

fn create(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("CreateClient", ClientDraft::schema().into_json());
    let answer = Answer::json(
        201,
        "The client is made.",
        schemas.of::<CreateClientResult>(),
        &[("mailed", to_json(&created_and_mailed())), ("to_deliver_yourself", to_json(&created()))],
    );
    let of_client = json!({ "clientId": "$response.body#/client_id" });
    let answer = ["readClient", "updateClient", "createLoginLink", "readCompliance", "listCheckIns", "listDailyLogs"]
        .into_iter()
        .fold(answer, |answer, operation| answer.link(operation, of_client.clone()));
    let goals_rule = format!("must be at most {MAX_GOALS_CHARS} characters; it has {}", MAX_GOALS_CHARS + 381);
    Operation::new("POST", "/v1/clients", "createClient")
        .tag(CLIENTS)
        .partner()
        .summary("Create a client")
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
        .body(
            body,
            &[
                ("mailed", json!({ "email": "grace@example.com", "full_name": "Grace Hopper", "phone": "+1 415 555 0132" })),
                (
                    "to_deliver_yourself",
                    json!({
                        "email": "ada@example.com", "full_name": "Ada Lovelace", "goals": "Sleep through the night.",
                        "height_in": 65.5, "weight_lbs": 140, "external_id": "patient-1815", "send_welcome": false,
                    }),
                ),
            ],
        )
        .replays()
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("goals", goals_rule)))
        .refuses(Problem::IdempotencyKeyInvalid)
        .refuses(Problem::IdempotencyInProgress)
        .refuses(Problem::EmailTaken)
        .refuses(Problem::PlanFull)
        .refuses(Problem::TeamFull)
}

fn read(schemas: &mut Schemas) -> Operation {
    let answer =
        Answer::json(200, "The client.", schemas.of::<ClientDetail>(), &[("client", to_json(&client().to_detail()))]);
    of_client(Operation::new("GET", "/v1/clients/{clientId}", "readClient"))
        .tag(CLIENTS)
        .partner()
        .summary("Read a client")
        .about("A client of another coach, handed over to a teammate for instance, is not found.")
        .answers(answer)
        .refuses(Problem::NotFound("client"))
}

fn update(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("UpdateClient", activation_schema().into_json());
    let answer = Answer::json(
        200,
        "The client as it is now. Setting what is set changes nothing.",
        schemas.of::<ClientProfile>(),
        &[("client", to_json(&client().to_profile()))],
    );
    of_client(Operation::new("PATCH", "/v1/clients/{clientId}", "updateClient"))
        .tag(CLIENTS)
        .partner()
        .summary("Switch a client on or off")
        .about(
            "Neither frees nor takes a seat: a seat is held by the record. Switching off ends the client's login links, and switching \
             on again revives none.",
        )
        .body(body, &[("off", json!({ "is_active": false })), ("on", json!({ "is_active": true }))])
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("is_active", "is required and must be a boolean")))
        .refuses(Problem::NotFound("client"))
}
