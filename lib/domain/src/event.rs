//! Events that receivers subscribe to, and the bodies they get.
//!
//! A body is rendered from an allow-list type per event, never from a stored record: what is not named here cannot leave.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::automation::Automation;
use crate::client::{Client, Origin};
use crate::email::Email;
use crate::fact::PhaseAdvance;
use crate::id::{AutomationId, CheckInId, ClientId, CoachId, EndpointId, EventId, MessageId};
use crate::phone::Phone;
use crate::time::Timestamp;

/// Events that happen at a definite instant and can be subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    NewClient,
    CheckInSubmitted,
    LowCheckInScore,
    SystemGradeDrop,
    PhaseAdvanced,
    MessageReceived,
}

impl EventType {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NewClient,
        Self::CheckInSubmitted,
        Self::LowCheckInScore,
        Self::SystemGradeDrop,
        Self::PhaseAdvanced,
        Self::MessageReceived,
    ];

    /// The event's name in `type` and `x-service-event`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NewClient => "new_client",
            Self::CheckInSubmitted => "check_in_submitted",
            Self::LowCheckInScore => "low_check_in_score",
            Self::SystemGradeDrop => "system_grade_drop",
            Self::PhaseAdvanced => "phase_advanced",
            Self::MessageReceived => "message_received",
        }
    }

    /// The event of that name.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|event| event.as_str() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str);
            format!("takes {}", names.join(", "))
        })
    }
}

/// How much of a person a receiver is told. Fixed when an endpoint is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PayloadMode {
    /// Ids, figures, dates, automation context.
    Identifiers,
    /// Also name, e-mail address and phone number.
    ContactDetails,
}

impl PayloadMode {
    /// The mode of that name.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "identifiers" => Ok(Self::Identifiers),
            "contact_details" => Ok(Self::ContactDetails),
            _ => Err("must be identifiers or contact_details"),
        }
    }

    /// The mode's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identifiers => "identifiers",
            Self::ContactDetails => "contact_details",
        }
    }
}

/// What `Include contact details` adds to `data.client`. A null is kept: it says that there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ContactDetails {
    pub name: String,
    #[cfg_attr(feature = "openapi", schema(required))]
    pub email: Option<Email>,
    #[cfg_attr(feature = "openapi", schema(required))]
    pub phone: Option<Phone>,
}

impl ContactDetails {
    /// What a client's record has of them.
    pub fn of(client: &Client) -> Self {
        let profile = &client.profile;
        Self { name: profile.full_name.clone(), email: profile.email.clone(), phone: profile.phone.clone() }
    }
}

/// What an event says beside the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EventData {
    NewClient(NewClient),
    PhaseAdvanced(PhaseAdvanced),
    MessageReceived(MessageReceived),
    // Before the one whose members it has besides its own.
    LowCheckInScore(LowCheckInScore),
    CheckIn(CheckInEvent),
}

/// `new_client`: a client was created by anyone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewClient {
    pub created_at: Timestamp,
    pub source: Origin,
}

/// `phase_advanced`: a client moved to a new phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PhaseAdvanced {
    #[cfg_attr(feature = "openapi", schema(required))]
    pub from_phase: Option<String>,
    pub to_phase: String,
    pub advanced_at: Timestamp,
}

/// `message_received`: a client sent a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MessageReceived {
    pub message: MessageRef,
}

/// A message, without a word of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MessageRef {
    pub id: MessageId,
    pub received_at: Timestamp,
}

/// `check_in_submitted` and `system_grade_drop`: neither answers nor score, neither the system nor its grade.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckInEvent {
    pub check_in: CheckInRef,
}

/// `low_check_in_score`: an answer was below an automation's threshold. Neither the answer nor what tells of it: no question, no
/// threshold, no name of the automation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LowCheckInScore {
    pub check_in: CheckInRef,
    pub automation: AutomationRef,
}

/// A rule of a coach's that an event met, by its id alone: a name or threshold would tell the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AutomationRef {
    pub id: AutomationId,
}

/// A rule of a coach's that an event met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedAutomation {
    pub id: AutomationId,
    pub name: String,
}

/// What an automation that sends an event adds to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AutomationContext {
    // Before the one whose members it has besides its own.
    Named(NamedAutomation),
    ById(AutomationRef),
}

