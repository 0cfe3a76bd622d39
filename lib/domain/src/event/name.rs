//! The names of events: those that an endpoint subscribes to, and those that only an automation's Webhook step sends.

use serde::{Deserialize, Serialize};

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

/// Events that a sweep finds. Nobody subscribes to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComputedType {
    ComplianceDrop,
    ComplianceMilestone,
    PhaseEligible,
    CheckInInactivity,
    DailyLogInactivity,
}

/// What an event is called: the bare name, of either kind. No name is of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EventName {
    Emitted(EventType),
    Computed(ComputedType),
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
        let found = Self::ALL.into_iter().find(|event| event.as_str() == text);
        found.ok_or_else(|| takes(&Self::ALL.map(Self::as_str)))
    }
}

impl ComputedType {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ComplianceDrop,
        Self::ComplianceMilestone,
        Self::PhaseEligible,
        Self::CheckInInactivity,
        Self::DailyLogInactivity,
    ];

    /// The event's name in `type` and `x-service-event`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ComplianceDrop => "compliance_drop",
            Self::ComplianceMilestone => "compliance_milestone",
            Self::PhaseEligible => "phase_eligible",
            Self::CheckInInactivity => "check_in_inactivity",
            Self::DailyLogInactivity => "daily_log_inactivity",
        }
    }
}

impl EventName {
    /// All of them, emitted ones first.
    pub fn all() -> impl Iterator<Item = Self> {
        let emitted = EventType::ALL.into_iter().map(Self::Emitted);
        emitted.chain(ComputedType::ALL.into_iter().map(Self::Computed))
    }

    /// The event's name in `type` and `x-service-event`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Emitted(event) => event.as_str(),
            Self::Computed(event) => event.as_str(),
        }
    }

    /// The event of that name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::all().find(|event| event.as_str() == text);
        found.ok_or_else(|| takes(&Self::all().map(Self::as_str).collect::<Vec<_>>()))
    }
}

impl From<EventType> for EventName {
    fn from(event: EventType) -> Self {
        Self::Emitted(event)
    }
}

impl From<ComputedType> for EventName {
    fn from(event: ComputedType) -> Self {
        Self::Computed(event)
    }
}

/// The rule that other names break.
fn takes(names: &[&str]) -> String {
    format!("takes {}", names.join(", "))
}
