//! Ends pending deliveries of an endpoint that takes no more. Deliveries that are left over, because there are too many
//! or because a function died, end when their next attempt is due.
//!
//! The endpoint may be enabled again meanwhile: a delivery whose chain or latest attempt began after the endpoint was
//! disabled stays pending. An attempt that is under way is still recorded, as the delivery's last.

use domain::delivery::{DeliveryStatus, HourCounts};
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Deliveries;
use super::record::{StoredAttempt, id_of, partition, undelivered_key};
use crate::db::{StoreError, n, query_page, s, to_attribute};

/// Pages of the index that one call reads.
const MAX_PAGES: usize = 20;
/// Deliveries of a page.
const PAGE_ITEMS: i32 = 500;
/// Concurrent updates.
const CONCURRENT_UPDATES: usize = 16;

impl Deliveries {
    /// Ends the deliveries that waited for an endpoint when the endpoint was switched off, at `now`.
    pub async fn end_pending(&self, endpoint: &EndpointId, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let values =
            [(":pk", s(partition(endpoint))), (":pending", s(format!("{}#", DeliveryStatus::Pending.as_str())))];
        let query = self.table.query("pk = :pk AND begins_with(undelivered, :pending)", values);
        let query = query.index_name("undelivered").scan_index_forward(false).limit(PAGE_ITEMS);
        let (mut start, mut ended) = (None, HourCounts::NOTHING);
        for _ in 0..MAX_PAGES {
            let page = query_page(query.clone().set_exclusive_start_key(start)).await?;
            let ids = page.items.iter().map(id_of).collect::<Result<Vec<DeliveryId>, _>>()?;
            let ending: Vec<_> = ids.iter().map(|id| self.end(endpoint, id, reason, now)).collect();
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

    /// Ends a delivery, if it is pending and has waited since `now`. Returns true if it was.
    pub async fn end(
        &self,
        endpoint: &EndpointId,
        id: &DeliveryId,
        reason: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let line = to_attribute(&[StoredAttempt::unsent(now, reason)]);
        let pending = [(":pending", s(DeliveryStatus::Pending.as_str())), (":now", n(now.ms()))];
        let update = self
            .update(endpoint, id)
            .when("#status = :pending AND waits_since <= :now", pending)
            .set_to("attempts = list_append(attempts, :line)")
            .values([(":line", line)])
            .set("status", s(DeliveryStatus::Failed.as_str()))
            .set_or_remove("undelivered", undelivered_key(DeliveryStatus::Failed, id).map(s))
            .remove(["next_attempt_at"])
            .count("version");
        // Refused: the delivery has ended, or began to wait later.
        Ok(update.update_now().await?.is_done())
    }
}
