//! Operations for a signed-in coach.

use domain::audit::AuditPage;
use domain::delivery::{
    ACTIVITY_PARAMETER, Activity, ActivityPeriod, DeliveryDetail, DeliveryPage, DeliveryStatus, ENDPOINT_FILTER,
    MAX_ACTIVITY_HOURS, MIN_ACTIVITY_HOURS, Ordered, Recovered, RecoveryRequest,
};
use domain::endpoint::{EndpointChange, EndpointDraft, EndpointList, EndpointView, NewEndpoint};
use domain::event::{EventCatalog, EventName};
use domain::key::{KeyChange, KeyDraft, KeyList, KeyView, NewKey, ROTATION_OVERLAP};
use domain::list::{AUDIT_PAGE, DELIVERY_PAGE, KEY_PAGE, REQUEST_PAGE};
use domain::mode::Mode;
use domain::request_log::{
    KEY_FILTER, MAX_SUMMARY_HOURS, MIN_SUMMARY_HOURS, RequestMethod, RequestPage, RequestSummary, SUMMARY_PARAMETER,
    StatusFilter, SummaryPeriod,
};
use domain::test_event;
use domain::time::TIME_RULE;
use domain::workspace::WorkspaceView;
use edge::routes::served;
use edge::{Code, Problem};
use serde_json::json;

use crate::document::answer::Answer;
use crate::document::examples::at;
use crate::document::operation::{Operation, invalid, matching, or_empty};
use crate::document::problems::codes;

pub(super) fn operations(mode: Mode) -> Vec<Operation> {
    [workspace(mode), keys(), endpoints(), deliveries()].into_iter().flatten().collect()
}

fn workspace(mode: Mode) -> Vec<Operation> {
    let mut catalog = EventCatalog::all();
    catalog.data.truncate(1);
    vec![
        Operation::new("GET", "/settings/workspace", "readWorkspace").answers(Answer::of::<WorkspaceView>(200)),
        Operation::new("GET", "/settings/event-types", "listEventTypes")
            .answers(Answer::of::<EventCatalog>(200).example("one_event", json!(catalog))),
        Operation::new("GET", "/settings/audit", "listAudit")
            .size("limit", "Lines in the answer", AUDIT_PAGE)
            .cursor()
            .answers(Answer::of::<AuditPage>(200)),
        request_log(
            Operation::new("GET", "/settings/requests", "listRequests")
                .filter(KEY_FILTER, matching("^key_[0-9a-f]{32}$"))
                .refuses([invalid(KEY_FILTER, "must be key_ and 32 lower-case hexadecimal digits")]),
            mode,
        ),
        Operation::new("GET", "/settings/requests/summary", "summarizeRequests")
            .in_query(
                SUMMARY_PARAMETER,
                or_empty(json!({
                    "type": "integer", "minimum": MIN_SUMMARY_HOURS, "maximum": MAX_SUMMARY_HOURS,
                    "default": MIN_SUMMARY_HOURS,
                })),
            )
            .answers(Answer::of::<RequestSummary>(200))
            .refuses_unknown("days")
            .refuses([invalid(SUMMARY_PARAMETER, SummaryPeriod::rule())]),
    ]
}

