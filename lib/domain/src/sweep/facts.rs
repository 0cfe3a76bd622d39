//! The part of a client's record that the rules read.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use crate::dose::{DoseSchedule, DosesLogged};
use crate::programme::ProgrammePhase;
use crate::time::Timestamp;
use crate::tz::Tz;

/// The facts of a client that the rules read.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub created_at: Timestamp,
    /// The workspace's time zone.
    pub zone: Tz,
    /// When the latest check-in was submitted.
    pub last_check_in_at: Option<Timestamp>,
    /// The latest date with a daily log.
    pub last_daily_log_on: Option<NaiveDate>,
    pub phase: Option<PhaseEntry>,
    /// The phases of the client's programme, in order.
    pub phases: Vec<ProgrammePhase>,
    pub schedule: DoseSchedule,
    /// The logs from the month of [`reads_from`](super::reads_from) on, later months included.
    pub logged: DosesLogged,
}

/// The entry of a client into a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseEntry {
    pub name: String,
    pub started_on: NaiveDate,
    /// Counts the client's entries: a phase may be left and entered again on one date.
    pub number: u64,
}
