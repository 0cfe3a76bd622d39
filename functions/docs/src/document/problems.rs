//! Responses of refusals, rendered from the problems that an operation can answer with.

use edge::reply::problem_details;
use edge::routes::Access;
use edge::{Code, Problem};
use serde_json::{Map, Value, json};

use super::access::{self, GATEWAY, may_come_from_gateway};
use super::components::{Schemas, reference};
use super::headers::{self, RETRY_AFTER, sometimes};
use super::prose::INDEX;

/// Member of a response that lists its codes.
pub(super) const CODES: &str = "x-codes";
const EXAMPLE_REQUEST_ID: &str = "JKJaXmPLvHcESHA=";
const EXAMPLE_FAULT_ID: &str = "err_6f1ed002ab5595859014ebf0";

/// Describes the gateway's own answer with a status.
fn of_gateway(status: u16) -> &'static str {
    &INDEX.top.parts[&format!("Gateway.{status}")]
}

/// Renders the response of a status that only the gateway answers with.
pub(super) fn gateway_response(status: u16) -> Value {
    let content = json!({ "application/json": { "schema": reference("GatewayError") } });
    json!({ "description": of_gateway(status), "headers": {}, "content": content })
}

/// Renders the response for the problems of one status, with the name that operations share it under. The codes stand
/// in an extension: as an `enum` in the schema they would give generated clients a type for each response.
pub(super) fn response(status: u16, group: &[Problem], access: Access, replays: bool) -> (String, Value) {
    let mut codes: Vec<Code> = group.iter().map(Problem::code).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut headers = access::headers(access, status, replays);
    let waits = [Code::IdempotencyInProgress, Code::RecoveryRunning];
    headers.extend(codes.iter().any(|code| waits.contains(code)).then(|| sometimes(RETRY_AFTER)));
    let from_gateway = may_come_from_gateway(access, status);
    let error = reference("Error");
    let schema = if from_gateway { json!({ "anyOf": [error, reference("GatewayError")] }) } else { error };
    let response = json!({
        "description": description(&codes, (from_gateway && GATEWAY.contains(&status)).then(|| of_gateway(status))),
        CODES: codes.iter().map(|code| code.as_str()).collect::<Vec<_>>(),
        "headers": headers::references(&headers),
        "content": {
            "application/json": { "schema": schema, "examples": examples(group, false) },
            "application/problem+json": { "schema": reference("Problem"), "examples": examples(group, true) },
        },
    });
    (format!("{}.{}", access::name_of(access), codes.into_iter().map(camel).collect::<Vec<_>>().join("Or")), response)
}

fn camel(code: Code) -> String {
    code.as_str().split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

fn description(codes: &[Code], from_gateway: Option<&str>) -> String {
    if let (&[code], None) = (codes, from_gateway) {
        return code.meaning().to_owned();
    }
    let with_code = codes.iter().map(|code| format!("- `{code}`: {}", code.meaning()));
    let lines = with_code.chain(from_gateway.map(|about| format!("- Without `code`: {about}")));
    lines.collect::<Vec<_>>().join("\n")
}

/// Examples by code, with the field or the missing thing if several have the code.
fn examples(group: &[Problem], as_problem: bool) -> Value {
    let missing = group.iter().filter(|problem| problem.code() == Code::NotFound).count();
    let example = |problem: &Problem| {
        let fault_id = (problem.code() == Code::Internal).then(|| EXAMPLE_FAULT_ID.to_owned());
        let error = problem.body(EXAMPLE_REQUEST_ID, fault_id);
        let value = if as_problem { problem_details(problem.code().status(), error) } else { error };
        let detail = match problem {
            Problem::NotFound(what) if missing > 1 => Some((*what).to_owned()),
            Problem::MergedContactNotFound(_) => Some("merged_contact".to_owned()),
            _ => problem.field(),
        };
        let name = problem.code().as_str().to_owned();
        (detail.map_or(name.clone(), |detail| format!("{name}_{detail}")), json!({ "value": value }))
    };
    group.iter().map(example).collect::<Map<_, _>>().into()
}

/// Adds the schemas of errors: of the service's own, as JSON and as a problem detail, and of the gateway's.
pub(super) fn add_schemas(schemas: &mut Schemas) {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let text = |about: &str| json!({ "type": "string", "description": about });
    let error = json!({
        "type": "object",
        "description": "A refusal or fault.",
        "required": ["error", "code", "request_id"],
        "properties": {
            "error": text("A sentence for people. It changes without notice."),
            "code": { "type": "string", "enum": codes, "description": "A stable name. Each code has one status." },
            "request_id": text("The id of the request."),
            "field": text("The field or parameter at fault, if there is one. A nested field has dots."),
            "mergedIntoId": {
                "type": "string", "format": "uuid",
                "description": "With `contact_merged`, and with `not_found` of a merged contact: the contact to use instead.",
            },
            "bookingUrl": text("With `checkout_required` only: the page on which the person books and pays."),
            "event_id": text("With 500 only: the reference for support."),
        },
    });
    let details = json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": { "type": "string", "const": "about:blank" },
            "title": text("The status in words."),
            "status": { "type": "integer" },
            "detail": text("The same as `error`."),
        },
    });
    let problem = json!({
        "description": "An error as a problem detail (RFC 9457). Sent if `Accept` names `application/problem+json`.",
        "allOf": [schemas.insert("Error", error), details],
    });
    let gateway = json!({
        "type": "object",
        "description": "An answer of the gateway in front of the service. It has no `code`: go by the status.",
        "required": ["message"],
        "properties": { "message": { "type": "string" } },
    });
    schemas.insert("Problem", problem);
    schemas.insert("GatewayError", gateway);
}
