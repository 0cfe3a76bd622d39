//! The evaluation of a workspace's clients on demand.

use serde::Serialize;

/// Most clients that one request evaluates.
pub const MAX_EVALUATED: usize = 100;

/// The result of an evaluation on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EvaluationResult {
    /// The clients that were due.
    pub evaluated: usize,
    /// The events that were emitted. A client's first evaluation under an automation emits none.
    pub events: usize,
    /// True if more clients may be due: evaluate again.
    pub more: bool,
}
