//! The catalog of events: each event in words, with the schema of its `data` and examples. The OpenAPI document and the
//! settings show the same catalog.

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    AutomationRef, BookingEvent, BookingRescheduled, CheckInEvent, CheckInInactivity, ClientDetails, ComplianceCrossed,
    ComputedType, ContactCreated, ContactDetails, ContactMerged, ContactUpdated, DailyLogInactivity, EventGroup,
    EventName, EventType, LowCheckInScore, MessageReceived, NamedAutomation, NewClient, OpportunityCreated,
    OpportunityStageChanged, OpportunityUpdated, PayloadMode, PersonSchema, PhaseAdvanced, PhaseEligible, StepSends,
    example, example_time,
};
use crate::openapi::NamedSchema;

const CLIENT: &str = "The client. Name, e-mail address, phone number and external id come with contact details only.";
const CONTACT: &str = "The contact. Name, e-mail address and phone number come with contact details only.";
const BOOKED_CONTACT: &str = "The contact, or null if the booking has none. Name, e-mail address and phone number come \
    with contact details only.";

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
    /// The kind of records that the event is about.
    pub group: EventGroup,
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
    /// The body in the payload mode `identifiers`.
    #[schema(value_type = Object)]
    pub identifiers: Value,
    /// The body in the payload mode `contact_details`.
    #[schema(value_type = Object)]
    pub contact_details: Value,
}

/// The schema of an event's `data`, in parts.
pub struct EventSchema {
    /// The person that the event names.
    pub person: PersonSchema,
    /// The members besides the person.
    pub members: NamedSchema,
    /// The member that an automation's step adds. `None`: it is one of the members anyway, or no step sends the event.
    pub automation: Option<NamedSchema>,
}

impl PersonSchema {
    /// The meaning of the member.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Client => CLIENT,
            Self::Contact => CONTACT,
            Self::BookedContact => BOOKED_CONTACT,
        }
    }

    /// The schema of the person's id.
    pub fn id(self) -> Value {
        let meaning = match self {
            Self::Client => "Names the client in requests, as `client_id` of the client's record.",
            Self::Contact | Self::BookedContact => "Names the contact in requests, as `id` of the contact's record.",
        };
        json!({ "type": "string", "description": meaning })
    }

    /// The schema of the member in both payload modes, without references.
    fn inlined(self) -> Value {
        let (details, types) = match self {
            Self::Client => (NamedSchema::of::<ClientDetails>(), json!("object")),
            Self::Contact => (NamedSchema::of::<ContactDetails>(), json!("object")),
            Self::BookedContact => (NamedSchema::of::<ContactDetails>(), json!(["object", "null"])),
        };
        let mut properties = details.inlined()["properties"].take();
        properties["id"] = self.id();
        json!({ "type": types, "description": self.meaning(), "required": ["id"], "properties": properties })
    }
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
            group: event_type.group(),
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
            EventName::Emitted(EventType::ContactCreated) => NamedSchema::of::<ContactCreated>(),
            EventName::Emitted(EventType::ContactUpdated) => NamedSchema::of::<ContactUpdated>(),
            EventName::Emitted(EventType::ContactMerged) => NamedSchema::of::<ContactMerged>(),
            EventName::Emitted(EventType::OpportunityCreated) => NamedSchema::of::<OpportunityCreated>(),
            EventName::Emitted(EventType::OpportunityUpdated) => NamedSchema::of::<OpportunityUpdated>(),
            EventName::Emitted(EventType::OpportunityStageChanged) => NamedSchema::of::<OpportunityStageChanged>(),
            EventName::Emitted(EventType::BookingCreated | EventType::BookingCancelled) => {
                NamedSchema::of::<BookingEvent>()
            }
            EventName::Emitted(EventType::BookingRescheduled) => NamedSchema::of::<BookingRescheduled>(),
            EventName::Computed(ComputedType::ComplianceDrop | ComputedType::ComplianceMilestone) => {
                NamedSchema::of::<ComplianceCrossed>()
            }
            EventName::Computed(ComputedType::PhaseEligible) => NamedSchema::of::<PhaseEligible>(),
            EventName::Computed(ComputedType::CheckInInactivity) => NamedSchema::of::<CheckInInactivity>(),
            EventName::Computed(ComputedType::DailyLogInactivity) => NamedSchema::of::<DailyLogInactivity>(),
        };
        let automation = match event_type.sent_by_steps() {
            StepSends::Nothing | StepSends::AsIs => None,
            StepSends::WithId => Some(NamedSchema::of::<AutomationRef>()),
            StepSends::WithName => Some(NamedSchema::of::<NamedAutomation>()),
        };
        Self { person: PersonSchema::of(event_type), members, automation }
    }

    /// Returns the schema of the whole `data`, without references.
    fn into_whole(self) -> Value {
        let own = self.members.inlined();
        let mut properties = own["properties"].clone();
        let person = self.person.member();
        properties[person] = self.person.inlined();
        if let Some(automation) = self.automation {
            properties["automation"] = automation.inlined();
        }
        let own_required = own["required"].as_array().into_iter().flatten().cloned();
        let required: Vec<Value> = [json!(person)].into_iter().chain(own_required).collect();
        json!({ "type": "object", "required": required, "properties": properties })
    }
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
            let is_required = schema["required"].as_array().unwrap().contains(&json!("automation"));
            let is_added = described.contains(&"automation") && !is_required;
            described.retain(|name| *name != "automation" || is_required);
            assert_eq!(is_added, EventSchema::of(entry.event_type).automation.is_some());
            for body in [&entry.examples.identifiers, &entry.examples.contact_details] {
                assert_eq!(names(body), ["data", "timestamp", "type"]);
                assert_eq!(body["type"], entry.event_type.as_str());
                assert_eq!(names(&body["data"]), described, "without `test`");
            }
            let person = PersonSchema::of(entry.event_type).member();
            let [bare, detailed] =
                [&entry.examples.identifiers, &entry.examples.contact_details].map(|body| &body["data"]);
            assert_eq!(names(&detailed[person]), names(&schema["properties"][person]["properties"]));
            assert_eq!(names(&bare[person]), ["id"]);
            if let Some(opportunity) = schema["properties"].get("opportunity") {
                let mut members = names(&opportunity["properties"]);
                assert_eq!(names(&detailed["opportunity"]), members);
                members.retain(|name| *name != "name");
                assert_eq!(names(&bare["opportunity"]), members, "a name may name a person");
            }
        }
    }
}
