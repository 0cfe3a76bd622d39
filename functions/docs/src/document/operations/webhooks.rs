//! `/settings/webhooks`.

use domain::delivery::{DeliveryPage, DeliveryStatus, Ordered, RECOVERY_LEASE, RECOVERY_PAUSE, Recovered};
use domain::endpoint::{
    Endpoint, EndpointChange, EndpointDraft, EndpointList, MAX_ENDPOINTS, NewEndpoint, recovery_schema,
};
use domain::event::EventName;
use domain::fields::Invalid;
use domain::list::DELIVERY_PAGE;
use domain::rate_limit::Limit;
use domain::test_event;
use edge::Problem;
use serde_json::{Value, json};

use super::{Operation, SETTINGS_WEBHOOKS, Schemas, identifier, size, size_rule};
use crate::document::examples::{DELIVERY_ID, ENDPOINT_ID, delivery_page, endpoint, new_endpoint, to_json};
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

fn of_endpoint(method: &'static str, path: &'static str, id: &'static str) -> Operation {
    Operation::new(method, path, id)
        .in_path("id", identifier(), "The endpoint's id.", ENDPOINT_ID)
        .tag(SETTINGS_WEBHOOKS)
        .coach()
        .refuses(Problem::NotFound("webhook endpoint"))
}

fn one(schemas: &mut Schemas, about: &'static str) -> Answer {
    Answer::json(200, about, schemas.of::<Endpoint>(), &[("endpoint", to_json(&endpoint()))])
}

fn bad_url() -> Problem {
    Problem::Invalid(Invalid::field("url", "must begin with https://"))
}

fn list(schemas: &mut Schemas) -> Operation {
    let example = to_json(&EndpointList { endpoints: vec![endpoint()] });
    Operation::new("GET", "/settings/webhooks", "listEndpoints")
        .tag(SETTINGS_WEBHOOKS)
        .coach()
        .summary("List webhook endpoints")
        .answers(Answer::json(200, "All endpoints.", schemas.of::<EndpointList>(), &[("endpoints", example)]))
}

fn create(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("CreateEndpoint", EndpointDraft::schema().into_json());
    let of_endpoint = json!({ "id": "$response.body#/id" });
    let answer = Answer::json(
        201,
        "The endpoint, and its secret.",
        schemas.of::<NewEndpoint>(),
        &[("endpoint", to_json(&new_endpoint()))],
    );
    let answer = ["readEndpoint", "updateEndpoint", "deleteEndpoint", "listDeliveries"]
        .into_iter()
        .fold(answer, |answer, operation| answer.link(operation, of_endpoint.clone()));
    Operation::new("POST", "/settings/webhooks", "createEndpoint")
        .tag(SETTINGS_WEBHOOKS)
        .coach()
        .summary("Register a webhook endpoint")
        .about(format!(
            "The secret is shown this once. Addresses that are not public are refused here as far as the URL tells, and at each \
             delivery once more. At most {MAX_ENDPOINTS} of a workspace."
        ))
        .body(
            body,
            &[(
                "endpoint",
                json!({
                    "url": "https://hooks.example.com/coaching", "events": ["new_client", "check_in_submitted"],
                    "payload_mode": "identifiers", "description": "Practice software",
                }),
            )],
        )
        .answers(answer)
        .refuses(bad_url())
        .refuses(Problem::EndpointLimit)
}

fn read(schemas: &mut Schemas) -> Operation {
    of_endpoint("GET", "/settings/webhooks/{id}", "readEndpoint")
        .summary("Read a webhook endpoint")
        .answers(one(schemas, "The endpoint, without its secret."))
}

fn update(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("UpdateEndpoint", EndpointChange::schema().into_json());
    of_endpoint("PATCH", "/settings/webhooks/{id}", "updateEndpoint")
        .summary("Change a webhook endpoint")
        .about(
            "What is left out stays. The payload mode is fixed. Switched on by hand, an endpoint that failed for days gets events again. Switching \
             on sends nothing by itself: what was missed or ended meanwhile comes by a recovery alone.",
        )
        .body(
            body,
            &[
                ("off", json!({ "enabled": false })),
                ("moved", json!({ "url": "https://hooks.example.com/v2", "description": null })),
            ],
        )
        .answers(one(schemas, "The endpoint as it is now."))
        .refuses(bad_url())
        .refuses(Problem::EndpointGone)
}

fn delete(schemas: &mut Schemas) -> Operation {
    of_endpoint("DELETE", "/settings/webhooks/{id}", "deleteEndpoint")
        .summary("Delete a webhook endpoint")
        .about("Deliveries that wait for it end as failed.")
        .answers(one(schemas, "The endpoint as it was."))
}

