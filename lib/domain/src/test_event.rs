//! Test events, with which a coach tests a receiver; computed events included. They are the examples of the events,
//! marked as tests.

use serde_json::{Value, json};

use crate::event::{self, EventName, EventType, PayloadMode};
use crate::fields::{Fields, Invalid};
use crate::openapi::{Body, Field};
use crate::time::Timestamp;

/// Parses the body of `POST /settings/webhooks/{id}/test`: the type of the example. Default: the first event that the
/// endpoint is subscribed to.
pub fn parse(body: Option<&Value>, subscribed: &[EventType]) -> Result<EventName, Invalid> {
    const NAME_CHARS: usize = 64;
    let asked = match body {
        Some(body) => {
            let fields = Fields::body(body)?;
            fields.only(&["type"])?;
            fields.parsed("type", NAME_CHARS, EventName::parse)?
        }
        None => None,
    };
    Ok(asked.unwrap_or_else(|| subscribed.first().copied().unwrap_or(EventType::NewClient).into()))
}

pub fn schema() -> Body {
    let names: Vec<&str> = EventName::all().map(EventName::as_str).collect();
    let about = "Any event, computed ones included. Default: the first event that the endpoint is subscribed to.";
    Body::new([("type", Field::one_of(&names).about(about))]).closed()
}

/// Renders the body of a test event for receivers of that mode.
pub fn body(event: EventName, mode: PayloadMode, at: Timestamp) -> Vec<u8> {
    let mut data = event::example(event, at).data_for(mode);
    data.insert("test".to_owned(), json!(true));
    event::body(event, at, &Value::Object(data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PersonSchema;

    #[test]
    fn an_example_is_marked_and_names_somebody_only_where_that_is_wanted() {
        for event in EventName::all() {
            let at = Timestamp::from_ms(1_790_000_000_000);
            let read = |mode| serde_json::from_slice::<Value>(&body(event, mode, at)).unwrap();
            let bare = read(PayloadMode::Identifiers);
            assert_eq!((&bare["type"], &bare["data"]["test"]), (&json!(event.as_str()), &json!(true)));
            let detailed = read(PayloadMode::ContactDetails);
            let client = json!({
                "id": "client_example", "name": "Example Client", "email": "client@example.com",
                "phone": "+1 415 555 0132", "external_id": "patient-1815",
            });
            let contact = json!({
                "id": "01900000-0000-7000-8000-00000000c0de", "name": "Example Contact",
                "email": "contact@example.com", "phone": "+1 415 555 0132",
            });
            let (member, person) = match PersonSchema::of(event) {
                PersonSchema::Client => ("client", client),
                PersonSchema::Contact | PersonSchema::BookedContact => ("contact", contact),
            };
            assert_eq!(bare["data"][member], json!({ "id": person["id"] }));
            assert_eq!(detailed["data"][member], person);
        }
    }

    #[test]
    fn an_example_is_of_the_type_that_is_asked_for_or_the_first_that_is_subscribed_to() {
        let subscribed = [EventType::PhaseAdvanced, EventType::MessageReceived];
        let asked = |body: Value| parse(Some(&body), &subscribed);
        for event in EventName::all() {
            assert_eq!(asked(json!({ "type": event.as_str() })), Ok(event));
        }
        for default in [asked(json!({})), asked(json!({ "type": null })), parse(None, &subscribed)] {
            assert_eq!(default, Ok(EventType::PhaseAdvanced.into()));
        }
        assert_eq!(parse(None, &[]), Ok(EventType::NewClient.into()));
        for (wrong, field) in [(json!({ "type": "compliance" }), "type"), (json!({ "kind": "new_client" }), "kind")] {
            assert_eq!(asked(wrong).unwrap_err().field.as_deref(), Some(field));
        }
    }

    #[test]
    fn the_types_that_are_listed_are_those_that_are_taken() {
        let listed = schema().into_json()["properties"]["type"]["enum"].clone();
        let listed: Vec<&str> = listed.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(listed, EventName::all().map(EventName::as_str).collect::<Vec<_>>());
    }
}
