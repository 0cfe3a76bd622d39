//! Table `workspaces`, the audit trail: lines of acts of operators that change no table, such as the redrive of a dead
//! letter.
//!
//! 1. `write_line` Transaction of the line alone.

use domain::audit::{AuditAction, AuditDetail};

use crate::audit::AuditContext;
use crate::db::{StoreError, Transacted};
use crate::workspace::Workspaces;

impl Workspaces {
    /// Writes the line of an act that changes no table. The caller writes the line before the act, so that no act lacks
    /// its line.
    pub async fn write_line(
        &self,
        context: AuditContext<'_>,
        action: AuditAction,
        target: &str,
        detail: AuditDetail,
    ) -> Result<(), StoreError> {
        match self.table.db.transact(&[self.audit(context, action, target, detail)]).await? {
            Transacted::Done => Ok(()),
            // Another line has the same time and distinguisher.
            Transacted::Refused(_) => Err(StoreError::contention("the audit trail")),
        }
    }
}
