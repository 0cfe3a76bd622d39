//! Rules by credential: the security, refusals and headers of a route.

use domain::api_key::Permission;
use domain::rate_limit::{Limit, Quota};
use edge::Problem;
use edge::routes::Access;
use serde_json::{Value, json};

use super::examples::at;
use super::headers::{
    AUTHENTICATE, MODE, PAYLOAD_MISMATCH, RATE_LIMIT, RATE_LIMIT_POLICY, REPLAY, REQUEST_ID, RETRY_AFTER, always,
    sometimes,
};
use super::prose::INDEX;

/// Statuses of responses that are recorded and replayed.
const RECORDED: [u16; 6] = [200, 201, 202, 400, 404, 409];

/// Statuses of the gateway's own answers.
pub(super) const GATEWAY: [u16; 4] = [413, 429, 500, 503];

/// Returns true if the gateway itself may answer with this status.
pub(super) fn may_come_from_gateway(access: Access, status: u16) -> bool {
    match access {
        // The gateway throttles public routes, and the function's concurrency is reserved.
        Access::Public => matches!(status, 429 | 503),
        Access::Session if status == 401 => true,
        _ => GATEWAY.contains(&status),
    }
}

/// Returns the first part of the names of shared responses.
pub(super) fn name_of(access: Access) -> &'static str {
    match access {
        Access::Partner(_) => "Partner",
        Access::Crm(_) => "Crm",
        Access::Events => "Reader",
        Access::AnyKey | Access::Assistant => "Holder",
        Access::Sandbox => "Tester",
        Access::Session => "Coach",
        Access::Public => "Anyone",
    }
}

/// The security schemes.
pub(crate) const SCHEMES: [&str; 5] = ["apiKey", "apiKeyHeader", "crmKey", "crmKeyHeader", "coachSession"];

/// Renders the components of the security schemes.
pub(super) fn security_schemes() -> Value {
    let bearer = json!({ "type": "http", "scheme": "bearer" });
    let header = json!({ "type": "apiKey", "in": "header", "name": "X-Api-Key" });
    let mut schemes = json!({
        "apiKey": bearer, "apiKeyHeader": header, "crmKey": bearer, "crmKeyHeader": header,
        "coachSession": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
    });
    for (name, scheme) in schemes.as_object_mut().into_iter().flatten() {
        scheme["description"] = json!(INDEX.top.parts[name]);
    }
    schemes
}

/// Renders the security of a route.
pub(super) fn security(access: Access) -> Value {
    match access {
        Access::Partner(permission) => {
            let needed: Vec<&str> = permission.into_iter().map(Permission::as_str).collect();
            json!([{ "apiKey": needed }, { "apiKeyHeader": needed }])
        }
        Access::Crm(permission) => {
            let needed = [permission.as_str()];
            json!([{ "crmKey": needed }, { "crmKeyHeader": needed }])
        }
        Access::Events | Access::AnyKey | Access::Sandbox | Access::Assistant => {
            json!([{ "apiKey": [] }, { "apiKeyHeader": [] }, { "crmKey": [] }, { "crmKeyHeader": [] }])
        }
        Access::Session => json!([{ "coachSession": [] }]),
        Access::Public => json!([]),
    }
}

/// Returns the refusals that any route with this credential can answer with.
pub(super) fn refusals(access: Access) -> Vec<Problem> {
    let unknown_key = Problem::Unauthenticated("This API key is unknown, revoked or expired.");
    let beyond = |limit: Limit| Problem::RateLimited(Quota::after(limit, limit.per_minute(), at("09:30:18.000")));
    let mut refusals = match access {
        Access::Public => return Vec::new(),
        Access::Partner(permission) => {
            let mut refusals = vec![unknown_key, Problem::WrongScope { needed: "partner" }];
            refusals.extend(permission.map(Problem::PermissionMissing));
            refusals.extend([Problem::NotEntitled, beyond(Limit::Requests)]);
            refusals
        }
        Access::Crm(permission) => vec![
            unknown_key,
            Problem::WrongScope { needed: "crm" },
            Problem::CrmNotEntitled,
            Problem::GymNotEnabled,
            Problem::CrmNotConfigured,
            Problem::PermissionMissing(permission),
            beyond(Limit::Requests),
        ],
        Access::Events => vec![
            unknown_key,
            Problem::NotEntitled,
            Problem::CrmNotEntitled,
            Problem::GymNotEnabled,
            Problem::EventsNotAllowed,
            beyond(Limit::Requests),
        ],
        Access::AnyKey | Access::Sandbox | Access::Assistant => vec![unknown_key, beyond(Limit::Requests)],
        Access::Session => vec![
            Problem::NoSession,
            Problem::SessionWithoutCoach,
            beyond(Limit::SettingsRequests),
            Problem::WorkspaceUnknown,
        ],
    };
    refusals.extend([Problem::BodyTooLarge, Problem::internal("", "")]);
    refusals
}

/// Returns a header that every answer of the service has. The gateway's own answers lack it.
fn of_service(name: &str, access: Access, status: u16) -> String {
    if may_come_from_gateway(access, status) { sometimes(name) } else { always(name) }
}

/// Returns the header that a sandbox adds to every answer.
pub(super) fn header_of_sandbox(access: Access, status: u16) -> String {
    of_service(MODE, access, status)
}

/// Returns the headers that follow from the credential and the status. A response may be a replay if `replays`.
pub(super) fn headers(access: Access, status: u16, replays: bool) -> Vec<String> {
    // The count is unknown if the write that counts has failed.
    let unless_gateway = |name| of_service(name, access, status);
    let mut headers = vec![unless_gateway(REQUEST_ID)];
    match (access, status) {
        (_, 401) => headers.push(always(AUTHENTICATE)),
        // A session without a coach is not counted.
        (Access::Session, 403) | (Access::Public, _) => {}
        _ => headers.extend([unless_gateway(RATE_LIMIT), unless_gateway(RATE_LIMIT_POLICY)]),
    }
    if matches!(status, 429 | 503) {
        headers.push(unless_gateway(RETRY_AFTER));
    }
    if replays && RECORDED.contains(&status) {
        headers.push(sometimes(REPLAY));
        // The CRM and the settings answer another payload with 409.
        headers.extend(matches!(access, Access::Partner(_)).then(|| sometimes(PAYLOAD_MISMATCH)));
    }
    headers
}
