//! New orders for pending deliveries whose messages may be lost: after a restore, or after dead letters that nobody
//! moved back in time.
//!
//! A message that is not lost does no harm: an attempt is claimed once, and of two orders for one attempt only the
//! order that is a hop ahead goes on.

use domain::delivery::{DeliveryOrder, DeliveryStatus, Resumption};
use domain::id::DeliveryId;
use domain::time::Timestamp;
use serde::Deserialize;

use super::Deliveries;
use super::record::{ENTITY, key};
use crate::db::{StoreError, from_item, n, query_page, s};

/// Items of the log per page.
const PAGE_ITEMS: i32 = 500;

/// The members of a delivery that its next order needs.
#[derive(Deserialize)]
struct ResumableDelivery {
    id: DeliveryId,
    chain: u32,
    next_attempt: u32,
    next_attempt_at: Option<Timestamp>,
    hop: Option<u32>,
}

impl Deliveries {
    /// Builds orders for a page of an endpoint's pending deliveries, and the request for the next page, if there is
    /// one.
    pub async fn waiting(
        &self,
        asked: &Resumption,
        now: Timestamp,
    ) -> Result<(Vec<DeliveryOrder>, Option<Resumption>), StoreError> {
        let Resumption { coach_id, resume: endpoint_id, after } = asked;
        let query = self
            .query(endpoint_id)
            .consistent_read(true)
            .filter_expression("#status = :pending AND expires_at > :now_s")
            .expression_attribute_values(":pending", s(DeliveryStatus::Pending.as_str()))
            .expression_attribute_values(":now_s", n(now.unix_s()))
            .set_exclusive_start_key(after.as_ref().map(|id| key(endpoint_id, id)))
            .limit(PAGE_ITEMS);
        let page = query_page(query).await?;
        let mut orders = Vec::new();
        for item in page.items {
            let waiting: ResumableDelivery = from_item(ENTITY, item)?;
            orders.push(DeliveryOrder {
                coach_id: coach_id.clone(),
                endpoint_id: endpoint_id.clone(),
                delivery_id: waiting.id,
                chain: waiting.chain,
                attempt: waiting.next_attempt,
                // The recorded hop belongs to a message that may be lost. A new order of that hop would count as its
                // copy.
                hop: waiting.hop.map_or(0, |hop| hop + 1),
                due_at: waiting.next_attempt_at.unwrap_or(now),
                placed: false,
            });
        }
        let last = page.next.as_ref().map(super::log::id_of).transpose()?;
        Ok((orders, last.map(|id| Resumption { after: Some(id), ..asked.clone() })))
    }
}
