//! Coaching programmes: ordered phases, and the conditions to leave each.

use serde::{Deserialize, Serialize};

use crate::id::{CoachId, ProgrammeId};

/// A programme's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programme {
    pub programme_id: ProgrammeId,
    pub coach_id: CoachId,
    /// In the order in which clients pass through them.
    pub phases: Vec<ProgrammePhase>,
}

/// One phase of a programme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgrammePhase {
    pub name: String,
    /// Least number of local dates in the phase.
    pub min_days: u32,
    /// Least compliance; `None`: not required.
    pub min_compliance_pct: Option<u32>,
}
