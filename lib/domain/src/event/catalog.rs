//! The catalog of events: each event in words, with the schema of its `data` and examples. The OpenAPI document and the
//! settings show the same catalog.

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    AutomationRef, CheckInEvent, CheckInInactivity, ComplianceCrossed, ComputedType, ContactDetails,
    DailyLogInactivity, EventName, EventType, LowCheckInScore, MessageReceived, NamedAutomation, NewClient,
    PayloadMode, PhaseAdvanced, PhaseEligible, example, example_time,
};
use crate::openapi::NamedSchema;

const CLIENT: &str = "The client. Name, e-mail address, phone number and external id come with contact details only.";

/// All events.
#[derive(Serialize, utoipa::ToSchema)]
pub struct EventCatalog {
    /// Emitted events first.
    pub data: Vec<EventEntry>,
}

/// An event of the catalog.
#[derive(Serialize, utoipa::ToSchema)]
pub struct EventEntry {
    /// The name of the event.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub event_type: EventName,
    pub kind: EventKind,
    /// The name in words.
    pub title: &'static str,
    /// When the event happens.
    pub description: &'static str,
    /// The JSON Schema of `data`, without references.
    #[schema(value_type = Object)]
    pub schema: Value,
    pub examples: EventExamples,
}

crate::named! {
    /// Emitted events can be subscribed to. Computed events are sent by the Webhook step of an automation.
    EventKind {
        Emitted = "emitted",
        Computed = "computed",
    }
}

/// The body of an example event, for each payload mode.
#[derive(Serialize, utoipa::ToSchema)]
pub struct EventExamples {
    #[schema(value_type = Object)]
    pub identifiers: Value,
    #[schema(value_type = Object)]
    pub contact_details: Value,
}

/// The schema of an event's `data`, in parts.
pub struct EventSchema {
    /// The members besides `client`.
    pub members: NamedSchema,
    /// The member that an automation's step adds. `None`: it is one of the members anyway.
    pub automation: Option<NamedSchema>,
}

impl EventCatalog {
    /// Returns the whole catalog.
    pub fn all() -> Self {
        Self { data: EventName::all().map(EventEntry::of).collect() }
    }
}

impl EventEntry {
    fn of(event_type: EventName) -> Self {
        Self {
            event_type,
            kind: event_type.kind(),
            title: event_type.title(),
            description: event_type.description(),
            schema: EventSchema::of(event_type).into_whole(),
            examples: EventExamples::of(event_type),
        }
    }
}

impl EventName {
    pub fn kind(self) -> EventKind {
        match self {
            Self::Emitted(_) => EventKind::Emitted,
            Self::Computed(_) => EventKind::Computed,
        }
    }
}

impl EventExamples {
    /// Renders the example of an event.
    pub fn of(event_type: EventName) -> Self {
        let event = example(event_type, example_time());
        let body = |mode| serde_json::from_slice(&event.render(mode)).expect("an event renders as JSON");
        Self { identifiers: body(PayloadMode::Identifiers), contact_details: body(PayloadMode::ContactDetails) }
    }
}

impl EventSchema {
    /// Returns the schema of the types that render the event.
    pub fn of(event_type: EventName) -> Self {
        let members = match event_type {
            EventName::Emitted(EventType::NewClient) => NamedSchema::of::<NewClient>(),
            EventName::Emitted(EventType::CheckInSubmitted | EventType::SystemGradeDrop) => {
                NamedSchema::of::<CheckInEvent>()
            }
            EventName::Emitted(EventType::LowCheckInScore) => NamedSchema::of::<LowCheckInScore>(),
            EventName::Emitted(EventType::PhaseAdvanced) => NamedSchema::of::<PhaseAdvanced>(),
            EventName::Emitted(EventType::MessageReceived) => NamedSchema::of::<MessageReceived>(),
            EventName::Computed(ComputedType::ComplianceDrop | ComputedType::ComplianceMilestone) => {
                NamedSchema::of::<ComplianceCrossed>()
            }
            EventName::Computed(ComputedType::PhaseEligible) => NamedSchema::of::<PhaseEligible>(),
            EventName::Computed(ComputedType::CheckInInactivity) => NamedSchema::of::<CheckInInactivity>(),
            EventName::Computed(ComputedType::DailyLogInactivity) => NamedSchema::of::<DailyLogInactivity>(),
        };
        let automation = match event_type {
            EventName::Emitted(EventType::LowCheckInScore) | EventName::Computed(_) => None,
            EventName::Emitted(EventType::SystemGradeDrop) => Some(NamedSchema::of::<AutomationRef>()),
            EventName::Emitted(
                EventType::NewClient
                | EventType::CheckInSubmitted
                | EventType::PhaseAdvanced
                | EventType::MessageReceived,
            ) => Some(NamedSchema::of::<NamedAutomation>()),
        };
        Self { members, automation }
    }

    /// Returns the schema of the whole `data`, without references.
    fn into_whole(self) -> Value {
        let own = self.members.inlined();
        let mut properties = own["properties"].clone();
        properties["client"] = client();
        if let Some(automation) = self.automation {
            properties["automation"] = automation.inlined();
        }
        let own_required = own["required"].as_array().into_iter().flatten().cloned();
        let required: Vec<Value> = [json!("client")].into_iter().chain(own_required).collect();
        json!({ "type": "object", "required": required, "properties": properties })
    }
}

/// The schema of `data.client` in both payload modes.
fn client() -> Value {
    let mut properties = NamedSchema::of::<ContactDetails>().inlined()["properties"].take();
    properties["id"] = json!({ "type": "string" });
    json!({ "type": "object", "description": CLIENT, "required": ["id"], "properties": properties })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of an object's members.
    fn names(object: &Value) -> Vec<&str> {
        object.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn the_catalog_has_every_event_once_emitted_ones_first() {
        let catalog = EventCatalog::all();
        assert!(catalog.data.iter().map(|entry| entry.event_type).eq(EventName::all()));
        assert!(catalog.data.is_sorted_by_key(|entry| entry.kind));
        let mut titles: Vec<&str> = catalog.data.iter().map(|entry| entry.title).collect();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), catalog.data.len());
        assert!(catalog.data.iter().all(|entry| entry.description.ends_with('.')));
    }

    #[test]
    fn a_schema_has_no_references_and_exactly_the_members_of_the_examples() {
        for entry in EventCatalog::all().data {
            let schema = &entry.schema;
            assert!(!schema.to_string().contains("$ref"), "{schema}");
            let mut described = names(&schema["properties"]);
            // A step adds the member to an emitted event.
            let is_added = !schema["required"].as_array().unwrap().contains(&json!("automation"));
            described.retain(|name| *name != "automation" || !is_added);
            assert_eq!(is_added, EventSchema::of(entry.event_type).automation.is_some());
            for body in [&entry.examples.identifiers, &entry.examples.contact_details] {
                assert_eq!(names(body), ["data", "timestamp", "type"]);
                assert_eq!(body["type"], entry.event_type.as_str());
                assert_eq!(names(&body["data"]), described, "without `test`");
            }
            let contact = names(&schema["properties"]["client"]["properties"]);
            assert_eq!(names(&entry.examples.contact_details["data"]["client"]), contact);
            assert_eq!(names(&entry.examples.identifiers["data"]["client"]), ["id"]);
        }
    }
}
