//! Responses of refusals, rendered from the problems that an operation can answer with.

use std::collections::BTreeMap;

use domain::mode::Mode;
use edge::reply::problem_details;
use edge::routes::Access;
use edge::{Code, Problem};
use serde_json::{Map, Value, json};

use super::access::{self, GATEWAY, may_come_from_gateway};
use super::components::{Schemas, reference};
use super::headers::{RETRY_AFTER, sometimes};
use super::prose::INDEX;
use super::response::{Body, Cause, Example, JSON, Response};

/// The media type of a problem detail.
const PROBLEM: &str = "application/problem+json";
const EXAMPLE_REQUEST_ID: &str = "JKJaXmPLvHcESHA=";
const EXAMPLE_FAULT_ID: &str = "err_6f1ed002ab5595859014ebf0";
/// Codes that a sandbox alone answers with.
const OF_SANDBOXES: [Code; 2] = [Code::TestDataWiping, Code::TestQuota];
/// Codes of conflicts that end by waiting.
const WAITS: [Code; 3] = [Code::IdempotencyInProgress, Code::RecoveryRunning, Code::TestDataWiping];

/// Returns the codes of a deployment of this mode.
pub(super) fn codes(mode: Mode) -> impl Iterator<Item = Code> {
    Code::ALL.iter().copied().filter(move |code| mode == Mode::Test || !OF_SANDBOXES.contains(code))
}

/// Describes the gateway's own answer with a status.
fn of_gateway(status: u16) -> Cause {
    Cause { code: None, meaning: &INDEX.top.parts[&format!("Gateway.{status}")], is_shared: true }
}

/// Returns the response of a status that only the gateway answers with.
pub(super) fn gateway_response(status: u16) -> Response {
    let body = Body { media_type: JSON, schema: reference("GatewayError"), examples: Vec::new() };
    Response {
        status,
        about: String::new(),
        causes: vec![of_gateway(status)],
        headers: Vec::new(),
        bodies: vec![body],
        links: Map::new(),
        shared_as: Some("Gateway".to_owned()),
    }
}

/// Returns the response for the problems of one status. Operations share it under a name that its codes make. The codes
/// stand in an extension: as an `enum` in the schema they would give generated clients a type for each response.
pub(super) fn response(status: u16, group: &[&Problem], access: Access, replays: bool) -> Response {
    let mut codes: Vec<Code> = group.iter().map(|problem| problem.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut headers = access::headers(access, status, replays);
    headers.extend(codes.iter().any(|code| WAITS.contains(code)).then(|| sometimes(RETRY_AFTER)));
    let from_gateway = may_come_from_gateway(access, status);
    let error = reference("Error");
    let schema = if from_gateway { json!({ "anyOf": [error, reference("GatewayError")] }) } else { error };
    let shared: Vec<Code> = access::refusals(access).iter().map(Problem::code).collect();
    let cause = |code: &Code| Cause { code: Some(*code), meaning: code.meaning(), is_shared: shared.contains(code) };
    let gateway = (from_gateway && GATEWAY.contains(&status)).then(|| of_gateway(status));
    let name = codes.iter().map(|code| camel(*code)).collect::<Vec<_>>().join("Or");
    Response {
        status,
        about: String::new(),
        causes: codes.iter().map(cause).chain(gateway).collect(),
        headers,
        bodies: vec![
            Body { media_type: JSON, schema, examples: examples(group, false) },
            Body { media_type: PROBLEM, schema: reference("Problem"), examples: examples(group, true) },
        ],
        links: Map::new(),
        shared_as: Some(format!("{}.{name}", access::name_of(access))),
    }
}

fn camel(code: Code) -> String {
    code.as_str().split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Examples by code, with the field or the missing thing if several have the code.
fn examples(group: &[&Problem], as_problem: bool) -> Vec<Example> {
    let missing = group.iter().filter(|problem| problem.code() == Code::NotFound).count();
    let example = |problem: &&Problem| {
        let fault_id = (problem.code() == Code::Internal).then(|| EXAMPLE_FAULT_ID.to_owned());
        let error = problem.body(EXAMPLE_REQUEST_ID, fault_id);
        let value = if as_problem { problem_details(problem.code().status(), error) } else { error };
        let detail = match problem {
            Problem::NotFound(what) if missing > 1 => Some((*what).to_owned()),
            Problem::MergedContactNotFound(_) => Some("merged_contact".to_owned()),
            _ => problem.field(),
        };
        let name = problem.code().as_str().to_owned();
        (detail.map_or(name.clone(), |detail| format!("{name}_{detail}")), Value::from(value))
    };
    // Of several with one name, the last is shown.
    let named: BTreeMap<String, Value> = group.iter().map(example).collect();
    named.into_iter().map(|(name, value)| Example { name, value }).collect()
}

/// Adds the schemas of errors: of the service's own, as JSON and as a problem detail, and of the gateway's.
pub(super) fn add_schemas(schemas: &mut Schemas, mode: Mode) {
    let codes: Vec<&str> = codes(mode).map(Code::as_str).collect();
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
            "type": {
                "type": "string", "const": "about:blank",
                "description": "Always `about:blank`: `code` names the error.",
            },
            "title": text("The status in words."),
            "status": { "type": "integer", "description": "The HTTP status of the answer." },
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
        "properties": { "message": text("The error in words, for people.") },
    });
    schemas.insert("Problem", problem);
    schemas.insert("GatewayError", gateway);
}
