//! The delivery log: an endpoint's deliveries, newest first. The bodies are left out.

use domain::delivery::{DeliveryStatus, DeliveryView};
use domain::id::{DeliveryId, EndpointId, EventId};
use domain::time::Timestamp;
use serde::Deserialize;

use super::attempt::StoredAttempt;
use super::{Deliveries, ENTITY, SORT_PREFIX, key, partition};
use crate::db::{Ask, Item, StoreError, failed, from_item, n, s};
use crate::page::PAGE_BYTES;

/// Items that one query of a filtered page looks at.
const FILTERED_QUERY_ITEMS: usize = 200;
/// Queries that a page makes at most; what it has not found by then, the next page goes on to look for.
const MAX_PAGE_QUERIES: usize = 10;

/// A part of the delivery log.
#[derive(Debug)]
pub struct Page {
    pub deliveries: Vec<DeliveryView>,
    /// Where the next part begins; `None` at the end.
    pub next_cursor: Option<DeliveryId>,
}

/// What the log shows of a record.
#[derive(Deserialize)]
struct Line {
    id: DeliveryId,
    webhook_id: EventId,
    event_type: String,
    status: DeliveryStatus,
    attempts: Vec<StoredAttempt>,
    #[serde(default)]
    next_attempt_at: Option<Timestamp>,
}

/// The bytes of a delivery as JSON.
fn size_of(view: &DeliveryView) -> usize {
    serde_json::to_vec(view).map_or(0, |json| json.len())
}

impl Deliveries {
    /// A part of an endpoint's delivery log, newest first, from after `cursor`. It may be shorter than `limit` before the end.
    pub async fn page(
        &self,
        endpoint: &EndpointId,
        status: Option<DeliveryStatus>,
        cursor: Option<&DeliveryId>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Page, StoreError> {
        let (mut deliveries, mut bytes): (Vec<DeliveryView>, usize) = (Vec::new(), 0);
        let mut start = cursor.map(|id| key(endpoint, id));
        for _ in 0..MAX_PAGE_QUERIES {
            let items = if status.is_some() { FILTERED_QUERY_ITEMS.max(limit + 1) } else { limit + 1 };
            let found = self.query(endpoint, status, start, items, now).await?;
            for item in found.0 {
                let view = self.view(endpoint, from_item(ENTITY, item)?)?;
                bytes += size_of(&view);
                if let (Some(last), true) = (deliveries.last(), bytes > PAGE_BYTES) {
                    return Ok(Page { next_cursor: Some(last.id.clone()), deliveries });
                }
                deliveries.push(view);
            }
            if deliveries.len() > limit {
                deliveries.truncate(limit);
                let next_cursor = deliveries.last().map(|delivery| delivery.id.clone());
                return Ok(Page { deliveries, next_cursor });
            }
            start = found.1;
            if start.is_none() {
                return Ok(Page { deliveries, next_cursor: None });
            }
        }
        Ok(Page { deliveries, next_cursor: start.as_ref().map(id_of).transpose()? })
    }

    fn view(&self, endpoint: &EndpointId, line: Line) -> Result<DeliveryView, StoreError> {
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

    async fn query(
        &self,
        endpoint: &EndpointId,
        status: Option<DeliveryStatus>,
        start: Option<Item>,
        items: usize,
        now: Timestamp,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let live = "expires_at > :now_s";
        let mut query = self
            .db
            .client()
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :pk AND begins_with(sk, :sk)")
            .projection_expression("id, webhook_id, event_type, #status, attempts, next_attempt_at")
            .filter_expression(if status.is_some() { format!("{live} AND #status = :status") } else { live.to_owned() })
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":pk", s(partition(endpoint)))
            .expression_attribute_values(":sk", s(SORT_PREFIX))
            .expression_attribute_values(":now_s", n(now.unix_s()))
            .set_exclusive_start_key(start)
            .scan_index_forward(false)
            .limit(i32::try_from(items).unwrap_or(i32::MAX));
        if let Some(status) = status {
            query = query.expression_attribute_values(":status", s(status.as_str()));
        }
        let found = query.ask().await.map_err(|error| failed("Query", error))?;
        Ok((found.items.unwrap_or_default(), found.last_evaluated_key))
    }
}

pub(super) fn id_of(key: &Item) -> Result<DeliveryId, StoreError> {
    let sort = key.get("sk").and_then(|sk| sk.as_s().ok()).and_then(|sk| sk.strip_prefix(SORT_PREFIX));
    sort.and_then(|id| DeliveryId::parse(id).ok())
        .ok_or_else(|| StoreError::corrupt(ENTITY, "its key has another form"))
}
