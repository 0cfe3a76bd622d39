//! Events that receivers subscribe to, and the bodies they get.
//!
//! A body is rendered from an allow-list type per event, never from a stored record: what is not named here cannot leave.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::{Client, Origin};
use crate::email::Email;
use crate::id::{ClientId, CoachId, EventId};
use crate::phone::Phone;
use crate::time::Timestamp;

/// Events that happen at a definite instant and can be subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
}

/// What `Include contact details` adds to `data.client`. A null is kept: it says that there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContactDetails {
    pub name: String,
    pub email: Option<Email>,
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
}

/// `new_client`: a client was created by anyone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewClient {
    pub created_at: Timestamp,
    pub source: Origin,
}

impl EventData {
    /// Which event this is the data of.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::NewClient(_) => EventType::NewClient,
        }
    }
}

/// Something that happened to a client of a coach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub coach_id: CoachId,
    pub client_id: ClientId,
    pub contact: ContactDetails,
    pub occurred_at: Timestamp,
    pub data: EventData,
}

impl Event {
    /// `new_client`. A client is created once, so the client tells the event.
    pub fn new_client(client: &Client, occurred_at: Timestamp) -> Self {
        Self {
            id: EventId::derive(occurred_at.ms(), &[EventType::NewClient.as_str(), client.id.as_str()]),
            coach_id: client.coach_id.clone(),
            client_id: client.id.clone(),
            contact: ContactDetails::of(client),
            occurred_at,
            data: EventData::NewClient(NewClient { created_at: client.created_at, source: client.origin }),
        }
    }

    /// Which event it is.
    pub fn event_type(&self) -> EventType {
        self.data.event_type()
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
        let body = json!({ "type": self.event_type().as_str(), "timestamp": self.occurred_at, "data": data });
        body.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Phase, Profile};

    fn event() -> Event {
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
        let client = Client {
            id: ClientId::parse("c1").unwrap(),
            coach_id: CoachId::parse("coach_1").unwrap(),
            profile,
            is_active: true,
            phase: Phase::default(),
            created_at: at,
            origin: Origin::PartnerApi,
            latest_check_in_at: None,
        };
        Event::new_client(&client, at)
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
    fn every_event_is_found_by_its_name() {
        for event in EventType::ALL {
            assert_eq!(EventType::parse(event.as_str()), Ok(event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
        assert!(EventType::parse("compliance_drop").unwrap_err().contains("new_client"));
    }
}
