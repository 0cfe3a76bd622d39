//! An endpoint takes no more deliveries: those that wait for it end. What is left over, because there is too much of it or because whoever
//! was at it died, ends when its next attempt is due.
//!
//! It takes its time, and the endpoint may be switched on again meanwhile. What was sent since then is none of those that waited.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::delivery::{DeliveryOrder, DeliveryStatus};
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;

use super::attempt::StoredAttempt;
use super::{Deliveries, ENTITY, SORT_PREFIX, partition};
use crate::db::{Ask, StoreError, failed, from_item, n, s, to_attribute, write};

/// Pages of the log that are looked through.
const MAX_PAGES: usize = 20;
/// Updates at once.
const CONCURRENT_UPDATES: usize = 16;

/// What a delivery waits for.
#[derive(Deserialize)]
struct Waiting {
    id: DeliveryId,
    chain: u32,
    next_attempt: u32,
    next_attempt_at: Option<Timestamp>,
    attempts: Vec<StoredAttempt>,
}

impl Waiting {
    /// Whether it has waited for that since then, or longer: its latest attempt, or else its chain, began before.
    fn has_waited_since(&self, then: Timestamp) -> bool {
        // The first attempt of a chain is due when the chain begins.
        let is_first = self.next_attempt == 1;
        let since = if is_first { self.next_attempt_at } else { self.attempts.last().map(StoredAttempt::at) };
        since.is_none_or(|since| since <= then)
    }
}

impl Deliveries {
    /// Ends the deliveries that wait for an endpoint, for this reason: those that did when it was switched off, at `now`. One that is being
    /// attempted ends with its attempt: whoever makes it looks whether the endpoint is still on.
    pub async fn end_waiting(&self, endpoint: &EndpointId, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut start = None;
        for _ in 0..MAX_PAGES {
            let query = self.db.client().query().table_name(&self.table);
            let page = query
                .key_condition_expression("pk = :pk AND begins_with(sk, :sk)")
                .filter_expression("#status = :pending")
                .projection_expression("id, chain, next_attempt, next_attempt_at, attempts")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":pk", s(partition(endpoint)))
                .expression_attribute_values(":sk", s(SORT_PREFIX))
                .expression_attribute_values(":pending", s(DeliveryStatus::Pending.as_str()))
                .scan_index_forward(false)
                .set_exclusive_start_key(start)
                .ask()
                .await
                .map_err(|error| failed("Query", error))?;
            let found = page.items.unwrap_or_default().into_iter().map(|item| from_item(ENTITY, item));
            let mut waiting: Vec<Waiting> = found.collect::<Result<_, _>>()?;
            waiting.retain(|delivery| delivery.has_waited_since(now));
            let ending = waiting.iter().map(|Waiting { id, chain, next_attempt, .. }| {
                self.end((endpoint, id), (*chain, *next_attempt), reason, now)
            });
            let ending: Vec<_> = ending.collect();
            stream::iter(ending).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Ends a delivery that waits for an attempt, for this reason.
    pub async fn end_before(&self, next: &DeliveryOrder, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        self.end((&next.endpoint_id, &next.delivery_id), (next.chain, next.attempt), reason, now).await
    }

    async fn end(
        &self,
        (endpoint, id): (&EndpointId, &DeliveryId),
        (chain, next_attempt): (u32, u32),
        reason: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let line = StoredAttempt::unsent(now, reason);
        let written = write("UpdateItem", || {
            self.update(endpoint, id)
                .update_expression(
                    "SET attempts = list_append(attempts, :line), #status = :failed, failed_at = :now \
                     REMOVE next_attempt_at, hop, hop_owner, lease_owner, lease_until",
                )
                .condition_expression(
                    "#status = :pending AND chain = :chain AND next_attempt = :attempt \
                     AND (attribute_not_exists(lease_until) OR lease_until <= :now)",
                )
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":line", AttributeValue::L(vec![to_attribute(&line)]))
                .expression_attribute_values(":failed", s(DeliveryStatus::Failed.as_str()))
                .expression_attribute_values(":pending", s(DeliveryStatus::Pending.as_str()))
                .expression_attribute_values(":chain", n(chain))
                .expression_attribute_values(":attempt", n(next_attempt))
                .expression_attribute_values(":now", n(now.ms()))
                .ask()
        });
        // Refused: it has ended, its attempt is under way, or it waits for another by now.
        written.await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_or_was_attempted_since_did_not_wait_then() {
        let cases: [(u32, i64, &[i64], bool); 6] = [
            (1, 10, &[], true),
            (1, 11, &[], false),
            // Sent again by hand: what was attempted before that is of an older chain.
            (1, 10, &[1, 2], true),
            (1, 11, &[1, 2], false),
            // Attempted, and due later.
            (3, 99, &[1, 10], true),
            (3, 99, &[1, 11], false),
        ];
        for (next_attempt, due_at, attempts, has_waited) in cases {
            let waiting = Waiting {
                id: DeliveryId::parse("dlv_1").unwrap(),
                chain: 2,
                next_attempt,
                next_attempt_at: Some(Timestamp::from_ms(due_at)),
                attempts: attempts.iter().map(|at| StoredAttempt::unsent(Timestamp::from_ms(*at), "refused")).collect(),
            };
            let judged = waiting.has_waited_since(Timestamp::from_ms(10));
            assert_eq!(judged, has_waited, "{next_attempt} due at {due_at} after {attempts:?}");
        }
    }
}
