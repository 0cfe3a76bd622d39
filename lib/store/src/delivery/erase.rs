//! A client is erased: the rendered bodies go, and what receivers answered, which may repeat them. Ids, times and statuses stay in the
//! log. A delivery that was still to be made ends; one whose attempt is under way is left to it: the log says that it was sent, and what
//! came of it.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use domain::delivery::DeliveryStatus;
use domain::id::ClientId;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::attempt::StoredAttempt;
use super::{Deliveries, ENTITY, Record};
use crate::db::{Ask, Item, StoreError, Written, b, failed, from_item, n, s, sk_of, to_attribute, write};

/// Deliveries that are read at once: each may hold what some sixty answers said.
const PAGE_ITEMS: i32 = 100;
/// Pages that one call erases.
const MAX_PAGES: usize = 3;
/// Updates at once.
const CONCURRENT_UPDATES: usize = 16;
/// The log's line for a delivery that ends.
pub(super) const REASON: &str = "not sent: client erased";
/// The end of the owner of an attempt whose client has been erased since it began.
const ERASED: &str = "/erased";

/// How far an erasure has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Erasing {
    Done,
    /// Up to this delivery. There are more.
    Until(String),
}

impl Deliveries {
    /// Removes all content from the deliveries about a client: from at most three pages of them, beginning after
    /// `after`.
    pub async fn erase_client(
        &self,
        client: &ClientId,
        after: Option<&str>,
        now: Timestamp,
    ) -> Result<Erasing, StoreError> {
        let mut after = after.unwrap_or_default().to_owned();
        for _ in 0..MAX_PAGES {
            let query = self.db.client().query().table_name(&self.table).index_name("by_client");
            let page = query
                .key_condition_expression("client_id = :client AND sk > :after")
                .expression_attribute_values(":client", s(client.as_str()))
                // A key's value is never empty.
                .expression_attribute_values(":after", s(if after.is_empty() { " " } else { &after }))
                .projection_expression("pk, sk")
                .limit(PAGE_ITEMS)
                .ask()
                .await
                .map_err(|error| failed("Query", error))?;
            let keys = page.items.unwrap_or_default();
            after = keys.last().map(|key| sk_of(key).to_owned()).unwrap_or(after);
            let items = self.db.read(&self.table, keys).await?;
            let erased = items.into_iter().map(|item| self.erase_body(item, now));
            stream::iter(erased).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
            if page.last_evaluated_key.is_none() {
                return Ok(Erasing::Done);
            }
        }
        Ok(Erasing::Until(after))
    }

    /// An attempt that begins or ends meanwhile changes the delivery: it is looked at again.
    async fn erase_body(&self, item: Item, now: Timestamp) -> Result<(), StoreError> {
        let mut record: Record = from_item(ENTITY, item)?;
        loop {
            let silent = record.attempts.iter().all(StoredAttempt::is_silent);
            let is_left = record.under_way(now).is_some_and(|owner| owner.ends_with(ERASED));
            if record.sealed.is_empty() && silent && (record.status != DeliveryStatus::Pending || is_left) {
                return Ok(());
            }
            match self.write_erased(&record, now).await? {
                Written::Done(_) | Written::Refused(None) => return Ok(()),
                Written::Refused(Some(item)) => record = from_item(ENTITY, item)?,
            }
        }
    }

    async fn write_erased(
        &self,
        record: &Record,
        now: Timestamp,
    ) -> Result<Written<aws_sdk_dynamodb::operation::update_item::UpdateItemOutput>, StoreError> {
        if let Some(owner) = record.under_way(now) {
            return self.leave_to(owner, record).await;
        }
        let mut lines: Vec<StoredAttempt> = record.attempts.iter().map(StoredAttempt::silenced).collect();
        let mut status = record.status;
        if status == DeliveryStatus::Pending {
            lines.push(StoredAttempt::unsent(now, REASON));
            status = DeliveryStatus::Failed;
        }
        write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table);
            update
                .key("pk", s(&record.pk))
                .key("sk", s(&record.sk))
                .update_expression(
                    "SET sealed = :nothing, attempts = :lines, #status = :status \
                     REMOVE failed_at, next_attempt_at, lease_owner, lease_until, hop, hop_owner",
                )
                .condition_expression(
                    "size(attempts) = :made AND #status = :was \
                     AND (#status <> :pending OR attribute_not_exists(lease_until) OR lease_until <= :now)",
                )
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":nothing", b(Vec::new()))
                .expression_attribute_values(":lines", AttributeValue::L(lines.iter().map(to_attribute).collect()))
                .expression_attribute_values(":status", s(status.as_str()))
                .expression_attribute_values(":was", s(record.status.as_str()))
                .expression_attribute_values(":pending", s(DeliveryStatus::Pending.as_str()))
                .expression_attribute_values(":now", n(now.ms()))
                .expression_attribute_values(":made", n(record.attempts.len()))
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .ask()
        })
        .await
    }

    /// Takes out what there is, and lets the attempt that is under way know.
    async fn leave_to(
        &self,
        owner: &str,
        record: &Record,
    ) -> Result<Written<aws_sdk_dynamodb::operation::update_item::UpdateItemOutput>, StoreError> {
        let lines = record.attempts.iter().map(|line| to_attribute(&line.silenced())).collect();
        let lines = AttributeValue::L(lines);
        write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table);
            update
                .key("pk", s(&record.pk))
                .key("sk", s(&record.sk))
                .update_expression("SET sealed = :nothing, attempts = :lines, lease_owner = :erased")
                .condition_expression("size(attempts) = :made AND lease_owner = :owner")
                .expression_attribute_values(":nothing", b(Vec::new()))
                .expression_attribute_values(":lines", lines.clone())
                .expression_attribute_values(":erased", s(erased_owner(owner)))
                .expression_attribute_values(":owner", s(owner))
                .expression_attribute_values(":made", n(record.attempts.len()))
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .ask()
        })
        .await
    }
}

impl Record {
    /// The owner of an attempt that is under way.
    fn under_way(&self, now: Timestamp) -> Option<&str> {
        let is_under_way = self.status == DeliveryStatus::Pending && self.lease_until > Some(now.ms());
        self.lease_owner.as_deref().filter(|_| is_under_way)
    }
}

/// Whom an attempt belongs to once its client has been erased.
pub(super) fn erased_owner(owner: &str) -> String {
    format!("{}{ERASED}", owner.strip_suffix(ERASED).unwrap_or(owner))
}
