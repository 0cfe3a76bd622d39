//! The answer of a command that acts.

use domain::audit::AuditAction;
use domain::id::CoachId;
use serde::Serialize;

/// The answer of an act.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    /// The action of the audit line.
    pub(crate) done: AuditAction,
    /// The id of what it was done to.
    pub(crate) target: String,
    pub(crate) coach_id: CoachId,
    /// False: it was so already.
    pub(crate) changed: bool,
}
