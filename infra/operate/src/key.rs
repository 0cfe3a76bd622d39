//! `key revoke`: ends a key at once.

use domain::audit::AuditAction;
use domain::key::KeyStatus;
use store::audit::AuditContext;
use store::key::Keys;
use store::unit::{Commit, Once, Unit, Units};
use store::workspace::Workspaces;

use crate::actor::actor;
use crate::connection::Operator;
use crate::done::Done;
use crate::endpoint::raced;
use crate::failure::Failure;
use crate::options::KeyCommand;
use crate::output::Answer;

pub(crate) async fn key(
    operator: &Operator,
    KeyCommand::Revoke { id, consent }: &KeyCommand,
) -> Result<Answer, Failure> {
    let keys = Keys::new(&operator.env, &operator.db)?;
    let workspaces = Workspaces::new(&operator.env, &operator.db)?;
    let record = keys.of_any_coach(id).await?;
    let record = record.ok_or_else(|| Failure::not_found(format!("no key {id}: `find` says what the id is")))?;
    let coach = &record.coach_id;
    let done = |changed| {
        let (done, target, coach_id) = (AuditAction::KeyRevoked, id.to_string(), coach.clone());
        Answer::of(&Done { done, target, coach_id, changed })
    };
    let now = operator.now();
    if record.status(now) == KeyStatus::Revoked {
        return done(false);
    }
    let units = Units::new(&operator.env, &operator.db, &operator.vault().await?)?;
    consent.ask(&operator.stack, &format!("revokes key {id} ({}) of coach {coach} for good", record.display))?;
    let actor = actor(operator).await?;
    let context = AuditContext { coach, actor: &actor, now };
    let detail = consent.detail(record.audit_detail());
    let audited = workspaces.audit(context, AuditAction::KeyRevoked, id.as_str(), detail);
    let unit = Unit::new().write(keys.revoke(coach, id, now)).write([audited]);
    match units.commit(unit, Once::ByVersion, now).await? {
        Commit::Done => done(true),
        Commit::Refused(_) | Commit::Repeated(_) => Err(raced(id.as_str())),
    }
}
