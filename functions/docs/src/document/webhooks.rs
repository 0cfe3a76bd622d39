//! The `webhooks` of the document: the requests that receivers get.

use domain::event::{ClientDetails, ContactDetails, EventExamples, EventName, EventSchema, PersonSchema};
use domain::openapi::NamedSchema;
use serde_json::{Map, Value, json};

use super::components::{Schemas, reference};
use super::examples::{EVENT_ID, at};
use super::prose::EVENTS;

/// Tags of the two kinds of events.
pub(super) const EMITTED: &str = "Emitted events";
pub(super) const COMPUTED: &str = "Computed events";

/// Renders all webhooks.
pub(super) fn all(schemas: &mut Schemas) -> Value {
    let id = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } });
    for (name, details) in
        [("Client", NamedSchema::of::<ClientDetails>()), ("Contact", NamedSchema::of::<ContactDetails>())]
    {
        let reference = schemas.insert(&format!("{name}Reference"), id.clone());
        let details = schemas.add(details);
        schemas.insert(&format!("{name}WithDetails"), json!({ "allOf": [reference, details] }));
    }
    Value::Object(EventName::all().map(|event| (event.as_str().to_owned(), render(event, schemas))).collect())
}

fn render(event: EventName, schemas: &mut Schemas) -> Value {
    let name = event.as_str();
    let (tag, sender) = match event {
        EventName::Emitted(_) => (EMITTED, "Subscribe an endpoint to it."),
        EventName::Computed(_) => (COMPUTED, "Sent by the Webhook step of an automation."),
    };
    let content = json!({ "schema": body_schema(event, schemas), "examples": examples(event) });
    let answer = |status: &str| (status.to_owned(), json!({ "description": EVENTS.top.parts[status] }));
    let answers: Map<_, _> = ["2XX", "410", "default"].map(answer).into_iter().collect();
    json!({
        "post": {
            "operationId": name,
            "tags": [tag],
            "summary": name,
            "description": format!("{} {sender}", event.description()),
            "security": [],
            "parameters": headers(name),
            "requestBody": { "required": true, "content": { "application/json": content } },
            "responses": answers,
        },
    })
}

fn headers(event: &str) -> Value {
    let signature = "v1,eZC7pNfBfbYV4fJpIo2TwU+JO+y5dW4XaGaVlqLCFGQ=";
    let headers = [
        ("webhook-id", json!({ "type": "string" }), json!(EVENT_ID)),
        ("webhook-timestamp", json!({ "type": "integer" }), json!(at("09:30:01.000").unix_s())),
        ("webhook-signature", json!({ "type": "string" }), json!(signature)),
        ("x-service-event", json!({ "type": "string", "const": event }), json!(event)),
    ];
    let render = |(name, schema, example): (&str, Value, Value)| {
        json!({
            "name": name, "in": "header", "required": true, "description": EVENTS.top.parts[name],
            "schema": schema, "example": example,
        })
    };
    headers.into_iter().map(render).collect()
}

fn body_schema(event: EventName, schemas: &mut Schemas) -> Value {
    let EventSchema { person, members: own, automation } = EventSchema::of(event);
    let (name, nobody) = match person {
        PersonSchema::Client => ("Client", None),
        PersonSchema::Contact => ("Contact", None),
        PersonSchema::BookedContact => ("Contact", Some(json!({ "type": "null" }))),
    };
    let named = [format!("{name}WithDetails"), format!("{name}Reference")];
    let forms: Vec<Value> = named.iter().map(|name| reference(name)).chain(nobody).collect();
    let mut common = json!({
        "type": "object",
        "required": [person.member()],
        "properties": {
            person.member(): { "anyOf": forms },
            "test": { "type": "boolean", "const": true, "description": EVENTS.top.parts["test"] },
        },
    });
    if let Some(automation) = automation {
        common["properties"]["automation"] = schemas.add(automation);
    }
    json!({
        "type": "object",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": { "type": "string", "const": event.as_str() },
            "timestamp": { "type": "string", "format": "date-time", "description": EVENTS.top.parts["timestamp"] },
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
