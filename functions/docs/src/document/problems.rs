//! Responses of refusals, rendered from the problems that an operation can answer with.

use std::collections::BTreeMap;

use edge::reply::problem_details;
use edge::routes::Access;
use edge::{Code, Problem};
use serde_json::{Map, Value, json};

use super::headers::{self, ResponseHeader};
use super::operation::name_of;
use super::schemas::reference;
use super::share::SHARED_NAME;

/// Member of a response that lists its codes.
pub(super) const CODES: &str = "x-codes";
const JSON: &str = "application/json";
const PROBLEM_JSON: &str = "application/problem+json";
const EXAMPLE_REQUEST_ID: &str = "JKJaXmPLvHcESHA=";
const EXAMPLE_FAULT_ID: &str = "err_6f1ed002ab5595859014ebf0";

/// Groups problems by status.
pub(super) fn by_status(problems: Vec<Problem>) -> BTreeMap<u16, Vec<Problem>> {
    let mut groups: BTreeMap<u16, Vec<Problem>> = BTreeMap::new();
    for problem in problems {
        groups.entry(problem.code().status().as_u16()).or_default().push(problem);
    }
    groups
}

/// Descriptions of the gateway's own answers, by status.
pub(super) const GATEWAY: [(u16, &str); 4] = [
    (413, "From the gateway: the body is larger than 10 MB."),
    (429, "From the gateway: all callers together send too much."),
    (500, "From the gateway: the function died or ran out of time. A write may have happened."),
    (
        503,
        "From the gateway: no function could handle the request, or the answer took too long. A write may have \
         happened.",
    ),
];

/// Returns true if the gateway itself may answer with this status.
pub(super) fn may_come_from_gateway(access: Access, status: u16) -> bool {
    match access {
        // The gateway throttles public routes, and the function's concurrency is reserved.
        Access::Public => matches!(status, 429 | 503),
        Access::Session if status == 401 => true,
        _ => GATEWAY.iter().any(|(gateway_status, _)| *gateway_status == status),
    }
}

/// Renders the response of a status that only the gateway answers with.
pub(super) fn gateway_response(about: &str) -> Value {
    json!({
        SHARED_NAME: "Gateway",
        "description": about,
        "headers": {},
        "content": { JSON: { "schema": reference("GatewayError") } },
    })
}

/// Renders the response for the problems of one status. The codes stand in an extension: as an `enum` in the schema
/// they would give generated clients a type for each response.
pub(super) fn response(status: u16, group: &[Problem], access: Access, headers: &[ResponseHeader]) -> Value {
    let mut codes: Vec<Code> = group.iter().map(Problem::code).collect();
    codes.sort_unstable();
    codes.dedup();
    let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
    let by_gateway = may_come_from_gateway(access, status);
    let error = reference("Error");
    let schema = if by_gateway { json!({ "anyOf": [error, reference("GatewayError")] }) } else { error };
    let from_gateway =
        GATEWAY.iter().filter(|(gateway_status, _)| by_gateway && *gateway_status == status).map(|(_, about)| *about);
    json!({
        SHARED_NAME: shared_name(&names, access),
        "description": description(&codes, from_gateway),
        CODES: names,
        "headers": headers::references(headers),
        "content": {
            JSON: { "schema": schema, "examples": examples(group, false) },
            PROBLEM_JSON: { "schema": reference("Problem"), "examples": examples(group, true) },
        },
    })
}

/// Builds the name of a response in the components, such as `Coach.InvalidRequestOrInvalidJson`.
fn shared_name(codes: &[&str], access: Access) -> String {
    let camel = |code: &&str| -> String {
        let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
        code.split('_').map(upper).collect()
    };
    format!("{}.{}", name_of(access), codes.iter().map(camel).collect::<Vec<_>>().join("Or"))
}

fn description(codes: &[Code], from_gateway: impl Iterator<Item = &'static str>) -> String {
    let with_code = codes.iter().map(|code| format!("- `{code}`: {}", code.meaning()));
    let lines: Vec<String> = with_code.chain(from_gateway.map(|about| format!("- Without `code`: {about}"))).collect();
    match (codes, lines.as_slice()) {
        ([code], [_]) => code.meaning().to_owned(),
        _ => lines.join("\n"),
    }
}

fn examples(group: &[Problem], as_problem: bool) -> Value {
    let mut examples = Map::new();
    let missing = group.iter().filter(|problem| problem.code() == Code::NotFound).count();
    for problem in group {
        let fault_id = (problem.code() == Code::Internal).then(|| EXAMPLE_FAULT_ID.to_owned());
        let error = problem.body(EXAMPLE_REQUEST_ID, fault_id);
        let value = if as_problem { problem_details(problem.code().status(), error) } else { error };
        let mut name = problem.code().as_str().to_owned();
        if let Some(field) = problem.field() {
            name = format!("{name}_{field}");
        }
        if let (Problem::NotFound(what), 2..) = (problem, missing) {
            name = format!("{name}_{what}");
        }
        examples.insert(name, json!({ "value": value }));
    }
    Value::Object(examples)
}

/// Schema of every error of the service.
pub(super) fn error_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "description": "A refusal or fault.",
        "required": ["error", "code", "request_id"],
        "properties": {
            "error": { "type": "string", "description": "A sentence for people. It changes without notice." },
            "code": { "type": "string", "enum": codes, "description": "A stable name. Each code has one status." },
            "request_id": { "type": "string", "description": "The id of the request." },
            "field": {
                "type": "string",
                "description": "The field or parameter at fault, if there is one. A nested field has dots.",
            },
            "mergedIntoId": {
                "type": "string", "format": "uuid",
                "description": "With `contact_merged` only: the contact to use instead.",
            },
            "bookingUrl": {
                "type": "string",
                "description": "With `checkout_required` only: the page on which the person books and pays.",
            },
            "event_id": { "type": "string", "description": "With 500 only: the reference for support." },
        },
    })
}

/// Schema of every error as a problem detail (RFC 9457).
pub(super) fn problem_schema() -> Value {
    json!({
        "description": "An error as a problem detail (RFC 9457). Sent if `Accept` names `application/problem+json`.",
        "allOf": [
            reference("Error"),
            {
                "type": "object",
                "required": ["type", "title", "status", "detail"],
                "properties": {
                    "type": { "type": "string", "const": "about:blank" },
                    "title": { "type": "string", "description": "The status in words." },
                    "status": { "type": "integer" },
                    "detail": { "type": "string", "description": "The same as `error`." },
                },
            },
        ],
    })
}

/// Schema of the gateway's own answers.
pub(super) fn gateway_schema() -> Value {
    json!({
        "type": "object",
        "description": "An answer of the gateway in front of the service. It has no `code`: go by the status.",
        "required": ["message"],
        "properties": { "message": { "type": "string" } },
    })
}
