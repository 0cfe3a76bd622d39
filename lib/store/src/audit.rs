//! Table `workspaces`, the audit trail: changes of keys and endpoints, and erasures. Written in the transaction of the
//! change, never changed, never deleted. Only the coach has access to the settings, so a record names no actor.
//!
//! pk `COACH#<coach_id>`, sk `AUDIT#<time>#<random>`: `action`, `subject` (the id of the changed thing), `at`.

use domain::id::CoachId;
use domain::time::Timestamp;
use runtime::random_bytes;

use crate::db::{Part, Table, Write, s};
use crate::workspace::key_of;

/// The audit record of a change, as part of its transaction. `action` is a noun and a verb, such as `endpoint.created`.
pub(crate) fn record(table: &Table, coach: &CoachId, action: &str, subject: &str, at: Timestamp) -> Write {
    let mut item = key_of(coach, &format!("AUDIT#{at}#{}", hex::encode(random_bytes::<6>())));
    let values = [("action", s(action)), ("subject", s(subject)), ("at", s(at.to_string()))];
    item.extend(values.map(|(name, value)| (name.to_owned(), value)));
    table.write(item).when_absent().put(Part::Audit)
}
