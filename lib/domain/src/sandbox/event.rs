//! An event on demand: the example of any event, about a person of the workspace.

use serde::Serialize;
use serde_json::Value;

use crate::event::{Event, EventGroup, EventName, Person, example};
use crate::fields::{Fields, Invalid};
use crate::id::{ClientId, CoachId, ContactId, EndpointId, EventId, MAX_ID_CHARS};
use crate::openapi::{Body, Field};
use crate::time::Timestamp;

/// Most events on demand of a workspace in a UTC day.
pub const EVENTS_PER_DAY: u32 = 500;

const MAX_TYPE_CHARS: usize = 64;
const ID_PATTERN: &str = "^[A-Za-z0-9._:|-]+$";

/// The person that an event on demand is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventSubject {
    /// The person of the example, who is nobody.
    Example,
    Client(ClientId),
    Contact(ContactId),
}

/// An event on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxEvent {
    pub event_type: EventName,
    pub subject: EventSubject,
}

/// The answer to an event on demand.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct SentEvent {
    /// The `webhook-id` of the event at each endpoint, and its `id` in the event feed.
    pub id: EventId,
}

impl SandboxEvent {
    /// Parses the body of `POST /v1/test/events`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::body(body)?;
        fields.only(&["type", "client_id", "contact_id"])?;
        let event_type = fields.required("type", MAX_TYPE_CHARS, EventName::parse)?;
        let client = fields.parsed("client_id", MAX_ID_CHARS, |text| {
            ClientId::parse(text).map_err(|_| "must be the client_id of a client")
        })?;
        let contact =
            fields.parsed("contact_id", MAX_ID_CHARS, |text| ContactId::parse(text).map_err(|_| "must be a UUID"))?;
        let is_of_client = event_type.group() == EventGroup::Client;
        let subject = match (client, contact) {
            (Some(_), Some(_)) => return Err(fields.refuse("contact_id", "cannot be given together with client_id")),
            (Some(_), None) if !is_of_client => {
                return Err(fields.refuse("client_id", format_args!("does not go with {}", event_type.as_str())));
            }
            (None, Some(_)) if is_of_client => {
                return Err(fields.refuse("contact_id", format_args!("does not go with {}", event_type.as_str())));
            }
            (Some(client), None) => EventSubject::Client(client),
            (None, Some(contact)) => EventSubject::Contact(contact),
            (None, None) => EventSubject::Example,
        };
        Ok(Self { event_type, subject })
    }

    pub fn schema() -> Body {
        let names: Vec<&str> = EventName::all().map(EventName::as_str).collect();
        let client = "A client of the workspace, for an event about clients. Default: the client of the example.";
        let contact = "A contact of the workspace, for an event of the CRM. Default: the contact of the example.";
        Body::new([
            ("type", Field::one_of(&names).required().about("Any event, computed ones included.")),
            ("client_id", Field::formed(ID_PATTERN, MAX_ID_CHARS).about(client)),
            ("contact_id", Field::uuid().about(contact)),
        ])
        .closed()
    }

    /// Creates the event for a coach. `person` is the person of the subject. A computed event goes to `endpoints`, an
    /// emitted one to its subscribers.
    pub fn event(
        &self,
        coach: &CoachId,
        person: Option<Person>,
        endpoints: Vec<EndpointId>,
        at: Timestamp,
        random: [u8; 12],
    ) -> Event {
        let example = example(self.event_type, at);
        Event {
            id: EventId::derive(at.ms(), &["sandbox", &hex::encode(random)]),
            coach_id: coach.clone(),
            person: person.unwrap_or(example.person),
            to: match self.event_type {
                EventName::Computed(_) => endpoints,
                EventName::Emitted(_) => Vec::new(),
            },
            ..example
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UUID: &str = "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69";

    #[test]
    fn each_event_takes_an_id_of_its_own_subject_alone() {
        for event in EventName::all() {
            let name = event.as_str();
            let of = |body: Value| SandboxEvent::parse(&body);
            assert_eq!(of(json!({ "type": name })).unwrap().subject, EventSubject::Example);
            let client = of(json!({ "type": name, "client_id": "c1" }));
            let contact = of(json!({ "type": name, "contact_id": UUID }));
            let (good, bad, field) = match event.group() {
                EventGroup::Client => (client, contact, "contact_id"),
                _ => (contact, client, "client_id"),
            };
            assert_ne!(good.unwrap().subject, EventSubject::Example);
            assert_eq!(bad.unwrap_err().field.as_deref(), Some(field));
            let both = of(json!({ "type": name, "client_id": "c1", "contact_id": UUID }));
            assert_eq!(both.unwrap_err().field.as_deref(), Some("contact_id"));
        }
    }

    #[test]
    fn a_computed_event_goes_to_the_endpoints_and_an_emitted_one_to_subscribers() {
        let coach = CoachId::parse("ada").unwrap();
        let endpoint = EndpointId::parse("wh_1").unwrap();
        for event_type in EventName::all() {
            let wanted = SandboxEvent { event_type, subject: EventSubject::Example };
            let at = Timestamp::from_ms(1_790_000_000_000);
            let event = wanted.event(&coach, None, vec![endpoint.clone()], at, [7; 12]);
            assert_eq!(event.to.is_empty(), matches!(event_type, EventName::Emitted(_)));
            assert_eq!((&event.coach_id, event.event_type, event.occurred_at), (&coach, event_type, at));
        }
    }
}
