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
use super::record::{ENTITY, partition};
use crate::db::{self, StoreError, from_item, query_page, s};

/// Items of the log per page.
const PAGE_ITEMS: i32 = 100;

/// The members of a delivery that its next order needs.
#[derive(Deserialize)]
struct ResumableDelivery {
    id: DeliveryId,
    chain: u32,
    next_attempt: u32,
    next_attempt_at: Option<Timestamp>,
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
        let pending = format!("{}#", DeliveryStatus::Pending.as_str());
        let from = after.as_ref().map_or_else(|| pending.clone(), |id| format!("{pending}{id} "));
        let values = [(":pk", s(partition(endpoint_id))), (":from", s(from)), (":to", s(format!("{pending}~")))];
        let query = self.table.query("pk = :pk AND undelivered BETWEEN :from AND :to", values);
        let query = query.index_name("undelivered").limit(PAGE_ITEMS);
        let page = query_page(query).await?;
        let mut orders = Vec::new();
        for item in self.table.read(page.items.iter().map(db::key_of).collect()).await? {
            let waiting: ResumableDelivery = from_item(ENTITY, item)?;
            orders.push(DeliveryOrder {
                coach_id: coach_id.clone(),
                endpoint_id: endpoint_id.clone(),
                delivery_id: waiting.id,
                chain: waiting.chain,
                attempt: waiting.next_attempt,
                hop: 0,
                due_at: waiting.next_attempt_at.unwrap_or(now),
                probes: false,
            });
        }
        let last = page.next.as_ref().map(super::record::id_of).transpose()?;
        Ok((orders, last.map(|id| Resumption { after: Some(id), ..asked.clone() })))
    }
}
