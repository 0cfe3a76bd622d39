//! Events, and the bodies that receivers get.
//!
//! A body renders from an allow-list type per event, never from a stored record: a field that is not named there cannot
//! leave. An emitted event goes to the endpoints that subscribe to it. The Webhook steps of automations send emitted
//! and computed events to the endpoints that they name.

mod catalog;
mod crm;
mod crm_data;
mod data;
mod example;
mod name;
mod payload_mode;
mod person;
mod wait;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::check_in::SubmissionTimes;
use crate::client::{Client, PhaseAdvance};
use crate::id::{AutomationId, CheckInId, CoachId, EndpointId, EventId, MessageId};
use crate::subject::Subject;
use crate::time::Timestamp;

pub use catalog::{EventCatalog, EventEntry, EventExamples, EventKind, EventSchema};
pub use crm_data::{
    BookingEvent, BookingRef, BookingRescheduled, ContactCreated, ContactField, ContactMerged, ContactSource,
    ContactUpdated, MergedContactRef, OpportunityCreated, OpportunityField, OpportunityRef, OpportunityStageChanged,
    OpportunityUpdated,
};
pub use data::{
    AutomationContext, AutomationRef, AutomationWithThreshold, CheckInEvent, CheckInInactivity, CheckInRef,
    ComplianceCrossed, DailyLogInactivity, EventData, LowCheckInScore, MessageReceived, MessageRef, NamedAutomation,
    NewClient, PhaseAdvanced, PhaseEligible,
};
pub use example::{example, example_time};
pub(crate) use name::StepSends;
pub use name::{ComputedType, EventGroup, EventName, EventType};
pub use payload_mode::PayloadMode;
pub use person::{ClientDetails, ContactDetails, NamedContact, Person, PersonSchema};
pub use wait::{CONTACT_WAIT, next_look_s};

/// An event in a coach's workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub coach_id: CoachId,
    pub person: Person,
    pub occurred_at: Timestamp,
    #[serde(rename = "type")]
    pub event_type: EventName,
    pub data: EventData,
    /// The automation that sends the event, unless the data names one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation: Option<AutomationContext>,
    /// The endpoints that an automation's steps name, whatever they subscribe to. Empty: the event is for subscribers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<EndpointId>,
}

impl Event {
    /// Creates `new_client`. A client is created once, so the event's id derives from the client's id and that time.
    pub fn new_client(client: &Client, occurred_at: Timestamp) -> Self {
        let data = EventData::NewClient(NewClient { created_at: client.created_at, source: client.origin });
        Self::of(client, EventType::NewClient, &[client.id.as_str()], occurred_at, data)
    }

    /// Creates `check_in_submitted`, or `system_grade_drop` if a grade dropped: each once per check-in. The event's
    /// time is the first submission time that was given, so a corrected check-in emits nothing twice.
    pub fn of_check_in(client: &Client, event_type: EventType, check_in: &CheckInId, times: SubmissionTimes) -> Self {
        let data = CheckInEvent { check_in: CheckInRef { id: check_in.clone(), submitted_at: times.submitted_at } };
        let data = EventData::CheckIn(data);
        Self::of(client, event_type, &[check_in.as_str()], times.first_submitted_at, data)
    }

    /// Creates `low_check_in_score`, once per check-in and automation.
    pub fn low_check_in_score(
        client: &Client,
        check_in: &CheckInId,
        submitted_at: Timestamp,
        automation: &AutomationId,
    ) -> Self {
        let check_in = CheckInRef { id: check_in.clone(), submitted_at };
        let cause = [check_in.id.as_str(), automation.as_str()];
        let data = LowCheckInScore { check_in: check_in.clone(), automation: AutomationRef { id: automation.clone() } };
        let data = EventData::LowCheckInScore(data);
        Self::of(client, EventType::LowCheckInScore, &cause, submitted_at, data)
    }

