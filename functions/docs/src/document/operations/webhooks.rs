//! `/settings/webhooks`.

use domain::delivery::{
    COUNTING_TIME, DELIVERY_RETENTION, DeliveryStatus, ENDPOINT_FILTER, Ordered, RECOVERY_LEASE, RECOVERY_PAUSE,
    RECOVERY_TIME, Recovered, RecoveryRequest,
};
use domain::endpoint::{EndpointChange, EndpointDraft, EndpointList, MAX_ENDPOINTS, SECRET_OVERLAP};
use domain::event::EventName;
use domain::fields::Invalid;
use domain::id::DeliveryId;
use domain::list::DELIVERY_PAGE;
use domain::rate_limit::Limit;
use domain::retry::MAX_ATTEMPTS;
use domain::test_event;
use edge::Problem;
use serde_json::{Value, json};

use super::{Operation, Schemas, identifier, invalid, invalid_cursor};
use crate::document::examples::{DELIVERY_ID, ENDPOINT_ID, delivery_detail, delivery_page, endpoint, new_endpoint};
use crate::document::operation::Answer;

pub(super) fn operations(schemas: &mut Schemas) -> Vec<Operation> {
    vec![
        list(schemas),
        create(schemas),
        read(schemas),
        update(schemas),
        delete(schemas),
        rotate(schemas),
        test(schemas),
        recover(schemas),
        deliveries(schemas),
        delivery(schemas),
        retry(schemas),
        all_deliveries(schemas),
    ]
}

/// Creates an operation on one endpoint, which the path names.
fn endpoint_operation(method: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new(method, path, id, summary)
        .in_path("id", identifier(), "The endpoint's id.", ENDPOINT_ID)
        .refuses([Problem::NotFound("webhook endpoint")])
}

fn endpoint_answer(schemas: &mut Schemas, about: &'static str) -> Answer {
    Answer::of(schemas, 200, about, "endpoint", &endpoint())
}

fn invalid_url() -> Problem {
    invalid("url", "must begin with https://")
}

fn list(schemas: &mut Schemas) -> Operation {
    let example = EndpointList { endpoints: vec![endpoint()] };
    Operation::new("GET", "/settings/webhooks", "listEndpoints", "List webhook endpoints").answers(Answer::of(
        schemas,
        200,
        "All endpoints.",
        "endpoints",
        &example,
    ))
}

fn create(schemas: &mut Schemas) -> Operation {
    let answer = Answer::of(schemas, 201, "The endpoint, and its secret.", "endpoint", &new_endpoint()).link(
        &["readEndpoint", "updateEndpoint", "deleteEndpoint", "listDeliveries"],
        json!({ "id": "$response.body#/id" }),
    );
    Operation::new("POST", "/settings/webhooks", "createEndpoint", "Register a webhook endpoint")
        .about(format!(
            "The answer shows the secret once. A URL with an address that is not public is refused, here and again at \
             each delivery. A workspace has at most {MAX_ENDPOINTS} endpoints."
        ))
        .body(schemas, "CreateEndpoint", EndpointDraft::schema())
        .example(
            "endpoint",
            json!({
                "url": "https://hooks.example.com/coaching", "events": ["new_client", "check_in_submitted"],
                "payload_mode": "identifiers", "description": "Practice software",
            }),
        )
        .answers(answer)
        .refuses([invalid_url(), Problem::EndpointLimit])
}

fn read(schemas: &mut Schemas) -> Operation {
    endpoint_operation("GET", "/settings/webhooks/{id}", "readEndpoint", "Read a webhook endpoint")
        .answers(endpoint_answer(schemas, "The endpoint, without its secret."))
}

fn update(schemas: &mut Schemas) -> Operation {
    endpoint_operation("PATCH", "/settings/webhooks/{id}", "updateEndpoint", "Change a webhook endpoint")
        .about(
            "Omitted fields stay unchanged. The payload mode is fixed. Enabling a disabled endpoint lets it receive \
             new events again, and sends nothing by itself: use a recovery for the deliveries that failed.",
        )
        .body(schemas, "UpdateEndpoint", EndpointChange::schema())
        .example("off", json!({ "enabled": false }))
        .example("moved", json!({ "url": "https://hooks.example.com/v2", "description": null }))
        .answers(endpoint_answer(schemas, "The endpoint after the change."))
        .refuses([invalid_url(), Problem::EndpointGone])
}

