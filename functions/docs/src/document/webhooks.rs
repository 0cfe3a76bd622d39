//! The `webhooks` of the document: the requests that receivers get.

use domain::event::{ClientDetails, ContactDetails, EventExamples, EventName, EventSchema, PersonSchema};
use domain::mode::Mode;
use domain::openapi::NamedSchema;
use serde_json::{Map, Value, json};

use super::components::{Schemas, reference};
use super::examples::{EVENT_ID, at};
use super::parameter::{Parameter, Place};
use super::prose::EVENTS;
use super::response::JSON;

/// Tags of the two kinds of events.
pub(super) const EMITTED: &str = "Emitted events";
pub(super) const COMPUTED: &str = "Computed events";
/// The payload modes of an endpoint.
pub(crate) const MODES: [&str; 2] = ["Identifiers only", "With contact details"];
/// A signature by Standard Webhooks, of the example in the guide.
const SIGNATURE: &str = "v1,eZC7pNfBfbYV4fJpIo2TwU+JO+y5dW4XaGaVlqLCFGQ=";

/// The requests that receivers get for an event.
pub(crate) struct Webhook {
    pub(crate) event: EventName,
    pub(crate) schema: Value,
    /// The bodies of an example: with identifiers alone, and with contact details.
    pub(crate) examples: EventExamples,
}

/// Builds all webhooks.
pub(super) fn all(schemas: &mut Schemas) -> Vec<Webhook> {
    for (name, person, details) in [
        ("Client", PersonSchema::Client, NamedSchema::of::<ClientDetails>()),
        ("Contact", PersonSchema::Contact, NamedSchema::of::<ContactDetails>()),
    ] {
        let id = json!({ "type": "object", "required": ["id"], "properties": { "id": person.id() } });
        let reference = schemas.insert(&format!("{name}Reference"), id);
        let details = schemas.add(details);
        schemas.insert(&format!("{name}WithDetails"), json!({ "allOf": [reference, details] }));
    }
    let webhook = |event| Webhook { event, schema: body_schema(event, schemas), examples: EventExamples::of(event) };
    EventName::all().map(webhook).collect()
}

impl Webhook {
    pub(crate) fn name(&self) -> &'static str {
        self.event.as_str()
    }

    /// Returns true if endpoints subscribe to the event, false if automations send it.
    pub(crate) fn is_emitted(&self) -> bool {
        matches!(self.event, EventName::Emitted(_))
    }

    /// Tells when the event is sent, and how a receiver comes to get it.
    pub(crate) fn about(&self) -> String {
        let sender = if self.is_emitted() {
            "Subscribe an endpoint to it."
        } else {
            "Sent by the Webhook step of an automation."
        };
        format!("{} {sender}", self.event.description())
    }

    /// Renders the webhook as JSON, under its name.
    pub(super) fn to_json(&self, mode: Mode) -> (String, Value) {
        let name = self.name();
        let EventExamples { identifiers, contact_details } = &self.examples;
        let examples = json!({
            "identifiers": { "summary": MODES[0], "value": identifiers },
            "contact_details": { "summary": MODES[1], "value": contact_details },
        });
        let content = json!({ "schema": self.schema, "examples": examples });
        let answer = |(status, about): (&str, &str)| (status.to_owned(), json!({ "description": about }));
        let answers: Map<_, _> = answers().map(answer).into_iter().collect();
        let request = json!({
            "operationId": name,
            "tags": [if self.is_emitted() { EMITTED } else { COMPUTED }],
            "summary": name,
            "description": self.about(),
            "security": [],
            "parameters": headers(name, mode).iter().map(Parameter::to_json).collect::<Vec<_>>(),
            "requestBody": { "required": true, "content": { JSON: content } },
            "responses": answers,
        });
        (name.to_owned(), json!({ "post": request }))
    }
}

/// The answers of a receiver, each with its meaning.
pub(crate) fn answers() -> [(&'static str, &'static str); 3] {
    ["2XX", "410", "default"].map(|status| (status, EVENTS.top.parts[status].as_str()))
}

/// The headers of a request of a deployment for this event.
pub(crate) fn headers(event: &str, mode: Mode) -> Vec<Parameter> {
    let header = |name, schema, example: Value| {
        let about = EVENTS.top.parts[name].as_str();
        Parameter::new(Place::Header, name, schema).required(true).about(about).example(example)
    };
    let mut headers = vec![
        header("webhook-id", json!({ "type": "string" }), json!(EVENT_ID)),
        header("webhook-timestamp", json!({ "type": "integer" }), json!(at("09:30:01.000").unix_s())),
        header("webhook-signature", json!({ "type": "string" }), json!(SIGNATURE)),
        header("x-service-event", json!({ "type": "string", "const": event }), json!(event)),
    ];
    if mode == Mode::Test {
        headers.push(header("x-service-mode", json!({ "type": "string", "const": mode }), json!(mode)));
    }
    headers
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
            person.member(): { "anyOf": forms, "description": person.meaning() },
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
            "type": { "type": "string", "const": event.as_str(), "description": EVENTS.top.parts["type"] },
            "timestamp": { "type": "string", "format": "date-time", "description": EVENTS.top.parts["timestamp"] },
            "data": { "allOf": [common, schemas.add(own)], "description": EVENTS.top.parts["data"] },
        },
    })
}