    /// Creates `phase_advanced`, once per entered phase and time.
    pub fn phase_advanced(client: &Client, advance: &PhaseAdvance) -> Self {
        let PhaseAdvance { from_phase, to_phase, advanced_at } = advance.clone();
        let cause = to_phase.clone();
        let data = EventData::PhaseAdvanced(PhaseAdvanced { from_phase, to_phase, advanced_at });
        Self::of(client, EventType::PhaseAdvanced, &[&cause], advanced_at, data)
    }

    /// Creates `message_received`, once per message.
    pub fn message_received(client: &Client, message: &MessageId, received_at: Timestamp) -> Self {
        let data = MessageReceived { message: MessageRef { id: message.clone(), received_at } };
        Self::of(client, EventType::MessageReceived, &[message.as_str()], received_at, EventData::MessageReceived(data))
    }

    /// Creates a client's event with an id that derives from these causes.
    pub(crate) fn of(
        client: &Client,
        event_type: impl Into<EventName>,
        causes: &[&str],
        occurred_at: Timestamp,
        data: EventData,
    ) -> Self {
        let causes = [&[client.id.as_str()], causes].concat();
        Self::about(&client.coach_id, Person::client(client), event_type, &causes, occurred_at, data)
    }

    /// Creates an event about a person with an id that derives from its type and these causes.
    fn about(
        coach: &CoachId,
        person: Person,
        event_type: impl Into<EventName>,
        causes: &[&str],
        occurred_at: Timestamp,
        data: EventData,
    ) -> Self {
        let event_type = event_type.into();
        Self {
            id: EventId::derive(occurred_at.ms(), &[&[event_type.as_str()], causes].concat()),
            coach_id: coach.clone(),
            person,
            occurred_at,
            event_type,
            data,
            automation: None,
            to: Vec::new(),
        }
    }

    /// The subject of the event: the person that it names.
    pub fn subject(&self) -> Subject {
        self.person.subject()
    }

    /// Returns true if the service may emit the same event, with the same id, more than once: a late check-in reveals
    /// the grade drop of a later one, which an earlier late check-in may have revealed before.
    pub fn may_repeat(&self) -> bool {
        self.event_type == EventType::SystemGradeDrop.into()
    }

    /// Returns true for an endpoint that a step names, or, without steps, for one that subscribes to the event.
    pub fn is_for(&self, endpoint: &EndpointId, subscribed: &[EventType]) -> bool {
        match self.event_type {
            EventName::Emitted(event_type) if self.to.is_empty() => subscribed.contains(&event_type),
            EventName::Emitted(_) | EventName::Computed(_) => self.to.contains(endpoint),
        }
    }

    /// Renders the body for receivers of this mode: the same bytes on each attempt.
    pub fn render(&self, mode: PayloadMode) -> Vec<u8> {
        body(self.event_type, self.occurred_at, &Value::Object(self.data_for(mode)))
    }

    /// Returns the members of `data` for receivers of this mode.
    pub(crate) fn data_for(&self, mode: PayloadMode) -> Map<String, Value> {
        let mut data = Map::new();
        let (name, person) = self.person.member(mode);
        data.insert(name.to_owned(), person);
        if let Value::Object(own) = self.data.for_mode(mode).members() {
            data.extend(own);
        }
        if let Some(automation) = &self.automation {
            data.insert("automation".to_owned(), json!(automation));
        }
        data
    }
}

/// Renders a webhook's body, with its members in the order that Standard Webhooks shows.
pub(crate) fn body(event: EventName, timestamp: Timestamp, data: &Value) -> Vec<u8> {
    #[derive(Serialize)]
    struct WebhookBody<'a> {
        r#type: &'a str,
        timestamp: Timestamp,
        data: &'a Value,
    }
    let body = WebhookBody { r#type: event.as_str(), timestamp, data };
    serde_json::to_vec(&body).expect("texts and JSON can be written as JSON")
}

#[cfg(test)]
pub(crate) mod tests;
