//! The deliveries that receivers get, as the `webhooks` of the document.

use domain::event::{ContactDetails, EventType};
use serde_json::{Map, Value, json};

use super::events::{self, Described};
use super::examples::{CLIENT_ID, EVENT_ID, at, client, to_json};
use super::operations::{COMPUTED, EMITTED};
use super::schemas::{Schemas, reference};

/// The `webhooks` of the document.
pub(super) fn all(schemas: &mut Schemas) -> Value {
    let id = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } });
    let reference = schemas.insert("ClientReference", id);
    let contact = schemas.of::<ContactDetails>();
    schemas.insert("ClientContact", json!({ "allOf": [reference, contact] }));
    let described = events::all(schemas).into_iter();
    Value::Object(described.map(|event| (event.name.to_owned(), render(&event))).collect())
}

fn render(event: &Described) -> Value {
    let is_emitted = EventType::parse(event.name).is_ok();
    let tag = if is_emitted { EMITTED } else { COMPUTED };
    let how = if is_emitted { "Subscribe an endpoint to it." } else { "Sent by the Webhook step of an automation." };
    json!({
        "post": {
            "operationId": event.name,
            "tags": [tag],
            "summary": event.name,
            "description": format!("{} {how}", event.fires),
            "security": [],
            "parameters": headers(event.name),
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
            "By Standard Webhooks 1.0.0: `v1,` and base64. Two, with a space between, for 24 hours after the secret was rotated.",
            json!({ "type": "string" }),
            json!("v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
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
            "type": { "type": "string", "const": event.name },
            "timestamp": { "type": "string", "format": "date-time", "description": "When it happened." },
            "data": { "allOf": [common, event.data] },
        },
    })
}

fn examples(event: &Described) -> Value {
    let details = to_json(&ContactDetails::of(&client()));
    let body = |contact: &Value| {
        let mut client = json!({ "id": CLIENT_ID });
        merge(&mut client, contact);
        let mut data = json!({ "client": client });
        merge(&mut data, &event.example);
        json!({ "type": event.name, "timestamp": client_time(event), "data": data })
    };
    json!({
        "identifiers": { "summary": "Identifiers only", "value": body(&json!({})) },
        "contact_details": { "summary": "With contact details", "value": body(&details) },
    })
}

/// When the event of the example happened.
fn client_time(event: &Described) -> Value {
    let times = ["/created_at", "/check_in/submitted_at", "/advanced_at", "/message/received_at"];
    let found = times.iter().find_map(|pointer| event.example.pointer(pointer)).cloned();
    found.unwrap_or_else(|| to_json(&at("12:15:00.000")))
}

fn merge(into: &mut Value, more: &Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more.clone());
    }
}