fn rotate(schemas: &mut Schemas) -> Operation {
    let example = to_json(&new_endpoint());
    of_endpoint("POST", "/settings/webhooks/{id}/rotate-secret", "rotateEndpointSecret")
        .summary("Replace an endpoint's secret")
        .about("The new secret is shown this once. The one before signs beside it for 24 hours.")
        .answers(Answer::json(
            200,
            "The endpoint, and its new secret.",
            schemas.of::<NewEndpoint>(),
            &[("endpoint", example)],
        ))
        .refuses(Problem::SecretLimit)
}

fn test(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("TestEndpoint", test_event::schema().into_json());
    of_endpoint("POST", "/settings/webhooks/{id}/test", "testEndpoint")
        .summary("Send an example event")
        .about(
            format!(
                "An event that looks like a real one and names nobody, with `\"test\": true` in its `data`: any event, whatever the endpoint \
                 is subscribed to, computed ones too. It is signed, retried and logged as any other. An endpoint is sent at most {} test \
                 events in a calendar minute, those included that are sent again: the next is 429 `rate_limited`.",
                Limit::TestEvents.per_minute()
            ),
        )
        .optional_body(body, &["check_in_submitted", "compliance_drop"].map(|name| (name, json!({ "type": name }))))
        .answers(ordered(schemas))
        .refuses(bad_type())
        .refuses(Problem::EndpointDisabled)
        .refuses(Problem::EndpointGone)
}

fn recover(schemas: &mut Schemas) -> Operation {
    let body = schemas.insert("RecoverDeliveries", recovery_schema().into_json());
    let answer = Answer::json(
        202,
        "How many are on their way again.",
        schemas.of::<Recovered>(),
        &[("recovered", to_json(&Recovered { deliveries: 12 }))],
    );
    of_endpoint("POST", "/settings/webhooks/{id}/recover", "recoverDeliveries")
        .summary("Send again what failed")
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
        .body(body, &[("since", json!({ "since": "2026-11-20T09:30:00Z" }))])
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("since", "is required")))
        .refuses(Problem::RecoveryRunning { retry_after_s: 42 })
        .refuses(Problem::EndpointDisabled)
        .refuses(Problem::EndpointGone)
}

fn retry(schemas: &mut Schemas) -> Operation {
    of_endpoint("POST", "/settings/webhooks/{id}/deliveries/{delivery_id}/retry", "retryDelivery")
        .in_path("delivery_id", identifier(), "The delivery's id.", DELIVERY_ID)
        .summary("Send an event again")
        .about(
            "At once, with the same webhook-id, whatever became of it so far: a chain of attempts of its own. A test event counts as one of the \
             test events of its minute.",
        )
        .answers(ordered(schemas))
        .refuses(Problem::DeliveryInProgress)
        .refuses(Problem::DeliveryErased)
        .refuses(Problem::EndpointDisabled)
        .refuses(Problem::EndpointGone)
}

fn ordered(schemas: &mut Schemas) -> Answer {
    let example = json!({ "delivery_id": DELIVERY_ID });
    Answer::json(202, "The delivery, which is on its way.", schemas.of::<Ordered>(), &[("ordered", example)])
}

fn bad_type() -> Problem {
    let rule = EventName::parse("client_created").expect_err("no event is called so");
    Problem::Invalid(Invalid::field("type", rule))
}

fn deliveries(schemas: &mut Schemas) -> Operation {
    let answer = Answer::json(
        200,
        "Deliveries, newest first.",
        schemas.of::<DeliveryPage>(),
        &[("page", to_json(&delivery_page()))],
    );
    of_endpoint("GET", "/settings/webhooks/{id}/deliveries", "listDeliveries")
        .summary("Read an endpoint's delivery log")
        .about("Each event that was to be sent in the last 30 days, with every attempt.")
        .in_query("limit", size(DELIVERY_PAGE), size_rule("Deliveries in the answer", DELIVERY_PAGE))
        .in_query("status", statuses(), "Deliveries of this status alone.")
        .in_query(
            "cursor",
            json!({ "type": "string", "pattern": "^(dlv_[0-9A-Fa-f]{32})?$" }),
            "`next_cursor` of the page before. Empty: the first page.",
        )
        .answers(answer)
        .refuses(Problem::Invalid(Invalid::field("cursor", "must be the next_cursor of an earlier answer")))
}

fn statuses() -> Value {
    json!({ "type": "string", "enum": DeliveryStatus::ALL.map(DeliveryStatus::as_str) })
}
