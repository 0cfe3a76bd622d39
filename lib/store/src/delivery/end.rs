//! Ends pending deliveries of an endpoint that takes no more. Deliveries that are left over, because there are too many
//! or because a function died, end when their next attempt is due.
//!
//! The endpoint may be enabled again meanwhile: a delivery whose chain or latest attempt began after the endpoint was
//! disabled stays pending. An attempt that is under way is still recorded, as the delivery's last.

use domain::delivery::{DeliveryOrder, DeliveryStatus, HourCounts};
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Deliveries;
use super::record::{StoredAttempt, id_of, partition};
use crate::db::{ItemWrite, StoreError, n, query_page, s, to_attribute};

/// Pages of the index that one call reads.
const MAX_PAGES: usize = 20;
/// Deliveries of a page.
const PAGE_ITEMS: i32 = 500;
/// Concurrent updates.
const CONCURRENT_UPDATES: usize = 16;

impl Deliveries {
    /// Ends the deliveries that waited for an endpoint when the endpoint was switched off, at `now`.
    pub async fn end_pending(&self, endpoint: &EndpointId, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let query = self.table.query("pending_of = :pk", [(":pk", s(partition(endpoint)))]).index_name("pending");
        let query = query.scan_index_forward(false).limit(PAGE_ITEMS);
        let (mut start, mut ended) = (None, HourCounts::NOTHING);
        for _ in 0..MAX_PAGES {
            let page = query_page(query.clone().set_exclusive_start_key(start)).await?;
            let ids = page.items.iter().map(id_of).collect::<Result<Vec<DeliveryId>, _>>()?;
            let ending: Vec<_> = ids.iter().map(|id| self.end_waiting(endpoint, id, reason, now)).collect();
            let ends: Vec<bool> = stream::iter(ending).buffer_unordered(CONCURRENT_UPDATES).try_collect().await?;
            ended += ends.into_iter().filter(|has_ended| *has_ended).map(|_| HourCounts::NOT_SENT).sum();
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        self.count(endpoint, now, ended).await;
        Ok(())
    }

    /// Ends the delivery of an order, if the delivery still waits for this order. Returns true if it did. No clock has
    /// a say: the order is the delivery's only one, and is used up.
    pub async fn end(&self, order: &DeliveryOrder, reason: &str, now: Timestamp) -> Result<bool, StoreError> {
        let waits = [(":chain", n(order.chain)), (":attempt", n(order.attempt))];
        let end = self.ending(&order.endpoint_id, &order.delivery_id, reason, now);
        let end = end.when("chain = :chain AND next_attempt = :attempt", waits);
        Ok(end.update_now().await?.is_done())
    }

    /// Ends a delivery, if it is pending and has waited since `now`. Returns true if it was.
    async fn end_waiting(
        &self,
        endpoint: &EndpointId,
        id: &DeliveryId,
        reason: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let end = self.ending(endpoint, id, reason, now).when("waits_since <= :now", [(":now", n(now.ms()))]);
        // Refused: the delivery has ended, or began to wait later.
        Ok(end.update_now().await?.is_done())
    }

    /// A write that ends a pending delivery.
    fn ending(&self, endpoint: &EndpointId, id: &DeliveryId, reason: &str, now: Timestamp) -> ItemWrite<'_> {
        let line = to_attribute(&[StoredAttempt::unsent(now, reason)]);
        self.update(endpoint, id)
            .when("#status = :pending", [(":pending", s(DeliveryStatus::Pending.as_str()))])
            .set_to("attempts = list_append(attempts, :line)")
            .values([(":line", line)])
            .set("status", s(DeliveryStatus::Failed.as_str()))
            .set("failed_of", s(partition(endpoint)))
            .remove(["next_attempt_at", "pending_of"])
            .count("version")
    }
}
