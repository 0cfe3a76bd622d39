//! All events, with what each says: those that an endpoint subscribes to, and those that an automation's Webhook step
//! sends.

use domain::client::Measure;
use domain::event::{
    AutomationRef, CheckInEvent, CheckInInactivity, ComplianceCrossed, ComputedType, DailyLogInactivity, Event,
    EventType, LowCheckInScore, MessageReceived, NamedAutomation, NewClient, PhaseAdvanced, PhaseEligible,
};
use domain::fact::PhaseAdvance;
use domain::id::MessageId;
use domain::sweep::{Computed, Found};
use domain::time::Timestamp;
use serde_json::Value;

use super::examples::{at, automation_id, check_in_id, client, date, endpoint};
use super::schemas::Schemas;

/// An event: when it fires, the schema of what it says beside the client, and one that the service could send.
pub(super) struct Described {
    pub(super) fires: &'static str,
    pub(super) data: Value,
    pub(super) example: Event,
    /// What an automation that sends it adds; `None` where it is part of the data.
    pub(super) automation: Option<Value>,
}

/// All events, emitted ones first.
pub(super) fn all(schemas: &mut Schemas) -> Vec<Described> {
    let mut all: Vec<Described> = EventType::ALL.into_iter().map(|event| emitted(event, schemas)).collect();
    all.extend(ComputedType::ALL.into_iter().map(|event| computed(event, schemas)));
    all
}

fn emitted(event: EventType, schemas: &mut Schemas) -> Described {
    let submitted_at = at("16:05:12.480");
    let of_check_in = || Event::of_check_in(&client(), event, &check_in_id(), submitted_at);
    let (fires, data, example) = match event {
        EventType::NewClient => (
            "A client was created: by the API, in the application, or by an import.",
            schemas.of::<NewClient>(),
            Event::new_client(&client(), client().created_at),
        ),
        EventType::CheckInSubmitted => ("A client submitted a check-in.", schemas.of::<CheckInEvent>(), of_check_in()),
        EventType::LowCheckInScore => (
            "An answer of a check-in was below an automation's threshold. Once for each check-in and automation.",
            schemas.of::<LowCheckInScore>(),
            Event::low_check_in_score(&client(), &check_in_id(), submitted_at, &automation_id()),
        ),
        EventType::SystemGradeDrop => (
            "A wellness system was graded lower than before. Once for each check-in; neither the system nor the grade is told.",
            schemas.of::<CheckInEvent>(),
            of_check_in(),
        ),
        EventType::PhaseAdvanced => {
            let advance = PhaseAdvance {
                from_phase: Some("Foundation".to_owned()),
                to_phase: "Rebuild".to_owned(),
                advanced_at: at("10:00:00.000"),
            };
            (
                "A client moved to another phase of the programme.",
                schemas.of::<PhaseAdvanced>(),
                Event::phase_advanced(&client(), &advance),
            )
        }
        EventType::MessageReceived => {
            let message = MessageId::parse("message_88").expect("an example's id is an id");
            (
                "A client sent a message. Its text is not part of the event.",
                schemas.of::<MessageReceived>(),
                Event::message_received(&client(), &message, at("11:42:07.003")),
            )
        }
    };
    let automation = match event {
        EventType::LowCheckInScore => None,
        EventType::SystemGradeDrop => Some(schemas.of::<AutomationRef>()),
        _ => Some(schemas.of::<NamedAutomation>()),
    };
    Described { fires, data, example, automation }
}

fn computed(event: ComputedType, schemas: &mut Schemas) -> Described {
    // The day of the examples begins at 08:00 UTC where the coach is.
    let (fires, data, example) = match event {
        ComputedType::ComplianceDrop => (
            "A client's compliance fell below the automation's threshold.",
            schemas.of::<ComplianceCrossed>(),
            found("Falling behind", Some(60.0), at("08:00:00.000"), Found::ComplianceDrop { compliance_pct: 58 }),
        ),
        ComputedType::ComplianceMilestone => (
            "A client's compliance reached the automation's milestone. Once for each client and automation.",
            schemas.of::<ComplianceCrossed>(),
            found("Ninety percent", Some(90.0), at("12:15:00.000"), Found::ComplianceMilestone { compliance_pct: 91 }),
        ),
        ComputedType::PhaseEligible => {
            let found_then =
                Found::PhaseEligible { current_phase: "Foundation".to_owned(), eligible_since: date("2026-11-20") };
            (
                "A client may move to the next phase. Once for each phase that the client enters.",
                schemas.of::<PhaseEligible>(),
                found("Ready to move on", None, at("08:00:00.000"), found_then),
            )
        }
        ComputedType::CheckInInactivity => {
            let last_check_in_at = Timestamp::parse("2026-11-10T12:04:31.250Z");
            let found_then = Found::CheckInInactivity { last_check_in_at, days_inactive: 10 };
            (
                "A client has not checked in for as long as the automation allows. Again only after a new check-in.",
                schemas.of::<CheckInInactivity>(),
                found("Ten days quiet", Some(10.0), at("12:04:31.250"), found_then),
            )
        }
        ComputedType::DailyLogInactivity => {
            let found_then = Found::DailyLogInactivity { last_logged_on: Some(date("2026-11-16")), days_inactive: 3 };
            (
                "A client has not kept the daily log for as long as the automation allows. Again only after a new log.",
                schemas.of::<DailyLogInactivity>(),
                found("Three days without a log", Some(3.0), at("08:00:00.000"), found_then),
            )
        }
    };
    Described { fires, data, example, automation: None }
}

/// The event of something that a sweep found by the rule of that name.
fn found(name: &str, threshold: Option<f64>, at: Timestamp, found: Found) -> Event {
    let computed = Computed {
        coach_id: client().coach_id,
        automation_id: automation_id(),
        name: name.to_owned(),
        threshold: threshold.map(Measure),
        at,
        found,
        episode: at.to_string(),
        to: vec![endpoint().id],
    };
    Event::computed(&client(), &computed).expect("a step names the endpoint")
}
