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
    /// Of automations that it is not judged by now: those that are switched off or of another kind, and another coach's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lasting: BTreeMap<AutomationId, Lasting>,
}

/// How an automation stands with a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// What the automation waits for, of which this is told.
    pub trigger: Trigger,
    /// Compliance is below the threshold, which was told or seeded. A drop that waits for the seven days to end is not yet below.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub below: bool,
    /// The check-in since which inactivity was told, or the creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_in: Option<Timestamp>,
    /// The date of the log since which inactivity was told, or of the creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_log: Option<NaiveDate>,
    #[serde(flatten)]
    pub lasting: Lasting,
}

/// Of what an automation told, that which stays told whatever becomes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lasting {
    /// When the client came to match the last drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_at: Option<Timestamp>,
    /// A milestone was reached: once for ever, another coach's too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reached: bool,
    /// The entry into the phase that the client may leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PhaseEntry>,
}

impl States {
    /// Of a client that nothing is remembered of. What it matches as it comes is not told.
    pub fn new(now: Timestamp) -> Self {
        let (of, lasting) = (BTreeMap::new(), BTreeMap::new());
        Self { at: now, due: Some(next_minute(now)), silent: false, fresh: true, of, lasting }
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
    /// Of an automation that has told nothing, but for what lasts.
    pub(super) fn fresh(trigger: &Trigger, lasting: Option<&Lasting>) -> Self {
        let lasting = lasting.cloned().unwrap_or_default();
        Self { trigger: trigger.clone(), below: false, check_in: None, daily_log: None, lasting }
    }
}

/// The first whole minute after an instant.
fn next_minute(at: Timestamp) -> Timestamp {
    at + TimeDelta::milliseconds(MINUTE_MS - at.ms().rem_euclid(MINUTE_MS))
}
