//! The events that a key may read from the event feed, which a coach allows per key.

use serde::{Deserialize, Serialize};

use crate::event::{EventType, PayloadMode};
use crate::fields::{Fields, Invalid};
use crate::openapi::{Body, Field};

const MAX_MODE_CHARS: usize = 32;

/// The events that a key may read, and how much of a person's data they hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EventAccess {
    /// The types of the events: emitted events only, at least one, each once, in the order of the catalogue.
    pub types: Vec<EventType>,
    /// The amount of personal data in the events.
    pub payload_mode: PayloadMode,
}

impl EventAccess {
    /// Parses the member `events` of a key's body.
    pub fn parse(fields: Fields<'_>) -> Result<Self, Invalid> {
        fields.only(&["types", "payload_mode"])?;
        let types = fields.list("types", &EventType::ALL, EventType::as_str)?;
        let types = types.ok_or_else(|| fields.refuse("types", "is required"))?;
        if types.is_empty() {
            return Err(fields.refuse("types", "must name at least one event"));
        }
        Ok(Self { types, payload_mode: fields.required("payload_mode", MAX_MODE_CHARS, PayloadMode::parse)? })
    }

    /// Returns the schema of the member `events` of a key's body.
    pub fn schema() -> Body {
        Body::new([
            (
                "types",
                Field::list_of(&EventType::ALL.map(EventType::as_str), 1)
                    .required()
                    .about("The emitted events that the key may read, at least one."),
            ),
            (
                "payload_mode",
                Field::one_of(&PayloadMode::ALL.map(PayloadMode::as_str)).required().about(
                    "`identifiers`: ids, figures and dates. `contact_details`: also the person's name, e-mail address, \
                     phone number and external id, and the names of opportunities.",
                ),
            ),
        ])
        .closed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(events: &Value) -> Result<Option<EventAccess>, Invalid> {
        let body = json!({ "events": events });
        Fields::body(&body)?.nested("events", EventAccess::parse)
    }

    #[test]
    fn each_event_is_kept_once_in_the_order_of_the_catalogue() {
        let given = ["message_received", "new_client", "message_received", "check_in_submitted"];
        let access = parse(&json!({ "types": given, "payload_mode": "contact_details" })).unwrap().unwrap();
        assert_eq!(access.types, [EventType::NewClient, EventType::CheckInSubmitted, EventType::MessageReceived]);
        assert_eq!(access.payload_mode, PayloadMode::ContactDetails);
        assert_eq!(parse(&Value::Null), Ok(None));
    }

    #[test]
    fn a_refusal_names_the_field_within_events() {
        let mode = "identifiers";
        for (events, field) in [
            (json!([]), "events"),
            (json!("new_client"), "events"),
            (json!({}), "events.types"),
            (json!({ "types": [], "payload_mode": mode }), "events.types"),
            (json!({ "types": ["compliance_drop"], "payload_mode": mode }), "events.types"),
            (json!({ "types": ["new_client"] }), "events.payload_mode"),
            (json!({ "types": ["new_client"], "payload_mode": "all" }), "events.payload_mode"),
            (json!({ "types": ["new_client"], "payload_mode": mode, "url": "x" }), "events.url"),
        ] {
            let refused = parse(&events).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some(field), "{events}");
            assert!(refused.message.starts_with(&format!("{field} ")), "{refused}");
        }
    }
}
