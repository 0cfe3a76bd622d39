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
        ContactCreated = "contact_created",
        ContactUpdated = "contact_updated",
        ContactMerged = "contact_merged",
        OpportunityCreated = "opportunity_created",
        OpportunityUpdated = "opportunity_updated",
        OpportunityStageChanged = "opportunity_stage_changed",
        BookingCreated = "booking_created",
        BookingRescheduled = "booking_rescheduled",
        BookingCancelled = "booking_cancelled",
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

crate::named! {
    /// The kind of records that an event is about.
    EventGroup {
        Client = "client",
        Contact = "contact",
        Opportunity = "opportunity",
        Booking = "booking",
    }
}

/// The way in which the Webhook step of an automation names the automation in an emitted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepSends {
    /// No step sends the event: no trigger names it, or it comes from its automation anyway.
    Nothing,
    /// The data names the automation already.
    AsIs,
    /// The id alone is added: the name would reveal an answer.
    WithId,
    WithName,
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

    /// Returns the kind of records that the event is about.
    pub fn group(self) -> EventGroup {
        match self {
            Self::Computed(_)
            | Self::Emitted(
                EventType::NewClient
                | EventType::CheckInSubmitted
                | EventType::LowCheckInScore
                | EventType::SystemGradeDrop
                | EventType::PhaseAdvanced
                | EventType::MessageReceived,
            ) => EventGroup::Client,
            Self::Emitted(EventType::ContactCreated | EventType::ContactUpdated | EventType::ContactMerged) => {
                EventGroup::Contact
            }
            Self::Emitted(
                EventType::OpportunityCreated | EventType::OpportunityUpdated | EventType::OpportunityStageChanged,
            ) => EventGroup::Opportunity,
            Self::Emitted(EventType::BookingCreated | EventType::BookingRescheduled | EventType::BookingCancelled) => {
                EventGroup::Booking
            }
        }
    }

    /// Returns how a step of an automation sends the event.
    pub(crate) fn sent_by_steps(self) -> StepSends {
        match self {
            Self::Computed(_)
            | Self::Emitted(
                EventType::ContactCreated
                | EventType::ContactUpdated
                | EventType::ContactMerged
                | EventType::OpportunityCreated
                | EventType::OpportunityUpdated
                | EventType::OpportunityStageChanged
                | EventType::BookingCreated
                | EventType::BookingRescheduled
                | EventType::BookingCancelled,
            ) => StepSends::Nothing,
            Self::Emitted(EventType::LowCheckInScore) => StepSends::AsIs,
            Self::Emitted(EventType::SystemGradeDrop) => StepSends::WithId,
            Self::Emitted(
                EventType::NewClient
                | EventType::CheckInSubmitted
                | EventType::PhaseAdvanced
                | EventType::MessageReceived,
            ) => StepSends::WithName,
        }
    }

    /// Returns the event in words for a coach: a title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Emitted(EventType::NewClient) => "New client",
            Self::Emitted(EventType::CheckInSubmitted) => "Check-in submitted",
            Self::Emitted(EventType::LowCheckInScore) => "Low check-in score",
            Self::Emitted(EventType::SystemGradeDrop) => "Wellness system graded lower",
            Self::Emitted(EventType::PhaseAdvanced) => "Phase advanced",
            Self::Emitted(EventType::MessageReceived) => "Message received",
            Self::Emitted(EventType::ContactCreated) => "Contact created",
            Self::Emitted(EventType::ContactUpdated) => "Contact changed",
            Self::Emitted(EventType::ContactMerged) => "Contacts merged",
            Self::Emitted(EventType::OpportunityCreated) => "Opportunity created",
            Self::Emitted(EventType::OpportunityUpdated) => "Opportunity changed",
            Self::Emitted(EventType::OpportunityStageChanged) => "Opportunity moved to another stage",
            Self::Emitted(EventType::BookingCreated) => "Booking made",
            Self::Emitted(EventType::BookingRescheduled) => "Booking moved",
            Self::Emitted(EventType::BookingCancelled) => "Booking cancelled",
            Self::Computed(ComputedType::ComplianceDrop) => "Compliance dropped",
            Self::Computed(ComputedType::ComplianceMilestone) => "Compliance milestone reached",
            Self::Computed(ComputedType::PhaseEligible) => "Ready for the next phase",
            Self::Computed(ComputedType::CheckInInactivity) => "No check-in for a while",
            Self::Computed(ComputedType::DailyLogInactivity) => "No daily log for a while",
        }
    }

    /// Returns one to three sentences for a coach: when the event happens.
    pub fn description(self) -> &'static str {
        match self {
            Self::Emitted(EventType::NewClient) => {
                "A client was created: in the application, by an import, or by a connected system."
            }
            Self::Emitted(EventType::CheckInSubmitted) => "A client submitted a check-in.",
            Self::Emitted(EventType::LowCheckInScore) => {
                "A check-in answer was below an automation's threshold. Sent once for each check-in and automation."
            }
            Self::Emitted(EventType::SystemGradeDrop) => {
                "A wellness system was graded lower than before. Sent once for each check-in. The event contains \
                 neither the system nor the grade."
            }
            Self::Emitted(EventType::PhaseAdvanced) => "A client moved to another phase of the programme.",
            Self::Emitted(EventType::MessageReceived) => {
                "A client sent a message. The event does not contain its text."
            }
            Self::Emitted(EventType::ContactCreated) => {
                "A contact was created: in the application, or by a connected system."
            }
            Self::Emitted(EventType::ContactUpdated) => {
                "A contact's name, e-mail address, phone number or consent changed, or the contact became a client."
            }
            Self::Emitted(EventType::ContactMerged) => {
                "A contact was merged into another. The event names the contact that stays and the one that is gone."
            }
            Self::Emitted(EventType::OpportunityCreated) => {
                "An opportunity was created: in the application, or by a connected system."
            }
            Self::Emitted(EventType::OpportunityUpdated) => "An opportunity's name, value or contact changed.",
            Self::Emitted(EventType::OpportunityStageChanged) => {
                "An opportunity moved to another stage, such as won or lost, or to another pipeline. The event does not \
                 contain the reason of a loss."
            }
            Self::Emitted(EventType::BookingCreated) => "An appointment was booked, or confirmed again.",
            Self::Emitted(EventType::BookingRescheduled) => "A booking moved to another time.",
            Self::Emitted(EventType::BookingCancelled) => "A booking was cancelled, or taken off its calendar.",
            Self::Computed(ComputedType::ComplianceDrop) => {
                "A client's compliance fell below the automation's threshold."
            }
            Self::Computed(ComputedType::ComplianceMilestone) => {
                "A client's compliance reached the automation's milestone. Sent once for each client and automation."
            }
            Self::Computed(ComputedType::PhaseEligible) => {
                "A client may move to the next phase. Sent once for each entry into a phase."
            }
            Self::Computed(ComputedType::CheckInInactivity) => {
                "A client has not checked in for as long as the automation allows. Sent again only after a new \
                 check-in."
            }
            Self::Computed(ComputedType::DailyLogInactivity) => {
                "A client has not kept the daily log for as long as the automation allows. Sent again only after a \
                 new log."
            }
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
