//! Ends pending deliveries of an endpoint that takes no more. Deliveries can be left over because there are too many,
//! or because a function died. They end when their next attempt is due.
//!
//! The endpoint may be enabled again meanwhile. A delivery whose chain or latest attempt began after the endpoint was
//! disabled stays pending.

use domain::delivery::{DeliveryOrder, DeliveryStatus};
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;

use super::record::{ENTITY, StoredAttempt, append};
use super::{Deliveries, NextAttempt};
use crate::db::{StoreError, from_item, n, query_page, s};

/// Pages of the log that one call reads.
const MAX_PAGES: usize = 20;
/// Concurrent updates.
const CONCURRENT_UPDATES: usize = 16;

/// A delivery that waits for its next attempt.
#[derive(Deserialize)]
struct PendingDelivery {
    id: DeliveryId,
    chain: u32,
    next_attempt: u32,
    next_attempt_at: Option<Timestamp>,
    attempts: Vec<StoredAttempt>,
}

impl PendingDelivery {
    /// Returns true if the delivery has waited since `then`: its latest attempt, or else its retry chain, began before.
    fn has_waited_since(&self, then: Timestamp) -> bool {
        // The first attempt of a chain is due when the chain begins.
        let is_first = self.next_attempt == 1;
        let since = if is_first { self.next_attempt_at } else { self.attempts.last().map(StoredAttempt::at) };
        since.is_none_or(|since| since <= then)
    }
}

impl Deliveries {
    /// Ends the deliveries that waited for an endpoint when the endpoint was switched off, at `now`. A delivery with an
    /// attempt under way ends after that attempt, because `deliver` then reads the endpoint again.
    pub async fn end_pending(&self, endpoint: &EndpointId, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let query = self
            .query(endpoint)
            .filter_expression("#status = :pending")
            .expression_attribute_values(":pending", s(DeliveryStatus::Pending.as_str()))
            .projection_expression("id, chain, next_attempt, next_attempt_at, attempts")
            .scan_index_forward(false);
        let mut start = None;
        for _ in 0..MAX_PAGES {
            let page = query_page(query.clone().set_exclusive_start_key(start)).await?;
            let found = page.items.into_iter().map(|item| from_item(ENTITY, item));
            let mut waiting: Vec<PendingDelivery> = found.collect::<Result<_, _>>()?;
            waiting.retain(|delivery| delivery.has_waited_since(now));
            let ending = waiting.iter().map(|PendingDelivery { id: delivery, chain, next_attempt, .. }| {
                self.end(NextAttempt { endpoint, delivery, chain: *chain, attempt: *next_attempt }, reason, now)
            });
            let ending: Vec<_> = ending.collect();
            stream::iter(ending).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Ends a delivery that waits for the order's attempt.
    pub async fn end_before(&self, next: &DeliveryOrder, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        self.end(next.into(), reason, now).await
    }

    async fn end(&self, next: NextAttempt<'_>, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let update = append(self.update_before(&next), &[StoredAttempt::unsent(now, reason)])
            .set("status", s(DeliveryStatus::Failed.as_str()))
            .set("failed_at", n(now.ms()))
            .remove(["next_attempt_at", "hop", "hop_owner", "lease_owner", "lease_until"])
            .when("attribute_not_exists(lease_until) OR lease_until <= :failed_at", []);
        // Refused: the delivery has ended, its attempt is under way, or it waits for another by now.
        update.update_now().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_that_began_or_was_attempted_since_has_not_waited() {
        let cases: [(u32, i64, &[i64], bool); 6] = [
            (1, 10, &[], true),
            (1, 11, &[], false),
            // Sent again by hand: earlier attempts belong to an older chain.
            (1, 10, &[1, 2], true),
            (1, 11, &[1, 2], false),
            // Attempted, and due later.
            (3, 99, &[1, 10], true),
            (3, 99, &[1, 11], false),
        ];
        for (next_attempt, due_at, attempts, has_waited) in cases {
            let waiting = PendingDelivery {
                id: DeliveryId::parse("dlv_1").unwrap(),
                chain: 2,
                next_attempt,
                next_attempt_at: Some(Timestamp::from_ms(due_at)),
                attempts: attempts.iter().map(|at| StoredAttempt::unsent(Timestamp::from_ms(*at), "refused")).collect(),
            };
            let waited = waiting.has_waited_since(Timestamp::from_ms(10));
            assert_eq!(waited, has_waited, "{next_attempt} due at {due_at} after {attempts:?}");
        }
    }
}
