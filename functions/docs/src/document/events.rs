//! All events, with what each says: those that an endpoint subscribes to, and those that an automation's Webhook step sends.

use chrono::NaiveDate;
use domain::client::Measure;
use domain::event::{
    AutomationRef, CheckInEvent, CheckInRef, EventType, LowCheckInScore, MessageReceived, MessageRef, NamedAutomation,
    NewClient, PhaseAdvanced,
};
use domain::id::{AutomationId, MessageId};
use domain::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::examples::{at, automation_id, check_in_id, client, date, to_json};
use super::schemas::Schemas;

/// An event: its name, when it fires, what it says beside the client.
pub(super) struct Described {
    pub(super) name: &'static str,
    pub(super) fires: &'static str,
    pub(super) data: Value,
    pub(super) example: Value,
    /// What an automation that sends it adds; `None` where it is part of the data.
    pub(super) automation: Option<Value>,
}

/// All events, emitted ones first.
pub(super) fn all(schemas: &mut Schemas) -> Vec<Described> {
    let mut all: Vec<Described> = EventType::ALL.into_iter().map(|event| emitted(event, schemas)).collect();
    all.extend(computed(schemas));
    all
}

fn emitted(event: EventType, schemas: &mut Schemas) -> Described {
    let check_in = || CheckInRef { id: check_in_id(), submitted_at: at("16:05:12.480") };
    let (fires, data, example) = match event {
        EventType::NewClient => (
            "A client was created: by the API, in the application, or by an import.",
            schemas.of::<NewClient>(),
            to_json(&NewClient { created_at: client().created_at, source: client().origin }),
        ),
        EventType::CheckInSubmitted => (
            "A client submitted a check-in.",
            schemas.of::<CheckInEvent>(),
            to_json(&CheckInEvent { check_in: check_in() }),
        ),
        EventType::LowCheckInScore => (
            "An answer of a check-in was below an automation's threshold. Once for each check-in and automation.",
            schemas.of::<LowCheckInScore>(),
            to_json(&LowCheckInScore { check_in: check_in(), automation: AutomationRef { id: automation_id() } }),
        ),
        EventType::SystemGradeDrop => (
            "A wellness system was graded lower than before. Once for each check-in; neither the system nor the grade is told.",
            schemas.of::<CheckInEvent>(),
            to_json(&CheckInEvent { check_in: check_in() }),
        ),
        EventType::PhaseAdvanced => (
            "A client moved to another phase of the programme.",
            schemas.of::<PhaseAdvanced>(),
            to_json(&PhaseAdvanced {
                from_phase: Some("Foundation".to_owned()),
                to_phase: "Rebuild".to_owned(),
                advanced_at: at("10:00:00.000"),
            }),
        ),
        EventType::MessageReceived => (
            "A client sent a message. Its text is not part of the event.",
            schemas.of::<MessageReceived>(),
            to_json(&MessageReceived {
                message: MessageRef {
                    id: MessageId::parse("message_88").expect("an example's id is an id"),
                    received_at: at("11:42:07.003"),
                },
            }),
        ),
    };
    let automation = match event {
        EventType::LowCheckInScore => None,
        EventType::SystemGradeDrop => Some(schemas.of::<AutomationRef>()),
        _ => Some(schemas.of::<NamedAutomation>()),
    };
    Described { name: event.as_str(), fires, data, example, automation }
}

fn computed(schemas: &mut Schemas) -> [Described; 5] {
    let rule = |name: &str, threshold: f64| AutomationWithThreshold {
        id: automation_id(),
        name: name.to_owned(),
        threshold: Measure(threshold),
    };
    let event = |name, fires, data, example| Described { name, fires, data, example, automation: None };
    [
        event(
            "compliance_drop",
            "A client's compliance fell below the automation's threshold.",
            schemas.of::<ComplianceCrossed>(),
            to_json(&ComplianceCrossed { compliance_pct: 58, automation: rule("Falling behind", 60.0) }),
        ),
        event(
            "compliance_milestone",
            "A client's compliance reached the automation's milestone. Once for each client and automation.",
            schemas.of::<ComplianceCrossed>(),
            to_json(&ComplianceCrossed { compliance_pct: 91, automation: rule("Ninety percent", 90.0) }),
        ),
        event(
            "phase_eligible",
            "A client may move to the next phase. Once for each phase that the client enters.",
            schemas.of::<PhaseEligible>(),
            to_json(&PhaseEligible {
                current_phase: "Foundation".to_owned(),
                eligible_since: at("00:00:00.000"),
                automation: NamedAutomation { id: automation_id(), name: "Ready to move on".to_owned() },
            }),
        ),
        event(
            "check_in_inactivity",
            "A client has not checked in for as long as the automation allows. Again only after a new check-in.",
            schemas.of::<CheckInInactivity>(),
            to_json(&CheckInInactivity {
                last_check_in_at: Timestamp::parse("2026-11-10T12:04:31.250Z"),
                days_inactive: 10,
                automation: rule("Ten days quiet", 10.0),
            }),
        ),
        event(
            "daily_log_inactivity",
            "A client has not kept the daily log for as long as the automation allows. Again only after a new log.",
            schemas.of::<DailyLogInactivity>(),
            to_json(&DailyLogInactivity {
                last_logged_on: Some(date("2026-11-17")),
                days_inactive: 3,
                automation: rule("Three days without a log", 3.0),
            }),
        ),
    ]
}

/// A rule of a coach's with a threshold, and what the threshold is.
#[derive(Serialize, ToSchema)]
struct AutomationWithThreshold {
    id: AutomationId,
    name: String,
    /// Percent for compliance, days for inactivity.
    threshold: Measure,
}

/// `compliance_drop` and `compliance_milestone`.
#[derive(Serialize, ToSchema)]
struct ComplianceCrossed {
    compliance_pct: u8,
    automation: AutomationWithThreshold,
}

/// `phase_eligible`.
#[derive(Serialize, ToSchema)]
struct PhaseEligible {
    current_phase: String,
    eligible_since: Timestamp,
    automation: NamedAutomation,
}

/// `check_in_inactivity`.
#[derive(Serialize, ToSchema)]
struct CheckInInactivity {
    /// Null when the client has never checked in.
    #[schema(required)]
    last_check_in_at: Option<Timestamp>,
    days_inactive: u32,
    automation: AutomationWithThreshold,
}

/// `daily_log_inactivity`.
#[derive(Serialize, ToSchema)]
struct DailyLogInactivity {
    /// Null when the client has never kept the log.
    #[schema(required)]
    last_logged_on: Option<NaiveDate>,
    days_inactive: u32,
    automation: AutomationWithThreshold,
}
