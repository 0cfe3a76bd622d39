//! Table `workspaces`, the audit trail: changes of keys and endpoints, and deliveries that a coach ordered. A line is
//! written in the transaction of its change, never changed, never deleted.
//!
//! pk `COACH#<coach_id>`, sk `AUDIT#<time>#<distinguisher>`: `action`, `subject` (the id of the changed thing), `at`,
//! `actor`, `detail`.
//! The same pk, sk `ERASURE#<time>#<distinguisher>`: an erased client. Erasures have keys of their own, so that the
//! list does not read them.
//!
//! 1. `audit_page` Query, consistent, newest first.
//! 2. `lines_about` Query, consistent, for operators: the lines whose subject is a client.

use domain::audit::{AuditAction, AuditActor, AuditCursor, AuditDetail, AuditEntry, DISTINGUISHER_DIGITS};
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use runtime::random_bytes;
use serde::{Deserialize, Serialize};

use crate::db::{
    Item, Part, QueryPage, StoreError, Table, Write, from_item, query_all, query_page, s, sk_of, text, to_item,
};
use crate::workspace::{Workspaces, key_of, partition};

const LINES: &str = "AUDIT#";
const ERASURES: &str = "ERASURE#";
/// The action of an erasure, which the list does not show.
const CLIENT_ERASED: &str = "client.erased";

/// The settings that change, the cause of the change, and its time.
#[derive(Debug, Clone, Copy)]
pub struct AuditContext<'a> {
    pub coach: &'a CoachId,
    pub actor: &'a AuditActor,
    pub now: Timestamp,
}

/// A line as stored.
#[derive(Serialize, Deserialize)]
struct AuditLine {
    pk: String,
    sk: String,
    action: AuditAction,
    #[serde(rename = "subject")]
    target: String,
    at: Timestamp,
    actor: AuditActor,
    detail: AuditDetail,
}

/// The line of an erasure as stored.
#[derive(Serialize)]
struct ErasureLine<'a> {
    pk: String,
    sk: String,
    action: &'static str,
    subject: &'a ClientId,
    at: Timestamp,
    actor: AuditActor,
}

impl From<AuditLine> for AuditEntry {
    fn from(AuditLine { action, target, at, actor, detail, .. }: AuditLine) -> Self {
        Self { at, actor, action, target, detail }
    }
}

/// The line of a change, as part of its transaction.
pub(crate) fn record(
    table: &Table,
    AuditContext { coach, actor, now }: AuditContext<'_>,
    action: AuditAction,
    target: &str,
    detail: AuditDetail,
) -> Write {
    let line = AuditLine {
        pk: partition(coach),
        sk: sort_key(LINES, now, &new_distinguisher()),
        action,
        target: target.to_owned(),
        at: now,
        actor: actor.clone(),
        detail,
    };
    table.write(to_item(&line)).when_absent().put(Part::Audit)
}

/// The line of an erasure, as part of its transaction.
pub(crate) fn record_erasure(table: &Table, coach: &CoachId, client: &ClientId, at: Timestamp) -> Write {
    let line = ErasureLine {
        pk: partition(coach),
        sk: sort_key(ERASURES, at, &new_distinguisher()),
        action: CLIENT_ERASED,
        subject: client,
        at,
        actor: AuditActor::service(),
    };
    table.write(to_item(&line)).when_absent().put(Part::Audit)
}

/// Reads the erased clients of a coach.
pub(crate) async fn erased_clients(table: &Table, coach: &CoachId) -> Result<Vec<ClientId>, StoreError> {
    let values = [(":pk", s(partition(coach))), (":erasures", s(ERASURES))];
    let query = table.query("pk = :pk AND begins_with(sk, :erasures)", values).projection_expression("subject");
    let items = query_all(query).await?;
    Ok(items.iter().filter_map(|item| ClientId::parse(text(item, "subject")).ok()).collect())
}

/// Reads the lines of a coach's trail whose subject is a client.
pub(crate) async fn lines_about(table: &Table, coach: &CoachId, client: &ClientId) -> Result<Vec<Item>, StoreError> {
    let values = [(":pk", s(partition(coach))), (":lines", s(LINES)), (":client", s(client.as_str()))];
    let query = table.query("pk = :pk AND begins_with(sk, :lines)", values).consistent_read(true);
    query_all(query.filter_expression("subject = :client")).await
}

/// A page of a trail.
pub struct AuditRead {
    pub data: Vec<AuditEntry>,
    /// The end of the page, if more lines follow.
    pub next: Option<AuditCursor>,
}

impl Workspaces {
    /// Part of a transaction: the line of a change.
    pub fn audit(&self, context: AuditContext<'_>, action: AuditAction, target: &str, detail: AuditDetail) -> Write {
        record(&self.table, context, action, target, detail)
    }

    /// Reads a page of a coach's trail after `cursor`, newest first. A page of large lines is shorter than
    /// `limit`.
    pub async fn audit_page(
        &self,
        coach: &CoachId,
        cursor: Option<&AuditCursor>,
        limit: usize,
    ) -> Result<AuditRead, StoreError> {
        let values = [(":pk", s(partition(coach))), (":lines", s(LINES))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :lines)", values);
        let query = query
            .consistent_read(true)
            .scan_index_forward(false)
            .limit(i32::try_from(limit + 1).unwrap_or(i32::MAX))
            .set_exclusive_start_key(cursor.map(|cursor| key_of(coach, &sort_key_of(cursor))));
        let QueryPage { mut items, next } = query_page(query).await?;
        // DynamoDB ends a page early if its lines are large.
        let has_more = items.len() > limit || next.is_some();
        items.truncate(limit);
        let next = items.last().filter(|_| has_more).map(cursor_of).transpose()?;
        let lines = items.into_iter().map(|item| from_item::<AuditLine>("audit line", item));
        let data = lines.map(|line| line.map(AuditEntry::from)).collect::<Result<_, _>>()?;
        Ok(AuditRead { data, next })
    }
}

/// Lines of one millisecond differ in their distinguisher, which also orders them.
fn sort_key(prefix: &str, at: Timestamp, distinguisher: &str) -> String {
    format!("{prefix}{at}#{distinguisher}")
}

fn new_distinguisher() -> String {
    hex::encode(random_bytes::<{ DISTINGUISHER_DIGITS / 2 }>())
}

fn sort_key_of(cursor: &AuditCursor) -> String {
    sort_key(LINES, cursor.at, &cursor.distinguisher)
}

fn cursor_of(item: &Item) -> Result<AuditCursor, StoreError> {
    let parts = sk_of(item).strip_prefix(LINES).and_then(|sk| sk.split_once('#'));
    let cursor = parts.and_then(|(at, distinguisher)| AuditCursor::new(Timestamp::parse(at)?, distinguisher));
    cursor.ok_or_else(|| StoreError::corrupt("audit line", "its key has another form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_of_a_line_leads_back_to_its_key() {
        let sk = sort_key(LINES, Timestamp::from_ms(5), &new_distinguisher());
        let item = Item::from([("sk".to_owned(), s(sk.clone()))]);
        assert_eq!(sort_key_of(&cursor_of(&item).unwrap()), sk);
    }
}
