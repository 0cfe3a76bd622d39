//! The deliveries that receivers get, as the `webhooks` of the document.

use domain::event::{ContactDetails, EventName, PayloadMode};
use serde_json::{Map, Value, json};

use super::events::{self, Described};
use super::examples::{EVENT_ID, at};
use super::operations::{COMPUTED, EMITTED};
use super::schemas::{Schemas, reference};

/// The `webhooks` of the document.
pub(super) fn all(schemas: &mut Schemas) -> Value {
    let id = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } });
    let reference = schemas.insert("ClientReference", id);
    let contact = schemas.of::<ContactDetails>();
    schemas.insert("ClientContact", json!({ "allOf": [reference, contact] }));
    let described = events::all(schemas).into_iter();
    Value::Object(described.map(|event| (event.example.event_type.as_str().to_owned(), render(&event))).collect())
}

fn render(event: &Described) -> Value {
    let name = event.example.event_type.as_str();
    let (tag, how) = match event.example.event_type {
        EventName::Emitted(_) => (EMITTED, "Subscribe an endpoint to it."),
        EventName::Computed(_) => (COMPUTED, "Sent by the Webhook step of an automation."),
    };
    json!({
        "post": {
            "operationId": name,
            "tags": [tag],
            "summary": name,
            "description": format!("{} {how}", event.fires),
            "security": [],
            "parameters": headers(name),
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": body_schema(event), "examples": examples(event) } },
            },
            "responses": {
                "2XX": { "description": "Taken. Answer within 15 seconds." },
                "410": { "description": "The receiver wants nothing more: the endpoint is `gone`, for good." },
                "default": { "description": "Not taken, a redirect included: sent again later, nine times in all." },
            },
        },
    })
}

fn headers(event: &str) -> Value {
    let header = |name: &str, about: &str, schema: Value, example: Value| json!({ "name": name, "in": "header", "required": true, "description": about, "schema": schema, "example": example });
    json!([
        header(
            "webhook-id",
            "The event's id: the same at each attempt. Keep it, and skip what you have seen.",
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
            "By Standard Webhooks 1.0.0: `v1,` and base64. For 24 hours after the secret was rotated, one of each secret, with spaces between.",
            json!({ "type": "string" }),
            json!("v1,eZC7pNfBfbYV4fJpIo2TwU+JO+y5dW4XaGaVlqLCFGQ="),
        ),
        header("x-service-event", "The event's name.", json!({ "type": "string", "const": event }), json!(event)),
    ])
}

fn body_schema(event: &Described) -> Value {
    let client = json!({ "anyOf": [reference("ClientContact"), reference("ClientReference")] });
    let mut beside = Map::new();
    beside.insert("client".to_owned(), client);
    beside.insert(
        "test".to_owned(),
        json!({ "type": "boolean", "const": true, "description": "There when a coach sent an example from the settings." }),
    );
    if let Some(automation) = &event.automation {
        beside.insert("automation".to_owned(), automation.clone());
    }
    let common = json!({ "type": "object", "required": ["client"], "properties": beside });
    json!({
        "type": "object",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": { "type": "string", "const": event.example.event_type.as_str() },
            "timestamp": {
                "type": "string",
                "format": "date-time",
                "description": "When it happened; for a computed event, when the client came to match.",
            },
            "data": { "allOf": [common, event.data] },
        },
    })
}

fn examples(event: &Described) -> Value {
    let body = |mode| -> Value {
        serde_json::from_slice(&event.example.render(mode)).expect("what the service sends is JSON")
    };
    json!({
        "identifiers": { "summary": "Identifiers only", "value": body(PayloadMode::Identifiers) },
        "contact_details": { "summary": "With contact details", "value": body(PayloadMode::ContactDetails) },
    })
}