fn keys() -> Vec<Operation> {
    let works_until = at("08:00:00.000") + ROTATION_OVERLAP;
    let replaced = json!({
        "status": "replaced", "replaced_by": "key_0d5b2a7c9e1f4b6a8c3d7e9f1a2b4c6d", "works_until": works_until,
        "expires_at": works_until,
    });
    let revoked = json!({ "status": "revoked", "revoked_at": at("10:00:00.000") });
    let events = json!({ "types": ["new_client", "check_in_submitted"], "payload_mode": "identifiers" });
    let past = || invalid("expires_at", "must be in the future");
    let no_events = || invalid("events.types", "must name at least one event");
    vec![
        Operation::new("GET", "/settings/keys", "listKeys")
            .size("limit", "Keys in the answer", KEY_PAGE)
            .filter("status", json!({ "type": "string", "enum": ["live"] }))
            .cursor()
            .answers(Answer::of::<KeyList>(200).example("keys", json!({ "keys": [{}, replaced] })))
            .refuses([invalid("status", "must be live, or left out")]),
        Operation::new("POST", "/settings/keys", "createKey")
            .body(KeyDraft::schema())
            .example("partner", json!({ "name": "Booking desk", "scope": "partner" }))
            .example(
                "crm",
                json!({
                    "name": "Lead forms", "scope": "crm", "permissions": ["contacts.read", "contacts.write"],
                    "expires_at": "2126-01-01T00:00:00Z",
                }),
            )
            .example(
                "events",
                json!({
                    "name": "Practice software", "scope": "partner", "permissions": ["clients.read"], "events": events,
                }),
            )
            .answers(Answer::of::<NewKey>(201))
            .refuses([
                past(),
                invalid("permissions", "must name at least one permission for a key of scope crm"),
                no_events(),
                Problem::KeyLimit,
            ]),
        Operation::new("PATCH", "/settings/keys/{id}", "updateKey")
            .body(KeyChange::schema())
            .example("name", json!({ "name": "Front desk" }))
            .example("expiry", json!({ "expires_at": "2126-01-01T00:00:00Z" }))
            .example("never", json!({ "expires_at": null }))
            .example("events", json!({ "events": events }))
            .example("no_events", json!({ "events": null }))
            .answers(Answer::of::<KeyView>(200).example("events", json!({ "events": events })))
            .refuses([past(), no_events(), Problem::KeyRevoked, Problem::KeyNotActive]),
        Operation::new("POST", "/settings/keys/{id}/rotate", "rotateKey").answers(Answer::of::<NewKey>(201)).refuses([
            Problem::KeyLimit,
            Problem::KeyNotLive,
            Problem::KeyNotActive,
        ]),
        Operation::new("DELETE", "/settings/keys/{id}", "revokeKey")
            .answers(Answer::of::<KeyView>(200).example("revoked", revoked)),
    ]
}

fn endpoints() -> Vec<Operation> {
    let invalid_url = || invalid("url", "must begin with https://");
    let created = json!({
        "url": "https://hooks.example.com/coaching", "events": ["new_client", "check_in_submitted"],
        "payload_mode": "identifiers", "description": "Practice software",
    });
    vec![
        Operation::new("GET", "/settings/webhooks", "listEndpoints").answers(Answer::of::<EndpointList>(200)),
        Operation::new("POST", "/settings/webhooks", "createEndpoint")
            .body(EndpointDraft::schema())
            .example("endpoint", created)
            .answers(Answer::of::<NewEndpoint>(201))
            .refuses([invalid_url(), Problem::EndpointLimit]),
        Operation::new("GET", "/settings/webhooks/{id}", "readEndpoint").answers(Answer::of::<EndpointView>(200)),
        Operation::new("PATCH", "/settings/webhooks/{id}", "updateEndpoint")
            .body(EndpointChange::schema())
            .example("off", json!({ "enabled": false }))
            .example("moved", json!({ "url": "https://hooks.example.com/v2", "description": null }))
            .answers(Answer::of::<EndpointView>(200))
            .refuses([invalid_url(), Problem::EndpointGone]),
        Operation::new("DELETE", "/settings/webhooks/{id}", "deleteEndpoint").answers(Answer::of::<EndpointView>(200)),
        Operation::new("POST", "/settings/webhooks/{id}/rotate-secret", "rotateEndpointSecret")
            .answers(Answer::of::<NewEndpoint>(200))
            .refuses([Problem::SecretLimit]),
    ]
}

