//! Automations: rules of a coach, each with a trigger and steps. The service carries out the Webhook steps.
//!
//! Automations on emitted events are evaluated when the cause arrives, against the cause alone. Scores and grades are
//! compared here and dropped. The resulting events name the automation, never the value that met it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::check_in::{CheckInSubmitted, DroppedSystems, GradeDrops, SubmissionTimes};
use crate::client::{Client, Measure};
use crate::event::{
    AutomationContext, AutomationRef, AutomationWithThreshold, ComputedType, Event, EventName, EventType,
    NamedAutomation, StepSends,
};
use crate::id::{AutomationId, CoachId, EndpointId, EventId};

/// Limit on a coach's automations per kind of event; beyond it, those with the first ids are evaluated. A check-in
/// meets three kinds, and a low score also emits an event to subscribers per automation. So a check-in emits at most
/// four times this number of events, plus two. Each later check-in whose grade drop turns up with it adds at most this
/// number plus one.
pub const MAX_TRIGGERED: usize = 100;

/// A coach's automation.
#[derive(Debug, Clone, PartialEq)]
pub struct Automation {
    pub id: AutomationId,
    pub coach_id: CoachId,
    pub name: String,
    pub active: bool,
    pub trigger: Trigger,
    pub steps: Vec<Step>,
}

/// The trigger of an automation: an emitted event, or a state that a sweep finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Trigger {
    NewClient,
    CheckInSubmitted,
    PhaseAdvanced,
    MessageReceived,
    LowCheckInScore {
        threshold: f64,
        /// `None`: any question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question_id: Option<String>,
    },
    SystemGradeDrop {
        /// `None`: any wellness system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<String>,
    },
    ComplianceDrop {
        /// In percent.
        threshold: f64,
        window_days: u32,
    },
    ComplianceMilestone {
        /// In percent.
        threshold: f64,
        window_days: u32,
    },
    PhaseEligible,
    CheckInInactivity {
        days: u32,
    },
    DailyLogInactivity {
        days: u32,
    },
}

impl Trigger {
    pub fn event(&self) -> EventName {
        match self {
            Self::NewClient => EventType::NewClient.into(),
            Self::CheckInSubmitted => EventType::CheckInSubmitted.into(),
            Self::PhaseAdvanced => EventType::PhaseAdvanced.into(),
            Self::MessageReceived => EventType::MessageReceived.into(),
            Self::LowCheckInScore { .. } => EventType::LowCheckInScore.into(),
            Self::SystemGradeDrop { .. } => EventType::SystemGradeDrop.into(),
            Self::ComplianceDrop { .. } => ComputedType::ComplianceDrop.into(),
            Self::ComplianceMilestone { .. } => ComputedType::ComplianceMilestone.into(),
            Self::PhaseEligible => ComputedType::PhaseEligible.into(),
            Self::CheckInInactivity { .. } => ComputedType::CheckInInactivity.into(),
            Self::DailyLogInactivity { .. } => ComputedType::DailyLogInactivity.into(),
        }
    }

    /// Returns the computed event that triggers the automation, if any.
    pub fn computed(&self) -> Option<ComputedType> {
        match self.event() {
            EventName::Computed(event) => Some(event),
            EventName::Emitted(_) => None,
        }
    }

    /// Returns true if one of the scores is below the threshold. A trigger with a question compares that question's
    /// score only.
    fn is_met_by_scores(&self, scores: &BTreeMap<String, f64>) -> bool {
        match self {
            Self::LowCheckInScore { threshold, question_id: Some(question) } => {
                scores.get(question).is_some_and(|score| score < threshold)
            }
            Self::LowCheckInScore { threshold, question_id: None } => scores.values().any(|score| score < threshold),
            _ => false,
        }
    }

    /// Returns true if one of the grades dropped. A trigger with a wellness system considers that system's grade only.
    fn is_met_by_grades(&self, systems: &DroppedSystems) -> bool {
        match self {
            Self::SystemGradeDrop { system: Some(system) } => systems.includes(system),
            Self::SystemGradeDrop { system: None } => systems.any(),
            _ => false,
        }
    }
}

