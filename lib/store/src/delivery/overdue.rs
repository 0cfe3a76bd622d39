//! Pending deliveries that are long due, found in the index `pending` of all endpoints. The index has what waits and
//! nothing else, so a scan costs half a read unit for some 25 deliveries that wait.

use domain::delivery::{DeliveryOrder, DeliveryStatus, is_overdue};
use domain::id::{CoachId, DeliveryId};
use domain::time::Timestamp;
use serde::Deserialize;

use super::Deliveries;
use super::record::{DeliveryItem, ENTITY, endpoint_of, id_of, key};
use crate::db::{Item, MeteredRequest, StoreError, failed, from_item, n, s};
use crate::endpoint_ref::EndpointRef;

/// A delivery that is long due.
#[derive(Debug, Clone)]
pub struct OverdueDelivery {
    pub endpoint: EndpointRef,
    pub id: DeliveryId,
}

/// A page of the index.
pub struct OverduePage {
    pub overdue: Vec<OverdueDelivery>,
    /// The start of the next page. `None`: there is none.
    pub next: Option<OverdueStart>,
}

/// The end of a page.
pub struct OverdueStart(Item);

/// An entry of the index `pending`.
#[derive(Deserialize)]
struct PendingEntry {
    pk: String,
    coach_id: CoachId,
    next_attempt_at: Option<Timestamp>,
    reordered_at: Option<i64>,
}

impl Deliveries {
    /// Reads a page of the index, a megabyte of entries, and returns the deliveries that are long due.
    pub async fn overdue_page(&self, start: Option<OverdueStart>, now: Timestamp) -> Result<OverduePage, StoreError> {
        let scan = self.table.db.client().scan().table_name(&self.table.name).index_name("pending");
        let scan = scan.set_exclusive_start_key(start.map(|start| start.0));
        let page = scan.send_metered().await.map_err(|error| failed("Scan", error))?;
        let mut overdue = Vec::new();
        for item in page.items.unwrap_or_default() {
            let id = id_of(&item)?;
            let PendingEntry { pk, coach_id, next_attempt_at, reordered_at } = from_item(ENTITY, item)?;
            if next_attempt_at.is_some_and(|due_at| is_overdue(due_at, reordered_at.map(Timestamp::from_ms), now)) {
                let endpoint = EndpointRef { coach: coach_id, id: endpoint_of(&pk)? };
                overdue.push(OverdueDelivery { endpoint, id });
            }
        }
        Ok(OverduePage { overdue, next: page.last_evaluated_key.map(OverdueStart) })
    }

    /// Builds the orders of the deliveries that are long due by their records: the index may lag.
    pub async fn next_orders(
        &self,
        overdue: &[OverdueDelivery],
        now: Timestamp,
    ) -> Result<Vec<DeliveryOrder>, StoreError> {
        let keys = overdue.iter().map(|delivery| key(&delivery.endpoint.id, &delivery.id)).collect();
        let records = self.table.read(keys).await?.into_iter().map(|item| from_item::<DeliveryItem>(ENTITY, item));
        let records: Vec<DeliveryItem> = records.collect::<Result<_, _>>()?;
        records.iter().filter(|record| record.is_overdue(now)).map(|record| record.next_order(now)).collect()
    }

    /// Records that the order of a delivery was sent again, if the delivery still waits for this order.
    pub async fn mark_reordered(&self, order: &DeliveryOrder, now: Timestamp) -> Result<(), StoreError> {
        let waits = [
            (":pending", s(DeliveryStatus::Pending.as_str())),
            (":chain", n(order.chain)),
            (":attempt", n(order.attempt)),
        ];
        let note = self.update(&order.endpoint_id, &order.delivery_id).set("reordered_at", n(now.ms()));
        let note = note.when("#status = :pending AND chain = :chain AND next_attempt = :attempt", waits);
        note.update_now().await.map(drop)
    }
}

impl DeliveryItem {
    /// The order that the delivery waits for.
    pub(super) fn next_order(&self, now: Timestamp) -> Result<DeliveryOrder, StoreError> {
        let due_at = self.next_attempt_at.unwrap_or(now);
        let first = DeliveryOrder::first(&self.coach_id, &endpoint_of(&self.pk)?, &self.id, due_at);
        Ok(DeliveryOrder { chain: self.chain, attempt: self.next_attempt, ..first })
    }

    fn is_overdue(&self, now: Timestamp) -> bool {
        let reordered_at = self.reordered_at.map(Timestamp::from_ms);
        self.status == DeliveryStatus::Pending
            && self.expires_at > now.unix_s()
            && self.next_attempt_at.is_some_and(|due_at| is_overdue(due_at, reordered_at, now))
    }
}