fn deliveries() -> Vec<Operation> {
    let no_event = EventName::parse("client_created").expect_err("no event has this name");
    let endpoint_id = matching("^we_[0-9a-f]{32}$");
    let counted = json!({
        "since": "2026-11-20T09:30:00Z", "until": "2026-11-20T12:00:00Z", "types": ["new_client"], "dry_run": true,
    });
    vec![
        Operation::new("POST", "/settings/webhooks/{id}/test", "testEndpoint")
            .optional_body(test_event::schema())
            .example("check_in_submitted", json!({ "type": "check_in_submitted" }))
            .example("compliance_drop", json!({ "type": "compliance_drop" }))
            .answers(Answer::of::<Ordered>(202))
            .refuses([invalid("type", no_event), Problem::EndpointDisabled, Problem::EndpointGone]),
        Operation::new("POST", "/settings/webhooks/{id}/recover", "recoverDeliveries")
            .body(RecoveryRequest::schema())
            .example("since", json!({ "since": "2026-11-20T09:30:00Z" }))
            .example("count", counted)
            .answers(Answer::of::<Recovered>(200))
            .answers(Answer::of::<Recovered>(202))
            .refuses([
                invalid("since", "is required"),
                Problem::RecoveryRunning { retry_after_s: 42 },
                Problem::EndpointDisabled,
                Problem::EndpointGone,
            ]),
        log(Operation::new("GET", "/settings/webhooks/{id}/deliveries", "listDeliveries")),
        Operation::new("GET", "/settings/webhooks/{id}/deliveries/{delivery_id}", "readDelivery")
            .answers(Answer::of::<DeliveryDetail>(200)),
        Operation::new("POST", "/settings/webhooks/{id}/deliveries/{delivery_id}/retry", "retryDelivery")
            .answers(Answer::of::<Ordered>(202))
            .refuses([Problem::DeliveryErased, Problem::EndpointDisabled, Problem::EndpointGone]),
        log(Operation::new("GET", "/settings/deliveries", "listAllDeliveries").filter(ENDPOINT_FILTER, endpoint_id)),
        activity(Operation::new("GET", "/settings/webhooks/{id}/activity", "readEndpointActivity")),
        activity(Operation::new("GET", "/settings/deliveries/activity", "readActivity")),
    ]
}

/// Adds the filters and the answer of a request log.
pub(super) fn request_log(operation: Operation, mode: Mode) -> Operation {
    let time = || json!({ "type": "string", "format": "date-time" });
    let codes: Vec<&str> = codes(mode).map(Code::as_str).collect();
    let mut routes: Vec<&str> = served(mode).filter(|route| route.takes_key()).map(|route| route.path).collect();
    routes.dedup();
    let methods = RequestMethod::ALL.map(RequestMethod::as_str);
    operation
        .filter("status", matching(StatusFilter::PATTERN))
        .filter("code", json!({ "type": "string", "enum": codes }))
        .filter("method", json!({ "type": "string", "enum": methods }))
        .filter("route", json!({ "type": "string", "enum": routes }))
        .filter("request_id", json!({ "type": "string", "maxLength": 128, "pattern": "^[!-~]+$" }))
        .filter("since", time())
        .filter("until", time())
        .size("limit", "Requests in the answer", REQUEST_PAGE)
        .cursor()
        .answers(Answer::of::<RequestPage>(200))
        .refuses([invalid("status", StatusFilter::RULE), invalid("since", TIME_RULE)])
        .refuses_unknown("state")
}

/// Adds the period and the answer of numbers by the hour.
fn activity(operation: Operation) -> Operation {
    let hours = json!({
        "type": "integer", "minimum": MIN_ACTIVITY_HOURS, "maximum": MAX_ACTIVITY_HOURS, "default": MIN_ACTIVITY_HOURS,
    });
    operation
        .in_query(ACTIVITY_PARAMETER, hours)
        .answers(Answer::of::<Activity>(200))
        .refuses([invalid(ACTIVITY_PARAMETER, ActivityPeriod::rule())])
}

/// Adds the filters and the answer of a delivery log.
fn log(operation: Operation) -> Operation {
    let one_of = |names: Vec<&str>| json!({ "type": "string", "enum": names });
    let time = || json!({ "type": "string", "format": "date-time" });
    operation
        .filter("status", one_of(DeliveryStatus::ALL.map(DeliveryStatus::as_str).into()))
        .filter("type", one_of(EventName::all().map(EventName::as_str).collect()))
        .filter("webhook_id", matching("^evt_[0-9a-f]{32}$"))
        .filter("since", time())
        .filter("until", time())
        .size("limit", "Deliveries in the answer", DELIVERY_PAGE)
        .cursor()
        .answers(Answer::of::<DeliveryPage>(200))
        .refuses_unknown("state")
}
