//! Acts on a record of a coach: the change and its line of the audit trail, in one transaction.

use domain::audit::{AuditAction, AuditDetail};
use domain::id::CoachId;
use domain::time::Timestamp;
use serde::Serialize;
use store::audit::AuditContext;
use store::unit::{Commit, Once, Unit, Units};
use store::vault::Vault;
use store::workspace::Workspaces;

use crate::actor::actor;
use crate::connection::Operator;
use crate::failure::Failure;
use crate::output::Answer;

/// An act, by its line of the audit trail.
pub(crate) struct RecordAct<'a> {
    pub(crate) action: AuditAction,
    /// The id of the record.
    pub(crate) target: &'a str,
    pub(crate) coach: &'a CoachId,
}

#[derive(Serialize)]
struct Done<'a> {
    done: AuditAction,
    target: &'a str,
    coach_id: &'a CoachId,
    /// False: it was so already.
    changed: bool,
}

impl RecordAct<'_> {
    /// Commits a unit with the line, or nothing. `now` is a time after the operator's consent.
    pub(crate) async fn commit(
        &self,
        operator: &Operator,
        vault: &Vault,
        unit: Unit,
        detail: AuditDetail,
        now: Timestamp,
    ) -> Result<Answer, Failure> {
        let Self { action, target, coach } = *self;
        let actor = actor(operator).await?;
        let workspaces = Workspaces::new(&operator.env, &operator.db)?;
        let audited = workspaces.audit(AuditContext { coach, actor: &actor, now }, action, target, detail);
        let units = Units::new(&operator.env, &operator.db, vault)?;
        match units.commit(unit.write([audited]), Once::ByVersion, now).await? {
            Commit::Done => self.done(),
            Commit::Refused(_) | Commit::Repeated(_) => {
                Err(Failure::refused(format!("{target} has changed meanwhile, nothing was done: try again")))
            }
        }
    }

    /// The answer of an act that is done.
    pub(crate) fn done(&self) -> Result<Answer, Failure> {
        self.answer(true)
    }

    /// The answer where it was so already.
    pub(crate) fn unchanged(&self) -> Result<Answer, Failure> {
        self.answer(false)
    }

    fn answer(&self, changed: bool) -> Result<Answer, Failure> {
        let Self { action, target, coach } = *self;
        Answer::of(&Done { done: action, target, coach_id: coach, changed })
    }
}
