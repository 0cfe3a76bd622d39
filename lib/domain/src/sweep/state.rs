//! What is remembered of a client between two evaluations: what it was told for by which automation, and when it is due again.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use super::{PhaseEntry, earliest};
use crate::automation::Trigger;
use crate::id::AutomationId;
use crate::time::Timestamp;

const MINUTE_MS: i64 = 60_000;

/// A client's states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct States {
    /// When the client was last evaluated in full, or came to its coach, or back to the active roster.
    pub at: Timestamp,
    /// The earliest instant at which something could come to match or a state would change; `None` where nothing can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// What made the client due came from a backfill, of which nothing is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Not judged yet since then: whatever comes next is news, and what it matched as it came is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    pub of: BTreeMap<AutomationId, State>,
}

/// How an automation stands with a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Of the automation, when it was judged.
    pub revision: Timestamp,
    /// Up to when it was judged, where an evaluation had more to tell than fits and the rest waits for the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Timestamp>,
    #[serde(flatten)]
    pub mark: Mark,
}

/// What keeps an automation from telling the same twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Mark {
    ComplianceDrop {
        /// Below the threshold, and told of or seeded. A drop that waits for the seven days to end is not yet below.
        below: bool,
        /// When the client came to match that was last told of.
        fired_at: Option<Timestamp>,
    },
    ComplianceMilestone {
        reached: bool,
    },
    PhaseEligible {
        told: Option<PhaseEntry>,
    },
    CheckInInactivity {
        /// The check-in since which, or the creation.
        told: Option<Timestamp>,
    },
    DailyLogInactivity {
        /// The date of the log since which, or of the creation.
        told: Option<NaiveDate>,
    },
}

impl States {
    /// Of a client that nothing is remembered of. What it matches as it comes is not told.
    pub fn new(now: Timestamp) -> Self {
        Self { at: now, due: Some(next_minute(now)), silent: false, fresh: true, of: BTreeMap::new() }
    }

    /// A client that is with another coach, or back on the active roster. What it was told for is not told again; automations that are
    /// new to it are judged as of now, and all of them silently where a backfill brings it.
    pub fn restart(&mut self, now: Timestamp, backfill: bool) {
        self.at = self.at.max(now);
        self.due = Some(next_minute(self.at));
        self.silent = backfill;
        self.fresh = true;
    }

    /// What it is judged by is another: it is judged soon.
    pub fn wake(&mut self, now: Timestamp) {
        self.due = earliest(self.due, Some(next_minute(now.max(self.at))));
    }

    /// A fact changes what is known of the client: it is judged at the next whole minute, silently what a backfill brings.
    pub fn touch(&mut self, now: Timestamp, backfill: bool) {
        self.wake(now);
        self.silent = backfill;
    }

    /// Whether the client is to be evaluated before a fact is applied, with what was known until then: it is due or was never judged, an
    /// automation of its coach was saved since it was last judged, or what waits to be judged is silent where the fact is not, or the reverse.
    pub fn comes_first(&self, now: Timestamp, rules_saved_at: Option<Timestamp>, backfill: bool) -> bool {
        let due_by = |at: Timestamp| self.due.is_some_and(|due| due <= at);
        let mixed = self.silent != backfill && due_by(next_minute(now));
        self.fresh || due_by(now) || mixed || rules_saved_at.is_some_and(|saved_at| saved_at >= self.at)
    }
}

impl Mark {
    /// Whether it is a mark of such automations.
    pub(super) fn is_of(&self, trigger: &Trigger) -> bool {
        matches!(
            (self, trigger),
            (Self::ComplianceDrop { .. }, Trigger::ComplianceDrop { .. })
                | (Self::ComplianceMilestone { .. }, Trigger::ComplianceMilestone { .. })
                | (Self::PhaseEligible { .. }, Trigger::PhaseEligible)
                | (Self::CheckInInactivity { .. }, Trigger::CheckInInactivity { .. })
                | (Self::DailyLogInactivity { .. }, Trigger::DailyLogInactivity { .. })
        )
    }

    /// Of an automation that tells of nothing yet. Of its last revision stay the milestone that was reached and the time of the last drop.
    pub(super) fn fresh(trigger: &Trigger, last: Option<&Self>) -> Self {
        let last = last.filter(|mark| mark.is_of(trigger));
        match trigger {
            Trigger::ComplianceDrop { .. } => {
                let Some(Self::ComplianceDrop { fired_at, .. }) = last else {
                    return Self::ComplianceDrop { below: false, fired_at: None };
                };
                Self::ComplianceDrop { below: false, fired_at: *fired_at }
            }
            Trigger::PhaseEligible => Self::PhaseEligible { told: None },
            Trigger::CheckInInactivity { .. } => Self::CheckInInactivity { told: None },
            Trigger::DailyLogInactivity { .. } => Self::DailyLogInactivity { told: None },
            // The rest of the triggers are judged when their cause comes in, and have no mark.
            _ => last.cloned().unwrap_or(Self::ComplianceMilestone { reached: false }),
        }
    }
}

/// The first whole minute after an instant.
fn next_minute(at: Timestamp) -> Timestamp {
    at + TimeDelta::milliseconds(MINUTE_MS - at.ms().rem_euclid(MINUTE_MS))
}
