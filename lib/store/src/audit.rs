//! Table `workspaces`, the audit trail: who changed keys and endpoints, and when. Written with the change, never changed, never deleted.
//! The coach is who: nobody else has access to the settings.
//!
//! pk `COACH#<coach_id>`, sk `AUDIT#<time>#<random>`: `action`, `subject` (the id of what was changed), `at`.

use aws_sdk_dynamodb::types::Put;
use domain::id::CoachId;
use domain::time::Timestamp;
use runtime::random_bytes;

use crate::db::{Part, Write, s};
use crate::workspace::partition;

/// Part of the change's transaction. `action` is a noun and a verb, such as `endpoint.created`.
pub(crate) fn record(table: &str, coach: &CoachId, action: &str, subject: &str, at: Timestamp) -> Write {
    let distinguisher = hex::encode(random_bytes::<6>());
    let put = Put::builder()
        .table_name(table)
        .item("pk", s(partition(coach)))
        .item("sk", s(format!("AUDIT#{at}#{distinguisher}")))
        .item("action", s(action))
        .item("subject", s(subject))
        .item("at", s(at.to_string()))
        .condition_expression("attribute_not_exists(pk)");
    Part::Audit.put(put)
}
