//! Example events, with which a coach tests a receiver; computed events included. They look like real events, name no
//! real person, and are marked as tests.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::client::{Measure, Origin};
use crate::event::{
    self, AutomationRef, AutomationWithThreshold, CheckInEvent, CheckInInactivity, CheckInRef, ComplianceCrossed,
    ComputedType, DailyLogInactivity, EventData, EventName, EventType, LowCheckInScore, MessageReceived, MessageRef,
    NamedAutomation, NewClient, PayloadMode, PhaseAdvanced, PhaseEligible,
};
use crate::fields::{Fields, Invalid};
use crate::id::{AutomationId, CheckInId, MessageId};
#[cfg(feature = "openapi")]
use crate::openapi::{Body, Field};
use crate::time::Timestamp;

/// The client's id in examples. No client has it.
pub const CLIENT: &str = "client_example";

/// The phone number of that client, from the range reserved for fiction.
const PHONE: &str = "+1 415 555 0132";

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

#[cfg(feature = "openapi")]
pub fn schema() -> Body {
    let names: Vec<&str> = EventName::all().map(EventName::as_str).collect();
    let about = "Any event, computed ones included. Default: the first event that the endpoint is subscribed to.";
    Body::new([("type", Field::one_of(&names).about(about))]).closed()
}

/// Renders the body of an example event for receivers of that mode.
pub fn body(event: EventName, mode: PayloadMode, at: Timestamp) -> Vec<u8> {
    let mut client = json!({ "id": CLIENT });
    if mode == PayloadMode::ContactDetails {
        client["name"] = json!("Example Client");
        client["email"] = json!("client@example.com");
        client["phone"] = json!(PHONE);
    }
    let own = match event {
        EventName::Emitted(event) => emitted(event, at),
        EventName::Computed(event) => computed(event, at),
    };
    let mut data = own.members();
    data["client"] = client;
    data["test"] = json!(true);
    event::body(event, at, &data)
}

fn emitted(event: EventType, at: Timestamp) -> EventData {
    match event {
        EventType::NewClient => EventData::NewClient(NewClient { created_at: at, source: Origin::Application }),
        EventType::CheckInSubmitted | EventType::SystemGradeDrop => {
            EventData::CheckIn(CheckInEvent { check_in: check_in(at) })
        }
        EventType::LowCheckInScore => {
            let automation = AutomationRef { id: automation_id() };
            EventData::LowCheckInScore(LowCheckInScore { check_in: check_in(at), automation })
        }
        EventType::PhaseAdvanced => EventData::PhaseAdvanced(PhaseAdvanced {
            from_phase: Some("Foundation".to_owned()),
            to_phase: "Build".to_owned(),
            advanced_at: at,
        }),
        EventType::MessageReceived => {
            let id = MessageId::parse("message_example").expect("an example's id is an id");
            EventData::MessageReceived(MessageReceived { message: MessageRef { id, received_at: at } })
        }
    }
}

fn computed(event: ComputedType, at: Timestamp) -> EventData {
    let today = at.utc().date_naive();
    match event {
        ComputedType::ComplianceDrop => {
            EventData::Compliance(ComplianceCrossed { compliance_pct: 58, automation: comparing(60.0) })
        }
        ComputedType::ComplianceMilestone => {
            EventData::Compliance(ComplianceCrossed { compliance_pct: 91, automation: comparing(90.0) })
        }
        ComputedType::PhaseEligible => EventData::PhaseEligible(PhaseEligible {
            current_phase: "Foundation".to_owned(),
            eligible_since: today,
            automation: NamedAutomation { id: automation_id(), name: AUTOMATION_NAME.to_owned() },
        }),
        ComputedType::CheckInInactivity => EventData::CheckInInactivity(CheckInInactivity {
            last_check_in_at: Some(at + TimeDelta::days(-10)),
            days_inactive: 10,
            automation: comparing(10.0),
        }),
        ComputedType::DailyLogInactivity => EventData::DailyLogInactivity(DailyLogInactivity {
            // Neither the day of the log nor today counts as a whole day without a log.
            last_logged_on: today.checked_sub_signed(TimeDelta::days(4)),
            days_inactive: 3,
            automation: comparing(3.0),
        }),
    }
}

const AUTOMATION_NAME: &str = "Example automation";

fn automation_id() -> AutomationId {
    AutomationId::parse("automation_example").expect("an example's id is an id")
}

fn comparing(threshold: f64) -> AutomationWithThreshold {
    AutomationWithThreshold { id: automation_id(), name: AUTOMATION_NAME.to_owned(), threshold: Measure(threshold) }
}

fn check_in(at: Timestamp) -> CheckInRef {
    CheckInRef { id: CheckInId::parse("check_in_example").expect("an example's id is an id"), submitted_at: at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_marked_and_names_somebody_only_where_that_is_wanted() {
        for event in EventName::all() {
            let at = Timestamp::from_ms(1_790_000_000_000);
            let read = |mode| serde_json::from_slice::<Value>(&body(event, mode, at)).unwrap();
            let bare = read(PayloadMode::Identifiers);
            assert_eq!((&bare["type"], &bare["data"]["test"]), (&json!(event.as_str()), &json!(true)));
            assert_eq!(bare["data"]["client"], json!({ "id": "client_example" }));
            let client = json!({
                "id": "client_example", "name": "Example Client", "email": "client@example.com",
                "phone": "+1 415 555 0132",
            });
            assert_eq!(read(PayloadMode::ContactDetails)["data"]["client"], client);
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

    #[cfg(feature = "openapi")]
    #[test]
    fn the_types_that_are_listed_are_those_that_are_taken() {
        let listed = schema().into_json()["properties"]["type"]["enum"].clone();
        let listed: Vec<&str> = listed.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(listed, EventName::all().map(EventName::as_str).collect::<Vec<_>>());
    }
}
