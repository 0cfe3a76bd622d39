//! The names of events: emitted events, which an endpoint subscribes to, and computed events, which only Webhook steps
//! send.

use serde::{Deserialize, Serialize};

crate::named! {
    /// Events that happen at a definite instant and can be subscribed to.
    EventType {
        NewClient = "new_client",
        CheckInSubmitted = "check_in_submitted",
        LowCheckInScore = "low_check_in_score",
        SystemGradeDrop = "system_grade_drop",
        PhaseAdvanced = "phase_advanced",
        MessageReceived = "message_received",
    }
    /// Events that a sweep finds. Nobody subscribes to them.
    ComputedType {
        ComplianceDrop = "compliance_drop",
        ComplianceMilestone = "compliance_milestone",
        PhaseEligible = "phase_eligible",
        CheckInInactivity = "check_in_inactivity",
        DailyLogInactivity = "daily_log_inactivity",
    }
}

/// The name of an event of either kind, as in `type` and `x-service-event`. No name belongs to both kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EventName {
    Emitted(EventType),
    Computed(ComputedType),
}

impl EventName {
    /// Returns all names, emitted events first.
    pub fn all() -> impl Iterator<Item = Self> {
        let emitted = EventType::ALL.into_iter().map(Self::Emitted);
        emitted.chain(ComputedType::ALL.into_iter().map(Self::Computed))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Emitted(event) => event.as_str(),
            Self::Computed(event) => event.as_str(),
        }
    }

    /// Parses a name, or returns the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names = || Self::all().map(Self::as_str).collect::<Vec<_>>().join(", ");
        Self::all().find(|event| event.as_str() == text).ok_or_else(|| format!("takes {}", names()))
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