fn delete(schemas: &mut Schemas) -> Operation {
    endpoint_operation("DELETE", "/settings/webhooks/{id}", "deleteEndpoint", "Delete a webhook endpoint")
        .about("Waiting deliveries of the endpoint end as failed.")
        .answers(endpoint_answer(schemas, "The deleted endpoint."))
}

fn rotate(schemas: &mut Schemas) -> Operation {
    let path = "/settings/webhooks/{id}/rotate-secret";
    endpoint_operation("POST", path, "rotateEndpointSecret", "Replace an endpoint's secret")
        .about(format!(
            "The answer shows the new secret once. The old secret signs too for {} hours.",
            SECRET_OVERLAP.num_hours()
        ))
        .answers(Answer::of(schemas, 200, "The endpoint, and its new secret.", "endpoint", &new_endpoint()))
        .refuses([Problem::SecretLimit])
}

fn test(schemas: &mut Schemas) -> Operation {
    let rule = EventName::parse("client_created").expect_err("no event has this name");
    endpoint_operation("POST", "/settings/webhooks/{id}/test", "testEndpoint", "Send an example event")
        .about(format!(
            "Sends an example of any event, computed ones included, with `\"test\": true` in its `data`. The \
                 example names no real client. The service signs, retries and logs it like any other event. The limit \
                 is {} test events in a calendar minute for each endpoint, retries by hand included. Beyond the limit \
                 the answer is 429 `rate_limited`.",
            Limit::TestEvents.per_minute()
        ))
        .optional_body(schemas, "TestEndpoint", test_event::schema())
        .example("check_in_submitted", json!({ "type": "check_in_submitted" }))
        .example("compliance_drop", json!({ "type": "compliance_drop" }))
        .answers(enqueued_delivery(schemas))
        .refuses([invalid("type", rule), Problem::EndpointDisabled, Problem::EndpointGone])
}

fn recover(schemas: &mut Schemas) -> Operation {
    let recovered = |schemas: &mut Schemas, status, about| {
        Answer::of(schemas, status, about, "recovered", &Recovered { deliveries: 12, more: false })
    };
    let counted = recovered(schemas, 200, "With `dry_run`: the number of deliveries that a recovery would enqueue.");
    let enqueued = recovered(schemas, 202, "The number of enqueued deliveries.");
    endpoint_operation("POST", "/settings/webhooks/{id}/recover", "recoverDeliveries", "Recover failed deliveries")
        .about(format!(
            "Sends every event again whose delivery failed since `since` and before `until`, with the same \
                 `webhook-id`. `types` limits the recovery to some events. Test events are left out, and events that a \
                 recovery sent again less than {pause} minutes ago. With `dry_run: true` the answer is 200 with the \
                 number of deliveries that a recovery would send, and nothing is sent. One call enqueues as many \
                 deliveries as it can in {recovery_s} seconds, some thousands. If there are more, the answer has `more: true`: \
                 repeat the call. A dry run counts for up to {counting_s} seconds. An endpoint has one recovery at a time. A recovery \
                 ends with the first attempt at its last event, after {lease} seconds at most. Until then another \
                 recovery is 409 `recovery_running`.",
            pause = RECOVERY_PAUSE.num_minutes(),
            recovery_s = RECOVERY_TIME.as_secs(),
            counting_s = COUNTING_TIME.as_secs(),
            lease = RECOVERY_LEASE.num_seconds(),
        ))
        .body(schemas, "RecoverDeliveries", RecoveryRequest::schema())
        .example("since", json!({ "since": "2026-11-20T09:30:00Z" }))
        .example(
            "count",
            json!({
                "since": "2026-11-20T09:30:00Z", "until": "2026-11-20T12:00:00Z", "types": ["new_client"],
                "dry_run": true,
            }),
        )
        .answers(counted)
        .answers(enqueued)
        .refuses([
            invalid("since", "is required"),
            Problem::RecoveryRunning { retry_after_s: 42 },
            Problem::EndpointDisabled,
            Problem::EndpointGone,
        ])
}

