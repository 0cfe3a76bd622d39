//! Outcomes of attempts and of deliveries.

use serde::{Deserialize, Serialize};

const GONE: u16 = 410;

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptResult {
    /// The receiver answered.
    StatusCode(u16),
    /// The receiver did not answer, for this reason.
    Error(String),
}

impl AttemptResult {
    pub fn is_success(&self) -> bool {
        matches!(self, Self::StatusCode(code) if (200..300).contains(code))
    }

    /// Returns true if the receiver answered 410 Gone.
    pub fn is_gone(&self) -> bool {
        *self == Self::StatusCode(GONE)
    }
}

/// The deliveries of an endpoint that ended in this hour or in the 23 before, and those that wait. Test events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, utoipa::ToSchema)]
pub struct DeliveryCounts {
    /// Deliveries that were delivered.
    pub delivered: u64,
    /// Deliveries that failed for good.
    pub failed: u64,
    /// Deliveries that wait now, whenever they were created. At most 1,000 are counted.
    pub pending: u64,
}