/// A step of an automation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Sends the event to an endpoint.
    Webhook { endpoint_id: EndpointId },
    /// A step that the application carries out.
    Other { kind: String },
}

impl Automation {
    /// Returns the endpoints that the automation's steps name, each once.
    pub fn endpoints(&self) -> Vec<EndpointId> {
        let named = self.steps.iter().filter_map(|step| match step {
            Step::Webhook { endpoint_id } => Some(endpoint_id.clone()),
            Step::Other { .. } => None,
        });
        named.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the automation as most events name it.
    pub fn named(&self) -> NamedAutomation {
        NamedAutomation { id: self.id.clone(), name: self.name.clone() }
    }

    /// Returns the automation as events name it whose figure it compares.
    pub fn with_threshold(&self, threshold: f64) -> AutomationWithThreshold {
        AutomationWithThreshold { id: self.id.clone(), name: self.name.clone(), threshold: Measure(threshold) }
    }
}

impl Event {
    /// Returns the event that an automation's Webhook steps send, with an id of its own per cause and automation.
    /// `None`: no step sends it.
    pub fn sent_by(&self, automation: &Automation) -> Option<Self> {
        let to = automation.endpoints();
        if to.is_empty() {
            return None;
        }
        let context = match self.event_type.sent_by_steps() {
            StepSends::Nothing => return None,
            StepSends::AsIs => None,
            StepSends::WithId => Some(AutomationContext::ById(AutomationRef { id: automation.id.clone() })),
            StepSends::WithName => Some(AutomationContext::Named(automation.named())),
        };
        let cause = ["automation", self.id.as_str(), automation.id.as_str()];
        let id = EventId::derive(self.occurred_at.ms(), &cause);
        Some(Self { id, automation: context, to, ..self.clone() })
    }
}

/// Returns everything that one cause emits: the event for subscribers, and the events that automations send.
pub fn emitted_events(event: Event, automations: &[Automation]) -> Vec<Event> {
    let waits = |automation: &&Automation| automation.trigger.event() == event.event_type;
    let sent: Vec<Event> = triggered(automations, waits).filter_map(|automation| event.sent_by(automation)).collect();
    std::iter::once(event).chain(sent).collect()
}

/// Returns everything that a check-in emits: its own events, and the grade drops of later check-ins that it reveals. A
/// low score emits one event to subscribers per automation that it meets.
pub fn check_in_events(
    client: &Client,
    check_in: &CheckInSubmitted,
    drops: &GradeDrops,
    automations: &[Automation],
) -> Vec<Event> {
    let (id, at) = (&check_in.check_in, check_in.submitted_at);
    let times = SubmissionTimes::at(at);
    let mut events = emitted_events(Event::of_check_in(client, EventType::CheckInSubmitted, id, times), automations);
    for automation in triggered(automations, |automation| automation.trigger.is_met_by_scores(&check_in.scores)) {
        let low = Event::low_check_in_score(client, id, at, &automation.id);
        let sent = low.sent_by(automation);
        events.push(low);
        events.extend(sent);
    }
    let here = Some((id, times, &drops.here)).filter(|_| drops.here.any());
    let later = drops.later.iter().map(|(id, later)| (id, later.times, &later.systems));
    for (id, times, systems) in here.into_iter().chain(later) {
        let drop = Event::of_check_in(client, EventType::SystemGradeDrop, id, times);
        let of_system = triggered(automations, |automation| automation.trigger.is_met_by_grades(systems));
        let sent: Vec<Event> = of_system.filter_map(|automation| drop.sent_by(automation)).collect();
        events.push(drop);
        events.extend(sent);
    }
    events
}

/// Returns the active automations that `meets` accepts, up to [`MAX_TRIGGERED`].
fn triggered(automations: &[Automation], meets: impl Fn(&&Automation) -> bool) -> impl Iterator<Item = &Automation> {
    automations.iter().filter(|automation| automation.active).filter(meets).take(MAX_TRIGGERED)
}

#[cfg(test)]
mod tests;