fn retry(schemas: &mut Schemas) -> Operation {
    let path = "/settings/webhooks/{id}/deliveries/{delivery_id}/retry";
    endpoint_operation("POST", path, "retryDelivery", "Send an event again")
        .in_path("delivery_id", identifier(), "The delivery's id.", DELIVERY_ID)
        .about(format!(
            "Sends the event at once, with the same `webhook-id` and a new chain of {MAX_ATTEMPTS} attempts, whatever the \
             status of the delivery. A test event counts toward the limit of test events."
        ))
        .answers(enqueued_delivery(schemas))
        .refuses([
            Problem::DeliveryInProgress,
            Problem::DeliveryErased,
            Problem::EndpointDisabled,
            Problem::EndpointGone,
        ])
}

fn enqueued_delivery(schemas: &mut Schemas) -> Answer {
    let delivery_id = DeliveryId::parse(DELIVERY_ID).expect("the example is a valid id");
    Answer::of(schemas, 202, "The delivery was enqueued.", "ordered", &Ordered { delivery_id })
}

fn deliveries(schemas: &mut Schemas) -> Operation {
    let operation = endpoint_operation(
        "GET",
        "/settings/webhooks/{id}/deliveries",
        "listDeliveries",
        "Read an endpoint's delivery log",
    );
    log(
        schemas,
        operation
            .about(format!("The deliveries of the last {} days, with every attempt.", DELIVERY_RETENTION.num_days())),
    )
}

fn all_deliveries(schemas: &mut Schemas) -> Operation {
    let operation = Operation::new("GET", "/settings/deliveries", "listAllDeliveries", "Read the whole delivery log")
        .about(format!(
            "The deliveries of the last {} days to all endpoints of the coach, with every attempt. Deleted endpoints are \
             included. A delivery may take a moment to appear.",
            DELIVERY_RETENTION.num_days()
        ))
        .filter(ENDPOINT_FILTER, whole_id("we_"), "Only deliveries to this endpoint.");
    log(schemas, operation)
}

/// Adds the filters and the answer of a delivery log.
fn log(schemas: &mut Schemas, operation: Operation) -> Operation {
    let names: Vec<&str> = EventName::all().map(EventName::as_str).collect();
    let time = || json!({ "type": "string", "format": "date-time" });
    operation
        .filter("status", statuses(), "Only deliveries with this status.")
        .filter("type", json!({ "type": "string", "enum": names }), "Only deliveries of this event.")
        .filter("webhook_id", whole_id("evt_"), "Only deliveries of the event with this `webhook-id`.")
        .filter("since", time(), "Only deliveries that were created at or after this time.")
        .filter("until", time(), "Only deliveries that were created before this time.")
        .size("limit", "Deliveries in the answer", DELIVERY_PAGE)
        .in_query(
            "cursor",
            json!({ "type": "string", "pattern": "^(dlv_[0-9a-f]{32})?$" }),
            "`next_cursor` of the page before. Empty: the first page. With a filter, a page before the last may have \
             few deliveries or none.",
        )
        .answers(Answer::of(schemas, 200, "Deliveries, newest first.", "page", &delivery_page()))
        .refuses([invalid_cursor(), Problem::Invalid(Invalid::unknown_parameter("state", &["status"]))])
}

fn delivery(schemas: &mut Schemas) -> Operation {
    let path = "/settings/webhooks/{id}/deliveries/{delivery_id}";
    endpoint_operation("GET", path, "readDelivery", "Read a delivery with its request")
        .in_path("delivery_id", identifier(), "The delivery's id.", DELIVERY_ID)
        .about(
            "`request` is the request of the latest attempt, with the exact body. After the erasure of the client, \
             `body_erased` is true, and the body and the signature are gone.",
        )
        .answers(Answer::of(schemas, 200, "The delivery.", "delivery", &delivery_detail()))
        .refuses([Problem::NotFound("delivery")])
}

/// Schema of an id that the service chose.
fn whole_id(prefix: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{prefix}[0-9a-f]{{32}}$") })
}

fn statuses() -> Value {
    json!({ "type": "string", "enum": DeliveryStatus::ALL.map(DeliveryStatus::as_str) })
}
