//! The delivery log: an endpoint's deliveries, newest first. The bodies are left out.

use domain::delivery::{DeliveryStatus, DeliveryView};
use domain::id::{DeliveryId, EndpointId, EventId};
use domain::time::Timestamp;
use serde::Deserialize;

use super::attempt::StoredAttempt;
use super::{Deliveries, ENTITY, SORT_PREFIX, key};
use crate::db::{Item, StoreError, from_item, n, query_page, s, sk_of};
use crate::page::PAGE_BYTES;

/// Items that one query of a filtered page reads.
const FILTERED_QUERY_ITEMS: usize = 200;
/// Most queries for a page. The next page continues where they ended.
const MAX_PAGE_QUERIES: usize = 10;

/// A page of the delivery log.
#[derive(Debug)]
pub struct DeliveryLogPage {
    pub deliveries: Vec<DeliveryView>,
    /// The cursor of the next page; `None` at the end.
    pub next_cursor: Option<DeliveryId>,
}

/// The members of a delivery that the log shows.
#[derive(Deserialize)]
struct LoggedDelivery {
    id: DeliveryId,
    webhook_id: EventId,
    event_type: String,
    status: DeliveryStatus,
    attempts: Vec<StoredAttempt>,
    next_attempt_at: Option<Timestamp>,
}

/// The bytes of a delivery as JSON.
fn size_of(view: &DeliveryView) -> usize {
    serde_json::to_vec(view).map_or(0, |json| json.len())
}

impl Deliveries {
    /// Reads a page of an endpoint's delivery log after `cursor`, newest first. A page before the end may be shorter
    /// than `limit`.
    pub async fn page(
        &self,
        endpoint: &EndpointId,
        status: Option<DeliveryStatus>,
        cursor: Option<&DeliveryId>,
        limit: usize,
        now: Timestamp,
    ) -> Result<DeliveryLogPage, StoreError> {
        let (mut deliveries, mut bytes): (Vec<DeliveryView>, usize) = (Vec::new(), 0);
        let items = if status.is_some() { FILTERED_QUERY_ITEMS.max(limit + 1) } else { limit + 1 };
        let mut query = self
            .query(endpoint)
            .projection_expression("id, webhook_id, event_type, #status, attempts, next_attempt_at")
            .filter_expression("expires_at > :now_s")
            .expression_attribute_values(":now_s", n(now.unix_s()))
            .scan_index_forward(false)
            .limit(i32::try_from(items).unwrap_or(i32::MAX));
        if let Some(status) = status {
            query = query
                .filter_expression("expires_at > :now_s AND #status = :status")
                .expression_attribute_values(":status", s(status.as_str()));
        }
        let mut start = cursor.map(|id| key(endpoint, id));
        for _ in 0..MAX_PAGE_QUERIES {
            let found = query_page(query.clone().set_exclusive_start_key(start)).await?;
            for item in found.items {
                let view = self.view(endpoint, from_item(ENTITY, item)?)?;
                bytes += size_of(&view);
                if let (Some(last), true) = (deliveries.last(), bytes > PAGE_BYTES) {
                    return Ok(DeliveryLogPage { next_cursor: Some(last.id.clone()), deliveries });
                }
                deliveries.push(view);
            }
            if deliveries.len() > limit {
                deliveries.truncate(limit);
                let next_cursor = deliveries.last().map(|delivery| delivery.id.clone());
                return Ok(DeliveryLogPage { deliveries, next_cursor });
            }
            start = found.next;
            if start.is_none() {
                return Ok(DeliveryLogPage { deliveries, next_cursor: None });
            }
        }
        Ok(DeliveryLogPage { deliveries, next_cursor: start.as_ref().map(id_of).transpose()? })
    }

    fn view(&self, endpoint: &EndpointId, line: LoggedDelivery) -> Result<DeliveryView, StoreError> {
        let attempts = line.attempts.into_iter().map(|attempt| self.open_attempt(endpoint, &line.id, attempt));
        Ok(DeliveryView {
            attempts: attempts.collect::<Result<_, _>>()?,
            id: line.id,
            webhook_id: line.webhook_id,
            event_type: line.event_type,
            status: line.status,
            next_attempt_at: line.next_attempt_at,
        })
    }
}

pub(super) fn id_of(key: &Item) -> Result<DeliveryId, StoreError> {
    let id = sk_of(key).strip_prefix(SORT_PREFIX).and_then(|id| DeliveryId::parse(id).ok());
    id.ok_or_else(|| StoreError::corrupt(ENTITY, "its key has another form"))
}
