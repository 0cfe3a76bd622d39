//! Coaching programmes: ordered phases, and the conditions to leave each.

use serde::{Deserialize, Serialize};

use crate::fact_values::{MAX_NAME_CHARS, count, nullable_count, objects, text};
use crate::id::{CoachId, ProgrammeId};

const MAX_PHASES: usize = 200;

/// A programme's record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Programme {
    pub programme_id: ProgrammeId,
    pub coach_id: CoachId,
    /// In the order in which clients pass through them.
    #[serde(deserialize_with = "objects::<MAX_PHASES, _, _>")]
    pub phases: Vec<ProgrammePhase>,
}

/// One phase of a programme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgrammePhase {
    #[serde(deserialize_with = "text::<MAX_NAME_CHARS, _>")]
    pub name: String,
    /// Least number of local dates in the phase.
    #[serde(deserialize_with = "count")]
    pub min_days: u32,
    /// Least compliance; `None`: not required.
    #[serde(deserialize_with = "nullable_count")]
    pub min_compliance_pct: Option<u32>,
}