/// A check-in, without its answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckInRef {
    pub id: CheckInId,
    pub submitted_at: Timestamp,
}

/// Something that happened to a client of a coach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub coach_id: CoachId,
    pub client_id: ClientId,
    pub contact: ContactDetails,
    pub occurred_at: Timestamp,
    #[serde(rename = "type")]
    pub event_type: EventType,
    pub data: EventData,
    /// The automation that sends it, unless the data names one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation: Option<AutomationContext>,
    /// The endpoints that an automation's steps name, whatever they subscribe to; empty where it is for subscribers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<EndpointId>,
}

impl Event {
    /// `new_client`. A client is created once, so the client tells the event.
    pub fn new_client(client: &Client, occurred_at: Timestamp) -> Self {
        let data = EventData::NewClient(NewClient { created_at: client.created_at, source: client.origin });
        Self::of(client, EventType::NewClient, client.id.as_str(), occurred_at, data)
    }

    /// `check_in_submitted`, and `system_grade_drop` where a grade fell: each once per check-in.
    pub fn of_check_in(client: &Client, event_type: EventType, check_in: &CheckInId, submitted_at: Timestamp) -> Self {
        let data = CheckInEvent { check_in: CheckInRef { id: check_in.clone(), submitted_at } };
        Self::of(client, event_type, check_in.as_str(), submitted_at, EventData::CheckIn(data))
    }

