//! The `webhooks` of the document: the requests that receivers get.

use domain::delivery::ATTEMPT_TIMEOUT;
use domain::endpoint::SECRET_OVERLAP;
use domain::event::{ContactDetails, EventExamples, EventName, EventSchema};
use domain::openapi::NamedSchema;
use domain::retry::MAX_ATTEMPTS;
use serde_json::{Map, Value, json};

use super::components::{Schemas, reference};
use super::examples::{EVENT_ID, at};

/// Tags of the two kinds of events.
pub(super) const EMITTED: &str = "Emitted events";
pub(super) const COMPUTED: &str = "Computed events";

/// Renders all webhooks.
pub(super) fn all(schemas: &mut Schemas) -> Value {
    let id = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } });
    let reference = schemas.insert("ClientReference", id);
    let contact = schemas.add(NamedSchema::of::<ContactDetails>());
    schemas.insert("ClientContact", json!({ "allOf": [reference, contact] }));
    Value::Object(EventName::all().map(|event| (event.as_str().to_owned(), render(event, schemas))).collect())
}

fn render(event: EventName, schemas: &mut Schemas) -> Value {
    let name = event.as_str();
    let (tag, sender) = match event {
        EventName::Emitted(_) => (EMITTED, "Subscribe an endpoint to it."),
        EventName::Computed(_) => (COMPUTED, "Sent by the Webhook step of an automation."),
    };
    let timeout_s = ATTEMPT_TIMEOUT.num_seconds();
    let other_answers = format!(
        "Any other answer is a failure, redirects included. The service retries: {MAX_ATTEMPTS} attempts in all."
    );
    json!({
        "post": {
            "operationId": name,
            "tags": [tag],
            "summary": name,
            "description": format!("{} {sender}", event.description()),
            "security": [],
            "parameters": headers(name),
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": body_schema(event, schemas), "examples": examples(event) } },
            },
            "responses": {
                "2XX": { "description": format!("The receiver has the event. Answer within {timeout_s} seconds.") },
                "410": { "description": "The service sets the endpoint to `gone` for good and sends nothing more." },
                "default": { "description": other_answers },
            },
        },
    })
}

fn headers(event: &str) -> Value {
    let header = |name: &str, about: &str, schema: Value, example: Value| {
        json!({
            "name": name, "in": "header", "required": true, "description": about,
            "schema": schema, "example": example,
        })
    };
    json!([
        header(
            "webhook-id",
            "The id of the event, the same in every attempt. Store it, and skip an id that you have.",
            json!({ "type": "string" }),
            json!(EVENT_ID),
        ),
        header(
            "webhook-timestamp",
            "When this attempt was signed, in Unix seconds.",
            json!({ "type": "integer" }),
            json!(at("09:30:01.000").unix_s()),
        ),
        header(
            "webhook-signature",
            &format!(
                "The signature by Standard Webhooks 1.0.0: `v1,` and base64. For {} hours after a rotation of the secret: \
                 one signature by each secret, separated by spaces.",
                SECRET_OVERLAP.num_hours()
            ),
            json!({ "type": "string" }),
            json!("v1,eZC7pNfBfbYV4fJpIo2TwU+JO+y5dW4XaGaVlqLCFGQ="),
        ),
        header("x-service-event", "The event's name.", json!({ "type": "string", "const": event }), json!(event)),
    ])
}

fn body_schema(event: EventName, schemas: &mut Schemas) -> Value {
    let EventSchema { members: own, automation } = EventSchema::of(event);
    let client = json!({ "anyOf": [reference("ClientContact"), reference("ClientReference")] });
    let mut members = Map::new();
    members.insert("client".to_owned(), client);
    members.insert(
        "test".to_owned(),
        json!({
            "type": "boolean", "const": true,
            "description": "Present and true in a test event, which the coach sends from the settings.",
        }),
    );
    if let Some(automation) = automation {
        members.insert("automation".to_owned(), schemas.add(automation));
    }
    let common = json!({ "type": "object", "required": ["client"], "properties": members });
    json!({
        "type": "object",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": { "type": "string", "const": event.as_str() },
            "timestamp": {
                "type": "string",
                "format": "date-time",
                "description": "When the event happened. For a computed event: when the client started to match.",
            },
            "data": { "allOf": [common, schemas.add(own)] },
        },
    })
}

fn examples(event: EventName) -> Value {
    let EventExamples { identifiers, contact_details } = EventExamples::of(event);
    json!({
        "identifiers": { "summary": "Identifiers only", "value": identifiers },
        "contact_details": { "summary": "With contact details", "value": contact_details },
    })
}
