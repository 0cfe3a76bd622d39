//! Examples of all events. They look like real events and name no real person.

use chrono::TimeDelta;

use super::{
    AutomationRef, AutomationWithThreshold, BookingEvent, BookingRef, BookingRescheduled, CheckInEvent,
    CheckInInactivity, CheckInRef, ClientDetails, ComplianceCrossed, ComputedType, ContactCreated, ContactDetails,
    ContactField, ContactMerged, ContactSource, ContactUpdated, DailyLogInactivity, Event, EventData, EventName,
    EventType, LowCheckInScore, MergedContactRef, MessageReceived, MessageRef, NamedAutomation, NamedContact,
    NewClient, OpportunityCreated, OpportunityField, OpportunityRef, OpportunityStageChanged, OpportunityUpdated,
    Person, PersonSchema, PhaseAdvanced, PhaseEligible,
};
use crate::booking::BookingStatus;
use crate::client::{Measure, Origin};
use crate::email::Email;
use crate::external_id::ExternalId;
use crate::id::{
    AutomationId, CalendarEntryId, CalendarId, CheckInId, ClientId, CoachId, ContactId, EventId, MessageId,
    OpportunityId, PipelineId, StageId,
};
use crate::phone::Phone;
use crate::pipeline::StageKind;
use crate::time::Timestamp;

/// The time of the examples that are shown.
const EXAMPLE_TIME: &str = "2026-11-20T09:30:00.000Z";
const AUTOMATION_NAME: &str = "Example automation";
/// The phone number of the person, from the range reserved for fiction.
const PHONE: &str = "+1 415 555 0132";
const EXTERNAL_ID: &str = "patient-1815";

/// Parses a value of an example.
macro_rules! valid {
    ($kind:ident, $text:expr) => {
        $kind::parse($text).expect("the example keeps the rules")
    };
}

/// Returns the time of the examples that are shown.
pub fn example_time() -> Timestamp {
    Timestamp::parse(EXAMPLE_TIME).expect("the example is a valid time")
}

/// Creates the example of an event that happens at `at`. No client, contact or record has the ids in it.
pub fn example(event_type: EventName, at: Timestamp) -> Event {
    let data = match event_type {
        EventName::Emitted(event) => emitted(event, at),
        EventName::Computed(event) => computed(event, at),
    };
    Event {
        id: EventId::derive(at.ms(), &["example", event_type.as_str()]),
        coach_id: valid!(CoachId, "coach_example"),
        person: person(event_type),
        occurred_at: at,
        event_type,
        data,
        automation: None,
        to: Vec::new(),
    }
}

fn person(event_type: EventName) -> Person {
    match PersonSchema::of(event_type) {
        PersonSchema::Client => Person::Client {
            id: valid!(ClientId, "client_example"),
            details: ClientDetails {
                name: "Example Client".to_owned(),
                email: Some(valid!(Email, "client@example.com")),
                phone: Some(Phone::as_given(PHONE)),
                external_id: Some(ExternalId::unchecked(EXTERNAL_ID)),
            },
        },
        PersonSchema::Contact | PersonSchema::BookedContact => Person::Contact(NamedContact {
            id: valid!(ContactId, "01900000-0000-7000-8000-00000000c0de"),
            client_id: None,
            merged: None,
            details: ContactDetails {
                name: Some("Example Contact".to_owned()),
                email: Some(valid!(Email, "contact@example.com")),
                phone: Some(Phone::as_given(PHONE)),
            },
        }),
    }
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
            let id = valid!(MessageId, "message_example");
            EventData::MessageReceived(MessageReceived { message: MessageRef { id, received_at: at } })
        }
        EventType::ContactCreated => {
            EventData::ContactCreated(ContactCreated { created_at: at, source: ContactSource::Application })
        }
        EventType::ContactUpdated => EventData::ContactUpdated(ContactUpdated {
            changed: vec![ContactField::Email, ContactField::Marketing],
            updated_at: at,
        }),
        EventType::ContactMerged => {
            let id = valid!(ContactId, "01900000-0000-7000-8000-00000000dead");
            EventData::ContactMerged(ContactMerged { merged: MergedContactRef { id } })
        }
        EventType::OpportunityCreated => {
            let opportunity = opportunity("new", StageKind::Open);
            EventData::OpportunityCreated(OpportunityCreated { opportunity, created_at: at })
        }
        EventType::OpportunityUpdated => EventData::OpportunityUpdated(OpportunityUpdated {
            opportunity: opportunity("new", StageKind::Open),
            changed: vec![OpportunityField::ValueCents],
            updated_at: at,
        }),
        EventType::OpportunityStageChanged => EventData::OpportunityStageChanged(OpportunityStageChanged {
            opportunity: opportunity("won", StageKind::Won),
            from_pipeline_id: valid!(PipelineId, "pipeline_example"),
            from_stage: valid!(StageId, "new"),
            from_status: StageKind::Open,
            changed: Vec::new(),
            updated_at: at,
        }),
        EventType::BookingCreated => {
            EventData::Booking(BookingEvent { booking: booking(at, BookingStatus::Confirmed) })
        }
        EventType::BookingRescheduled => EventData::BookingRescheduled(BookingRescheduled {
            booking: booking(at, BookingStatus::Confirmed),
            previous_starts_at: at + TimeDelta::days(2),
        }),
        EventType::BookingCancelled => {
            EventData::Booking(BookingEvent { booking: booking(at, BookingStatus::Cancelled) })
        }
    }
}

fn opportunity(stage: &str, status: StageKind) -> OpportunityRef {
    OpportunityRef {
        id: valid!(OpportunityId, "01900000-0000-7000-8000-00000000dea1"),
        name: Some("Example opportunity".to_owned()),
        value_cents: 90_000,
        pipeline_id: valid!(PipelineId, "pipeline_example"),
        stage: valid!(StageId, stage),
        status,
    }
}

/// A booking of an hour in three days.
fn booking(at: Timestamp, status: BookingStatus) -> BookingRef {
    let starts_at = at + TimeDelta::days(3);
    BookingRef {
        id: valid!(CalendarEntryId, "01900000-0000-7000-8000-00000000b00c"),
        calendar_id: valid!(CalendarId, "01900000-0000-7000-8000-00000000ca1e"),
        starts_at,
        ends_at: starts_at + TimeDelta::hours(1),
        timezone: "Europe/Berlin".to_owned(),
        status,
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

fn automation_id() -> AutomationId {
    valid!(AutomationId, "automation_example")
}

fn comparing(threshold: f64) -> AutomationWithThreshold {
    AutomationWithThreshold { id: automation_id(), name: AUTOMATION_NAME.to_owned(), threshold: Measure(threshold) }
}

fn check_in(at: Timestamp) -> CheckInRef {
    CheckInRef { id: valid!(CheckInId, "check_in_example"), submitted_at: at }
}
