//! A client is erased: the rendered bodies go, and what receivers answered, which may repeat them. Ids, times and statuses stay in the
//! log. A delivery that was still to be made ends.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure};
use domain::delivery::DeliveryStatus;
use domain::id::ClientId;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::attempt::StoredAttempt;
use super::{Deliveries, ENTITY, Record};
use crate::db::{Item, StoreError, Written, b, failed, from_item, n, s, to_attribute, write};

/// Deliveries that are read at once: each may hold what some sixty answers said.
const PAGE_ITEMS: i32 = 100;
/// Updates at once.
const CONCURRENT_UPDATES: usize = 16;
/// The log's line for a delivery that ends.
const REASON: &str = "not sent: client erased";

impl Deliveries {
    /// Takes out of all deliveries about a client what says anything of it.
    pub async fn erase_client(&self, client: &ClientId, now: Timestamp) -> Result<(), StoreError> {
        let mut start = None;
        loop {
            let query = self.db.client().query().table_name(&self.table).index_name("by_client");
            let page = query
                .key_condition_expression("client_id = :client")
                .expression_attribute_values(":client", s(client.as_str()))
                .projection_expression("pk, sk")
                .limit(PAGE_ITEMS)
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| failed("Query", error))?;
            let items = self.db.read(&self.table, page.items.unwrap_or_default()).await?;
            let erased = items.into_iter().map(|item| self.erase_body(item, now));
            stream::iter(erased).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(());
            }
        }
    }

    /// An attempt that ends meanwhile adds a line: it is looked at again.
    async fn erase_body(&self, item: Item, now: Timestamp) -> Result<(), StoreError> {
        let mut record: Record = from_item(ENTITY, item)?;
        loop {
            let silent = record.attempts.iter().all(StoredAttempt::is_silent);
            if record.sealed.is_empty() && silent && record.status != DeliveryStatus::Pending {
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
                .update_expression("SET sealed = :nothing, attempts = :lines, #status = :status REMOVE failed_at, next_attempt_at, lease_owner, lease_until, hop, hop_owner")
                .condition_expression("size(attempts) = :made AND #status = :was")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":nothing", b(Vec::new()))
                .expression_attribute_values(":lines", AttributeValue::L(lines.iter().map(to_attribute).collect()))
                .expression_attribute_values(":status", s(status.as_str()))
                .expression_attribute_values(":was", s(record.status.as_str()))
                .expression_attribute_values(":made", n(record.attempts.len()))
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        })
        .await
    }
}
