//! The data of each event, except the person. A field that is not named here cannot leave.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    BookingEvent, BookingRescheduled, ContactCreated, ContactMerged, ContactUpdated, OpportunityCreated,
    OpportunityRef, OpportunityStageChanged, OpportunityUpdated, PayloadMode,
};
use crate::client::{Measure, Origin};
use crate::id::{AutomationId, CheckInId, MessageId};
use crate::time::Timestamp;

/// The data of an event, except the person. Stored with its kind, because the members alone may fit another kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventData {
    NewClient(NewClient),
    CheckIn(CheckInEvent),
    LowCheckInScore(LowCheckInScore),
    PhaseAdvanced(PhaseAdvanced),
    MessageReceived(MessageReceived),
    ContactCreated(ContactCreated),
    ContactUpdated(ContactUpdated),
    ContactMerged(ContactMerged),
    OpportunityCreated(OpportunityCreated),
    OpportunityUpdated(OpportunityUpdated),
    OpportunityStageChanged(OpportunityStageChanged),
    Booking(BookingEvent),
    BookingRescheduled(BookingRescheduled),
    Compliance(ComplianceCrossed),
    PhaseEligible(PhaseEligible),
    CheckInInactivity(CheckInInactivity),
    DailyLogInactivity(DailyLogInactivity),
}

impl EventData {
    pub(crate) fn members(&self) -> Value {
        // Unwraps the value from its kind.
        json!(self).as_object_mut().and_then(|kind| kind.values_mut().next().map(Value::take)).unwrap_or_default()
    }

    /// Returns the data for receivers of this mode: without contact details an opportunity has no name.
    pub(crate) fn for_mode(&self, mode: PayloadMode) -> Self {
        let mut data = self.clone();
        if mode == PayloadMode::Identifiers
            && let Some(opportunity) = data.opportunity_mut()
        {
            opportunity.name = None;
        }
        data
    }

    fn opportunity_mut(&mut self) -> Option<&mut OpportunityRef> {
        match self {
            Self::OpportunityCreated(data) => Some(&mut data.opportunity),
            Self::OpportunityUpdated(data) => Some(&mut data.opportunity),
            Self::OpportunityStageChanged(data) => Some(&mut data.opportunity),
            Self::NewClient(_)
            | Self::CheckIn(_)
            | Self::LowCheckInScore(_)
            | Self::PhaseAdvanced(_)
            | Self::MessageReceived(_)
            | Self::ContactCreated(_)
            | Self::ContactUpdated(_)
            | Self::ContactMerged(_)
            | Self::Booking(_)
            | Self::BookingRescheduled(_)
            | Self::Compliance(_)
            | Self::PhaseEligible(_)
            | Self::CheckInInactivity(_)
            | Self::DailyLogInactivity(_) => None,
        }
    }
}

/// `new_client`: a client was created by anyone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NewClient {
    /// When the client was created.
    pub created_at: Timestamp,
    pub source: Origin,
}

/// `data` of `check_in_submitted` and `system_grade_drop`. It contains no answers, score, system or grade.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckInEvent {
    pub check_in: CheckInRef,
}

/// `data` of `low_check_in_score`: a check-in answer was below an automation's threshold. Question, threshold and the
/// automation's name are left out, because they would reveal the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LowCheckInScore {
    pub check_in: CheckInRef,
    pub automation: AutomationRef,
}

/// A check-in, without its answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckInRef {
    /// Identifies the check-in. The list of the client's check-ins has the same id.
    pub id: CheckInId,
    /// When the client submitted the check-in.
    pub submitted_at: Timestamp,
}

/// `phase_advanced`: a client moved to a new phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PhaseAdvanced {
    /// The name of the phase before. Null if there was none.
    #[schema(required)]
    pub from_phase: Option<String>,
    /// The name of the new phase.
    pub to_phase: String,
    /// When the client moved to the new phase.
    pub advanced_at: Timestamp,
}

/// `message_received`: a client sent a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageReceived {
    pub message: MessageRef,
}

/// A message, without its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageRef {
    /// Identifies the message in the application. The API has no messages.
    pub id: MessageId,
    /// When the message was received.
    pub received_at: Timestamp,
}

/// `compliance_drop` and `compliance_milestone`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ComplianceCrossed {
    /// The share of expected doses that the client logged, in percent, over the automation's window.
    #[schema(maximum = 100)]
    pub compliance_pct: u8,
    pub automation: AutomationWithThreshold,
}

/// `phase_eligible`: a client may move to the next phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PhaseEligible {
    /// The name of the phase that the client is in.
    pub current_phase: String,
    /// The date, in the coach's time zone, since which the client may move on.
    pub eligible_since: NaiveDate,
    pub automation: NamedAutomation,
}

/// `check_in_inactivity`: a client has not checked in for as long as an automation allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckInInactivity {
    /// Null when the client has never checked in.
    #[schema(required)]
    pub last_check_in_at: Option<Timestamp>,
    /// Whole spans of 24 hours since then, or since the client was created.
    #[schema(minimum = 0)]
    pub days_inactive: i64,
    pub automation: AutomationWithThreshold,
}

/// `daily_log_inactivity`: a client has not kept the daily log for as long as an automation allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DailyLogInactivity {
    /// Null when the client has never kept the log.
    #[schema(required)]
    pub last_logged_on: Option<NaiveDate>,
    /// Whole days without a log, in the coach's time zone.
    #[schema(minimum = 0)]
    pub days_inactive: i64,
    pub automation: AutomationWithThreshold,
}

/// The automation that the event matched, by its id only: its name or threshold would reveal the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AutomationRef {
    /// Identifies the automation in the application.
    pub id: AutomationId,
}

/// The automation that the event matched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NamedAutomation {
    /// Identifies the automation in the application.
    pub id: AutomationId,
    /// The coach's name for the automation. It may be empty.
    pub name: String,
}

/// The automation that the event matched, with its threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AutomationWithThreshold {
    /// Identifies the automation in the application.
    pub id: AutomationId,
    /// The coach's name for the automation. It may be empty.
    pub name: String,
    /// Percent for compliance, days for inactivity.
    pub threshold: Measure,
}

/// The automation that sends an emitted event, as the event names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AutomationContext {
    // Before `ById`, whose members `Named` has too: serde takes the first variant that fits.
    Named(NamedAutomation),
    ById(AutomationRef),
}