    /// `low_check_in_score`, once per check-in and automation.
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
        Self::of_causes(client, EventType::LowCheckInScore, &cause, submitted_at, data)
    }

    /// The same as an automation's Webhook steps send it: an event of its own, once per cause and automation. `None` where no step does.
    pub fn sent_by(&self, automation: &Automation) -> Option<Self> {
        let to = automation.endpoints();
        if to.is_empty() {
            return None;
        }
        let id = automation.id.clone();
        let context = match self.event_type {
            EventType::LowCheckInScore => None,
            EventType::SystemGradeDrop => Some(AutomationContext::ById(AutomationRef { id })),
            EventType::NewClient
            | EventType::CheckInSubmitted
            | EventType::PhaseAdvanced
            | EventType::MessageReceived => {
                Some(AutomationContext::Named(NamedAutomation { id, name: automation.name.clone() }))
            }
        };
        let cause = ["automation", self.id.as_str(), automation.id.as_str()];
        let id = EventId::derive(self.occurred_at.ms(), &cause);
        Some(Self { id, automation: context, to, ..self.clone() })
    }

    /// `phase_advanced`, once per phase that was come to and time.
    pub fn phase_advanced(client: &Client, advance: &PhaseAdvance) -> Self {
        let PhaseAdvance { from_phase, to_phase, advanced_at } = advance.clone();
        let cause = to_phase.clone();
        let data = EventData::PhaseAdvanced(PhaseAdvanced { from_phase, to_phase, advanced_at });
        Self::of(client, EventType::PhaseAdvanced, &cause, advanced_at, data)
    }

    /// `message_received`, once per message.
    pub fn message_received(client: &Client, message: &MessageId, received_at: Timestamp) -> Self {
        let data = MessageReceived { message: MessageRef { id: message.clone(), received_at } };
        Self::of(client, EventType::MessageReceived, message.as_str(), received_at, EventData::MessageReceived(data))
    }

    /// The event that `cause`, something in the client's life, stands for.
    fn of(client: &Client, event_type: EventType, cause: &str, occurred_at: Timestamp, data: EventData) -> Self {
        Self::of_causes(client, event_type, &[cause], occurred_at, data)
    }

    fn of_causes(
        client: &Client,
        event_type: EventType,
        causes: &[&str],
        occurred_at: Timestamp,
        data: EventData,
    ) -> Self {
        let causes = [&[event_type.as_str(), client.id.as_str()], causes].concat();
        Self {
            id: EventId::derive(occurred_at.ms(), &causes),
            coach_id: client.coach_id.clone(),
            client_id: client.id.clone(),
            contact: ContactDetails::of(client),
            occurred_at,
            event_type,
            data,
            automation: None,
            to: Vec::new(),
        }
    }

    /// Whether an endpoint is meant: one that a step names, or else one that subscribes to such events.
    pub fn is_for(&self, endpoint: &EndpointId, subscribed: &[EventType]) -> bool {
        if self.to.is_empty() { subscribed.contains(&self.event_type) } else { self.to.contains(endpoint) }
    }

    /// The body that receivers of this mode get: the same bytes on each attempt.
    pub fn render(&self, mode: PayloadMode) -> Vec<u8> {
        let mut client = json!({ "id": self.client_id });
        if mode == PayloadMode::ContactDetails {
            client["name"] = json!(self.contact.name);
            client["email"] = json!(self.contact.email);
            client["phone"] = json!(self.contact.phone);
        }
        let mut data = Map::new();
        data.insert("client".to_owned(), client);
        if let Value::Object(own) = json!(self.data) {
            data.extend(own);
        }
        if let Some(automation) = &self.automation {
            data.insert("automation".to_owned(), json!(automation));
        }
        let body = json!({ "type": self.event_type.as_str(), "timestamp": self.occurred_at, "data": data });
        body.to_string().into_bytes()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::{Phase, Profile};

    pub(crate) fn client() -> Client {
        let at = Timestamp::from_ms(1_790_000_000_000);
        let profile = Profile {
            email: Some(Email::parse("a@example.com").unwrap()),
            full_name: "Ada".to_owned(),
            phone: None,
            goals: Some("SECRET".to_owned()),
            health_notes: Some("SECRET".to_owned()),
            height_in: None,
            weight_lbs: None,
            external_id: None,
        };
        Client {
            id: ClientId::parse("c1").unwrap(),
            coach_id: CoachId::parse("coach_1").unwrap(),
            profile,
            is_active: true,
            phase: Phase::default(),
            created_at: at,
            origin: Origin::PartnerApi,
            latest_check_in_at: None,
        }
    }

    pub(crate) fn event() -> Event {
        let client = client();
        Event::new_client(&client, client.created_at)
    }

    #[test]
    fn identifiers_mode_names_nobody() {
        let body: Value = serde_json::from_slice(&event().render(PayloadMode::Identifiers)).unwrap();
        assert_eq!(
            body,
            json!({"type": "new_client", "timestamp": "2026-09-21T14:13:20.000Z",
                   "data": {"client": {"id": "c1"}, "created_at": "2026-09-21T14:13:20.000Z", "source": "partner_api"}})
        );
    }

    #[test]
    fn contact_details_mode_adds_name_email_and_phone_nulls_kept() {
        let body: Value = serde_json::from_slice(&event().render(PayloadMode::ContactDetails)).unwrap();
        assert_eq!(body["data"]["client"], json!({"id": "c1", "name": "Ada", "email": "a@example.com", "phone": null}));
    }

    #[test]
    fn each_event_says_what_its_type_allows_and_reads_back_from_storage() {
        let client = client();
        let at = Timestamp::parse("2026-09-20T08:00:00Z").unwrap();
        let check_in = CheckInId::parse("k1").unwrap();
        let advance = PhaseAdvance { from_phase: None, to_phase: "Build".to_owned(), advanced_at: at };
        let of_check_in = json!({"check_in": {"id": "k1", "submitted_at": at}});
        for (event, data) in [
            (Event::of_check_in(&client, EventType::CheckInSubmitted, &check_in, at), of_check_in.clone()),
            (Event::of_check_in(&client, EventType::SystemGradeDrop, &check_in, at), of_check_in),
            (
                Event::phase_advanced(&client, &advance),
                json!({"from_phase": null, "to_phase": "Build", "advanced_at": at}),
            ),
            (
                Event::message_received(&client, &MessageId::parse("m1").unwrap(), at),
                json!({"message": {"id": "m1", "received_at": at}}),
            ),
        ] {
            let mut expected = data;
            expected["client"] = json!({"id": "c1"});
            let body: Value = serde_json::from_slice(&event.render(PayloadMode::Identifiers)).unwrap();
            assert_eq!(body, json!({"type": event.event_type, "timestamp": at, "data": expected}));
            let stored = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&stored).unwrap(), event);
        }
    }

    #[test]
    fn every_event_is_found_by_its_name() {
        for event in EventType::ALL {
            assert_eq!(EventType::parse(event.as_str()), Ok(event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
        assert!(EventType::parse("compliance_drop").unwrap_err().contains("new_client"));
    }
}
