//! `key revoke`: ends a key at once.

use domain::audit::AuditAction;
use domain::key::KeyStatus;
use store::key::Keys;
use store::unit::Unit;

use crate::act::RecordAct;
use crate::connection::Operator;
use crate::failure::Failure;
use crate::options::KeyCommand;
use crate::output::Answer;

pub(crate) async fn key(
    operator: &Operator,
    KeyCommand::Revoke { id, consent }: &KeyCommand,
) -> Result<Answer, Failure> {
    let keys = Keys::new(&operator.env, &operator.db)?;
    let record = keys.of_any_coach(id).await?;
    let record = record.ok_or_else(|| Failure::not_found(format!("no key {id}: `find` says what the id is")))?;
    let coach = &record.coach_id;
    let act = RecordAct { action: AuditAction::KeyRevoked, target: id.as_str(), coach };
    if record.status(operator.now()) == KeyStatus::Revoked {
        return act.unchanged();
    }
    let vault = operator.vault().await?;
    consent.ask(&operator.stack, &format!("revokes key {id} ({}) of coach {coach} for good", record.display))?;
    let now = operator.now();
    let unit = Unit::new().write(keys.revoke(coach, id, now));
    act.commit(operator, &vault, unit, consent.detail(record.audit_detail()), now).await
}
