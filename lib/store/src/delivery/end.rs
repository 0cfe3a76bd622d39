//! An endpoint takes no more deliveries: those that wait for it end. What is left over, because there is too much of it or because whoever
//! was at it died, ends when its next attempt is due.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure};
use domain::delivery::DeliveryStatus;
use domain::id::EndpointId;
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::attempt::StoredAttempt;
use super::{Deliveries, SORT_PREFIX, partition};
use crate::db::{Item, StoreError, failed, n, s, to_attribute, write};

/// Pages of the log that are looked through.
const MAX_PAGES: usize = 20;
/// Updates at once.
const CONCURRENT_UPDATES: usize = 16;

impl Deliveries {
    /// Ends the deliveries that wait for an endpoint, for this reason. One that is being attempted ends with its attempt.
    pub async fn end_waiting(&self, endpoint: &EndpointId, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut start = None;
        for _ in 0..MAX_PAGES {
            let query = self.db.client().query().table_name(&self.table);
            let page = query
                .key_condition_expression("pk = :pk AND begins_with(sk, :sk)")
                .filter_expression("#status = :pending")
                .projection_expression("pk, sk")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":pk", s(partition(endpoint)))
                .expression_attribute_values(":sk", s(SORT_PREFIX))
                .expression_attribute_values(":pending", s(DeliveryStatus::Pending.as_str()))
                .scan_index_forward(false)
                .set_exclusive_start_key(start)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
                .await
                .map_err(|error| failed("Query", error))?;
            let waiting: Vec<_> =
                page.items.unwrap_or_default().into_iter().map(|key| self.end(key, reason, now)).collect();
            stream::iter(waiting).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn end(&self, key: Item, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let line = StoredAttempt::unsent(now, reason);
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(key.clone()));
            update
                .update_expression("SET attempts = list_append(attempts, :line), #status = :failed, failed_at = :now REMOVE next_attempt_at, hop, hop_owner, lease_owner, lease_until")
                .condition_expression("#status = :pending AND (attribute_not_exists(lease_until) OR lease_until <= :now)")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":line", AttributeValue::L(vec![to_attribute(&line)]))
                .expression_attribute_values(":failed", s(DeliveryStatus::Failed.as_str()))
                .expression_attribute_values(":pending", s(DeliveryStatus::Pending.as_str()))
                .expression_attribute_values(":now", n(now.ms()))
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .return_consumed_capacity(ReturnConsumedCapacity::Total)
                .send()
        });
        // Refused: it has ended, or its attempt is under way.
        written.await?;
        Ok(())
    }
}
