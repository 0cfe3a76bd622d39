//! The state of a client between two evaluations: what each automation emitted or seeded, and when the client is due
//! again.

use std::collections::BTreeMap;

use chrono::{NaiveDate, TimeDelta};
use serde::{Deserialize, Serialize};

use super::facts::PhaseEntry;
use crate::id::AutomationId;
use crate::time::Timestamp;

/// Least time between the timestamps of two drops that an automation emits.
pub(super) const DROP_SPACING: TimeDelta = TimeDelta::days(7);

/// A client's states under its coach's automations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct States {
    /// The earliest instant at which an automation could match or a mark would change by time alone; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The next evaluation emits nothing: the client was created, handed over or reactivated, or a backfill changed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    pub of: BTreeMap<AutomationId, State>,
    /// The lasting parts for automations under which the client is not evaluated at present.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lasting: BTreeMap<AutomationId, Lasting>,
}

/// The state of a client under one automation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The revision of the automation that the mark belongs to.
    pub revision: Timestamp,
    #[serde(flatten)]
    pub mark: Mark,
}

/// The mark that keeps an automation from emitting the same match twice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Compliance is below the threshold, emitted or seeded. A drop that waits for the end of the seven days is not
    /// marked yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub below: bool,
    /// The check-in, or the creation, whose inactivity was emitted or seeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_in: Option<Timestamp>,
    /// The date of the log, or of the creation, whose inactivity was emitted or seeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily_log: Option<NaiveDate>,
    #[serde(flatten)]
    pub lasting: Lasting,
}

/// The part of a mark that outlives revisions, inactive times and coaches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lasting {
    /// The timestamp of the last emitted drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_at: Option<Timestamp>,
    /// The milestone was emitted or seeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reached: bool,
    /// The phase entry that was emitted or seeded as eligible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PhaseEntry>,
}

impl States {
    /// The states of a client that was never evaluated. Its first evaluation is silent.
    pub fn new() -> Self {
        Self { silent: true, ..Self::default() }
    }
}

impl Mark {
    /// The mark at the first evaluation under a revision.
    pub(super) fn seed(lasting: Option<&Lasting>) -> Self {
        Self { lasting: lasting.cloned().unwrap_or_default(), ..Self::default() }
    }
}

impl Lasting {
    /// Returns true while dropping this could emit a match twice.
    pub(super) fn still_counts(&self, phase: Option<&PhaseEntry>, now: Timestamp) -> bool {
        self.reached
            || self.dropped_at.is_some_and(|at| now < at + DROP_SPACING)
            || self.phase.as_ref().zip(phase).is_some_and(|(marked, present)| marked.number >= present.number)
    }
}
