//! Coaching programmes: phases in order, and what it takes to leave each.

use serde::{Deserialize, Serialize};

use crate::id::{CoachId, ProgrammeId};

/// A programme's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programme {
    pub programme_id: ProgrammeId,
    pub coach_id: CoachId,
    /// In the order in which clients go through them.
    pub phases: Vec<ProgrammePhase>,
}

/// One phase of a programme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgrammePhase {
    pub name: String,
    /// Local dates that have to pass in the phase.
    pub min_days: u32,
    /// Compliance that has to be reached; `None` where it does not matter.
    pub min_compliance_pct: Option<u32>,
}
