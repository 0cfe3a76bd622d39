//! `/settings/webhooks`.

use domain::delivery::{DeliveryStatus, Ordered, RECOVERY_LEASE, RECOVERY_PAUSE, Recovered};
use domain::endpoint::{EndpointChange, EndpointDraft, EndpointList, MAX_ENDPOINTS, recovery_schema};
use domain::event::EventName;
use domain::id::DeliveryId;
use domain::list::DELIVERY_PAGE;
use domain::rate_limit::Limit;
use domain::test_event;
use edge::Problem;
use serde_json::{Value, json};

use super::{Operation, Schemas, identifier, invalid, invalid_cursor};
use crate::document::examples::{DELIVERY_ID, ENDPOINT_ID, delivery_page, endpoint, new_endpoint};
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
        retry(schemas),
    ]
}

/// An operation on one endpoint, which the path names.
fn of_endpoint(method: &'static str, path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new(method, path, id, summary)
        .in_path("id", identifier(), "The endpoint's id.", ENDPOINT_ID)
        .refuses([Problem::NotFound("webhook endpoint")])
}

fn one(schemas: &mut Schemas, about: &'static str) -> Answer {
    Answer::of(schemas, 200, about, "endpoint", &endpoint())
}

fn bad_url() -> Problem {
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
            "The secret is shown this once. Addresses that are not public are refused here as far as the URL tells, and at each \
             delivery once more. At most {MAX_ENDPOINTS} of a workspace."
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
        .refuses([bad_url(), Problem::EndpointLimit])
}

fn read(schemas: &mut Schemas) -> Operation {
    of_endpoint("GET", "/settings/webhooks/{id}", "readEndpoint", "Read a webhook endpoint")
        .answers(one(schemas, "The endpoint, without its secret."))
}

fn update(schemas: &mut Schemas) -> Operation {
    of_endpoint("PATCH", "/settings/webhooks/{id}", "updateEndpoint", "Change a webhook endpoint")
        .about(
            "What is left out stays. The payload mode is fixed. Switched on by hand, an endpoint that failed for days gets events again. Switching \
             on sends nothing by itself: what was missed or ended meanwhile comes by a recovery alone.",
        )
        .body(schemas, "UpdateEndpoint", EndpointChange::schema())
        .example("off", json!({ "enabled": false }))
        .example("moved", json!({ "url": "https://hooks.example.com/v2", "description": null }))
        .answers(one(schemas, "The endpoint as it is now."))
        .refuses([bad_url(), Problem::EndpointGone])
}

fn delete(schemas: &mut Schemas) -> Operation {
    of_endpoint("DELETE", "/settings/webhooks/{id}", "deleteEndpoint", "Delete a webhook endpoint")
        .about("Deliveries that wait for it end as failed.")
        .answers(one(schemas, "The endpoint as it was."))
}

fn rotate(schemas: &mut Schemas) -> Operation {
    let path = "/settings/webhooks/{id}/rotate-secret";
    of_endpoint("POST", path, "rotateEndpointSecret", "Replace an endpoint's secret")
        .about("The new secret is shown this once. The one before signs beside it for 24 hours.")
        .answers(Answer::of(schemas, 200, "The endpoint, and its new secret.", "endpoint", &new_endpoint()))
        .refuses([Problem::SecretLimit])
}

fn test(schemas: &mut Schemas) -> Operation {
    let rule = EventName::parse("client_created").expect_err("no event is called so");
    of_endpoint("POST", "/settings/webhooks/{id}/test", "testEndpoint", "Send an example event")
        .about(
            format!(
                "An event that looks like a real one and names nobody, with `\"test\": true` in its `data`: any event, whatever the endpoint \
                 is subscribed to, computed ones too. It is signed, retried and logged as any other. An endpoint is sent at most {} test \
                 events in a calendar minute, those included that are sent again: the next is 429 `rate_limited`.",
                Limit::TestEvents.per_minute()
            ),
        )
        .optional_body(schemas, "TestEndpoint", test_event::schema())
        .example("check_in_submitted", json!({ "type": "check_in_submitted" }))
        .example("compliance_drop", json!({ "type": "compliance_drop" }))
        .answers(ordered(schemas))
        .refuses([invalid("type", rule), Problem::EndpointDisabled, Problem::EndpointGone])
}

fn recover(schemas: &mut Schemas) -> Operation {
    let about = "How many are on their way again.";
    of_endpoint("POST", "/settings/webhooks/{id}/recover", "recoverDeliveries", "Send again what failed")
        .about(
            format!(
                "Everything that has failed since then is sent again, each event with the webhook-id that it had. Left out are test events, \
                 and events that a recovery sent again less than {pause} minutes ago. A call begins as many as 18 seconds suffice for, some \
                 thousands: call again until the answer says 0. An endpoint has one recovery at a time. A recovery runs until the event \
                 that it ordered last has been attempted, {lease} seconds at most; another one meanwhile is 409 `recovery_running`.",
                pause = RECOVERY_PAUSE.num_minutes(),
                lease = RECOVERY_LEASE.num_seconds(),
            ),
        )
        .body(schemas, "RecoverDeliveries", recovery_schema())
        .example("since", json!({ "since": "2026-11-20T09:30:00Z" }))
        .answers(Answer::of(schemas, 202, about, "recovered", &Recovered { deliveries: 12 }))
        .refuses([
            invalid("since", "is required"),
            Problem::RecoveryRunning { retry_after_s: 42 },
            Problem::EndpointDisabled,
            Problem::EndpointGone,
        ])
}

fn retry(schemas: &mut Schemas) -> Operation {
    let path = "/settings/webhooks/{id}/deliveries/{delivery_id}/retry";
    of_endpoint("POST", path, "retryDelivery", "Send an event again")
        .in_path("delivery_id", identifier(), "The delivery's id.", DELIVERY_ID)
        .about(
            "At once, with the same webhook-id, whatever became of it so far: a chain of attempts of its own. A test event counts as one of the \
             test events of its minute.",
        )
        .answers(ordered(schemas))
        .refuses([
            Problem::DeliveryInProgress,
            Problem::DeliveryErased,
            Problem::EndpointDisabled,
            Problem::EndpointGone,
        ])
}

fn ordered(schemas: &mut Schemas) -> Answer {
    let delivery_id = DeliveryId::parse(DELIVERY_ID).expect("an example's id is an id");
    Answer::of(schemas, 202, "The delivery, which is on its way.", "ordered", &Ordered { delivery_id })
}

fn deliveries(schemas: &mut Schemas) -> Operation {
    of_endpoint("GET", "/settings/webhooks/{id}/deliveries", "listDeliveries", "Read an endpoint's delivery log")
        .about("Each event that was to be sent in the last 30 days, with every attempt.")
        .size("limit", "Deliveries in the answer", DELIVERY_PAGE)
        .in_query("status", statuses(), "Deliveries of this status alone.")
        .in_query(
            "cursor",
            json!({ "type": "string", "pattern": "^(dlv_[0-9A-Fa-f]{32})?$" }),
            "`next_cursor` of the page before. Empty: the first page.",
        )
        .answers(Answer::of(schemas, 200, "Deliveries, newest first.", "page", &delivery_page()))
        .refuses([invalid_cursor()])
}

fn statuses() -> Value {
    json!({ "type": "string", "enum": DeliveryStatus::ALL.map(DeliveryStatus::as_str) })
}
