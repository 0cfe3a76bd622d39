//! All events with their schemas and examples: the emitted events, to which an endpoint subscribes, and the computed
//! events, which the Webhook step of an automation sends.

use domain::check_in::SubmissionTimes;
use domain::client::Measure;
use domain::event::{
    AutomationRef, AutomationWithThreshold, CheckInEvent, CheckInInactivity, ComplianceCrossed, ComputedType,
    DailyLogInactivity, Event, EventData, EventType, LowCheckInScore, MessageReceived, NamedAutomation, NewClient,
    PhaseAdvanced, PhaseEligible,
};
use domain::fact::PhaseAdvance;
use domain::id::MessageId;
use domain::sweep::Computed;
use domain::time::Timestamp;
use serde_json::Value;

use super::examples::{at, automation_id, check_in_id, client, date, endpoint};
use super::schemas::Schemas;

/// An event of the document.
pub(super) struct EventDescription {
    /// When the event is emitted.
    pub(super) occasion: &'static str,
    /// Schema of the members of `data` besides `client`.
    pub(super) data: Value,
    pub(super) example: Event,
    /// Schema of the member that an automation's step adds. `None` if the member is part of `data` anyway.
    pub(super) automation: Option<Value>,
}

/// Describes all events, emitted ones first.
pub(super) fn all(schemas: &mut Schemas) -> Vec<EventDescription> {
    let mut all: Vec<EventDescription> = EventType::ALL.into_iter().map(|event| emitted(event, schemas)).collect();
    all.extend(ComputedType::ALL.into_iter().map(|event| computed(event, schemas)));
    all
}

fn emitted(event: EventType, schemas: &mut Schemas) -> EventDescription {
    let submitted_at = at("16:05:12.480");
    let check_in_event = || Event::of_check_in(&client(), event, &check_in_id(), SubmissionTimes::at(submitted_at));
    let (occasion, data, example) = match event {
        EventType::NewClient => (
            "A client was created: by the API, in the application, or by an import.",
            schemas.of::<NewClient>(),
            Event::new_client(&client(), client().created_at),
        ),
        EventType::CheckInSubmitted => {
            ("A client submitted a check-in.", schemas.of::<CheckInEvent>(), check_in_event())
        }
        EventType::LowCheckInScore => (
            "A check-in answer was below an automation's threshold. Emitted once for each check-in and automation.",
            schemas.of::<LowCheckInScore>(),
            Event::low_check_in_score(&client(), &check_in_id(), submitted_at, &automation_id()),
        ),
        EventType::SystemGradeDrop => (
            "A wellness system was graded lower than before. Emitted once for each check-in. The event contains \
             neither the system nor the grade.",
            schemas.of::<CheckInEvent>(),
            check_in_event(),
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
            let message = MessageId::parse("message_88").expect("the example is a valid id");
            (
                "A client sent a message. The event does not contain its text.",
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
    EventDescription { occasion, data, example, automation }
}

fn computed(event: ComputedType, schemas: &mut Schemas) -> EventDescription {
    // The coach's day starts at 08:00 UTC in the examples.
    let (occasion, data, example) = match event {
        ComputedType::ComplianceDrop => (
            "A client's compliance fell below the automation's threshold.",
            schemas.of::<ComplianceCrossed>(),
            compliance_event(event, 58, automation_with_threshold("Falling behind", 60.0), at("08:00:00.000")),
        ),
        ComputedType::ComplianceMilestone => (
            "A client's compliance reached the automation's milestone. Emitted once for each client and automation.",
            schemas.of::<ComplianceCrossed>(),
            compliance_event(event, 91, automation_with_threshold("Ninety percent", 90.0), at("12:15:00.000")),
        ),
        ComputedType::PhaseEligible => {
            let automation = NamedAutomation { id: automation_id(), name: "Ready to move on".to_owned() };
            let eligible = PhaseEligible {
                current_phase: "Foundation".to_owned(),
                eligible_since: date("2026-11-20"),
                automation,
            };
            (
                "A client may move to the next phase. Emitted once for each entry into a phase.",
                schemas.of::<PhaseEligible>(),
                computed_event(event, at("08:00:00.000"), EventData::PhaseEligible(eligible)),
            )
        }
        ComputedType::CheckInInactivity => {
            let inactivity = CheckInInactivity {
                last_check_in_at: Timestamp::parse("2026-11-10T12:04:31.250Z"),
                days_inactive: 10,
                automation: automation_with_threshold("Ten days quiet", 10.0),
            };
            (
                "A client has not checked in for as long as the automation allows. Emitted again only after a new \
                 check-in.",
                schemas.of::<CheckInInactivity>(),
                computed_event(event, at("12:04:31.250"), EventData::CheckInInactivity(inactivity)),
            )
        }
        ComputedType::DailyLogInactivity => {
            let inactivity = DailyLogInactivity {
                last_logged_on: Some(date("2026-11-16")),
                days_inactive: 3,
                automation: automation_with_threshold("Three days without a log", 3.0),
            };
            (
                "A client has not kept the daily log for as long as the automation allows. Emitted again only after a \
                 new log.",
                schemas.of::<DailyLogInactivity>(),
                computed_event(event, at("08:00:00.000"), EventData::DailyLogInactivity(inactivity)),
            )
        }
    };
    EventDescription { occasion, data, example, automation: None }
}

fn automation_with_threshold(name: &str, threshold: f64) -> AutomationWithThreshold {
    AutomationWithThreshold { id: automation_id(), name: name.to_owned(), threshold: Measure(threshold) }
}

fn compliance_event(
    event: ComputedType,
    compliance_pct: u8,
    automation: AutomationWithThreshold,
    at: Timestamp,
) -> Event {
    computed_event(event, at, EventData::Compliance(ComplianceCrossed { compliance_pct, automation }))
}

/// The event of a match that a sweep found.
fn computed_event(event_type: ComputedType, at: Timestamp, data: EventData) -> Event {
    let computed = Computed {
        coach_id: client().coach_id,
        automation_id: automation_id(),
        event_type,
        at,
        data,
        episode: at.to_string(),
        to: vec![endpoint().endpoint.id],
    };
    Event::computed(&client(), &computed).expect("the example names an endpoint")
}
