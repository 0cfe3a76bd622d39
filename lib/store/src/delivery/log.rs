//! The delivery log: deliveries of one endpoint, or of all endpoints of a coach, newest first. The bodies are left out.
//!
//! Only an endpoint's partition shows what changes: statuses and attempts. GSI `by_coach` holds what never changes, so
//! that an attempt writes no index. The log of a coach reads the deliveries that the index names.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::delivery::{DeliveryFilter, DeliveryStatus, DeliveryView, FilteredDelivery};
use domain::id::{CoachId, DeliveryId, EndpointId, EventId};
use domain::subject::Subject;
use domain::time::Timestamp;
use serde::Deserialize;

use super::Deliveries;
use super::record::{ENTITY, StoredAttempt, endpoint_of, id_of, partition, sort_key};
use crate::db::{self, Item, StoreError, from_item, query_page, s, sk_of};
use crate::page::PAGE_BYTES;

/// Items that one query of a selective filter reads.
const FILTERED_QUERY_ITEMS: usize = 200;
/// Most queries for a page. The next page continues where they ended.
const MAX_PAGE_QUERIES: usize = 10;
/// Deliveries of an index that are read at once: as many as one BatchGetItem reads.
const READ_ITEMS: usize = 100;

/// The deliveries that a log has.
#[derive(Debug, Clone, Copy)]
pub enum DeliveryLog<'a> {
    /// Of one endpoint.
    Endpoint(&'a EndpointId),
    /// Of all endpoints of a coach, deleted ones included.
    Coach(&'a CoachId),
}

/// The part of a log that a coach asks for.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryLogRequest<'a> {
    pub log: DeliveryLog<'a>,
    pub filter: &'a DeliveryFilter,
    /// The page begins after this delivery.
    pub after: Option<&'a DeliveryId>,
    /// The most deliveries of the page.
    pub limit: usize,
}

/// A page of the delivery log.
#[derive(Debug, Default)]
pub struct DeliveryLogPage {
    pub deliveries: Vec<DeliveryView>,
    /// The cursor of the next page; `None` at the end.
    pub next_cursor: Option<DeliveryId>,
}

/// The members of a delivery that the log shows.
#[derive(Deserialize)]
pub(super) struct LoggedDelivery {
    id: DeliveryId,
    event_id: EventId,
    event_type: String,
    #[serde(flatten)]
    subject: Subject,
    made_at: Timestamp,
    #[serde(default)]
    test: bool,
    status: DeliveryStatus,
    attempts: Vec<StoredAttempt>,
    next_attempt_at: Option<Timestamp>,
    expires_at: i64,
}

/// A delivery in GSI `by_coach`.
#[derive(Deserialize)]
struct IndexedDelivery {
    pk: String,
    event_id: EventId,
    event_type: String,
}

/// A page that is being read.
struct GrowingPage {
    deliveries: Vec<DeliveryView>,
    bytes: usize,
    limit: usize,
}

impl GrowingPage {
    /// Adds a delivery. Returns false if the page has no room for it.
    fn add(&mut self, view: DeliveryView) -> bool {
        self.bytes += serde_json::to_vec(&view).map_or(0, |json| json.len());
        let is_full = self.deliveries.len() == self.limit || self.bytes > PAGE_BYTES;
        if is_full && !self.deliveries.is_empty() {
            return false;
        }
        self.deliveries.push(view);
        true
    }

    /// The page, before a delivery that it has no room for.
    fn full(self) -> DeliveryLogPage {
        let next_cursor = self.deliveries.last().map(|last| last.id.clone());
        DeliveryLogPage { deliveries: self.deliveries, next_cursor }
    }
}

impl Deliveries {
    /// Reads a page of a delivery log, newest first. A page before the end may be shorter than `limit`.
    pub async fn page(&self, request: &DeliveryLogRequest<'_>, now: Timestamp) -> Result<DeliveryLogPage, StoreError> {
        let DeliveryLogRequest { log, filter, limit, .. } = *request;
        let Some(query) = self.log_query(request) else { return Ok(DeliveryLogPage::default()) };
        let mut page = GrowingPage { deliveries: Vec::new(), bytes: 0, limit };
        let mut start = None;
        for _ in 0..MAX_PAGE_QUERIES {
            let found = query_page(query.clone().set_exclusive_start_key(start)).await?;
            let mut left = match log {
                DeliveryLog::Endpoint(_) => found.items,
                DeliveryLog::Coach(_) => included(found.items, filter)?,
            };
            while !left.is_empty() {
                let later = left.split_off(left.len().min(READ_ITEMS));
                let items = match log {
                    DeliveryLog::Endpoint(_) => left,
                    DeliveryLog::Coach(_) => self.read_newest_first(left).await?,
                };
                for item in items {
                    if let Some(view) = self.shown(item, filter, now)?
                        && !page.add(view)
                    {
                        return Ok(page.full());
                    }
                }
                left = later;
            }
            start = found.next;
            if start.is_none() {
                break;
            }
        }
        let next_cursor = start.as_ref().map(id_of).transpose()?;
        Ok(DeliveryLogPage { deliveries: page.deliveries, next_cursor })
    }

    /// The query of a log, newest first. `None`: the page is empty.
    fn log_query(&self, request: &DeliveryLogRequest<'_>) -> Option<QueryFluentBuilder> {
        let ids = request.filter.ids(request.after)?;
        let [from, to] = [ids.start(), ids.end()].map(|id| s(sort_key(id)));
        let query = match request.log {
            DeliveryLog::Endpoint(endpoint) => {
                let condition = "pk = :pk AND sk BETWEEN :from AND :to";
                let query =
                    self.table.query(condition, [(":pk", s(partition(endpoint))), (":from", from), (":to", to)]);
                query.expression_attribute_names("#status", "status").projection_expression(
                    "pk, sk, id, event_id, event_type, client_id, made_at, test, #status, attempts, next_attempt_at, \
                     expires_at",
                )
            }
            DeliveryLog::Coach(coach) => {
                let condition = "coach_id = :coach AND sk BETWEEN :from AND :to";
                let values = [(":coach", s(coach.as_str())), (":from", from), (":to", to)];
                self.table.query(condition, values).index_name("by_coach")
            }
        };
        // One more than the page shows whether others follow.
        let items = request.limit + 1;
        let items = if request.filter.is_selective() { FILTERED_QUERY_ITEMS.max(items) } else { items };
        Some(query.scan_index_forward(false).limit(i32::try_from(items).unwrap_or(i32::MAX)))
    }

    /// Reads the deliveries that an index names. The index lags: expired ones are missing.
    async fn read_newest_first(&self, keys: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        let mut items = self.table.read(keys).await?;
        items.sort_unstable_by(|a, b| sk_of(b).cmp(sk_of(a)));
        Ok(items)
    }

    /// The delivery as the log shows it; `None` if it has expired or the filter passes over it.
    fn shown(&self, item: Item, filter: &DeliveryFilter, now: Timestamp) -> Result<Option<DeliveryView>, StoreError> {
        let pk = db::text(&item, "pk").to_owned();
        let line: LoggedDelivery = from_item(ENTITY, item)?;
        if line.expires_at <= now.unix_s() || !filter.includes_status(line.status) {
            return Ok(None);
        }
        let view = self.view(endpoint_of(&pk)?, line)?;
        let DeliveryView { endpoint_id, event_id, event_type, .. } = &view;
        let compared = FilteredDelivery { endpoint_id, event_type, event_id };
        Ok(filter.includes(compared).then_some(view))
    }

    pub(super) fn view(&self, endpoint_id: EndpointId, line: LoggedDelivery) -> Result<DeliveryView, StoreError> {
        let attempts = line.attempts.into_iter().map(|attempt| attempt.open(&self.vault, &endpoint_id, &line.id));
        let attempts = attempts.collect::<Result<_, _>>()?;
        Ok(DeliveryView {
            created_at: line.made_at,
            id: line.id,
            endpoint_id,
            event_id: line.event_id,
            event_type: line.event_type,
            client_id: line.subject.client_id,
            test: line.test,
            status: line.status,
            attempts,
            next_attempt_at: line.next_attempt_at,
        })
    }
}

/// The keys of the deliveries in an index that a filter includes, whatever their status.
fn included(items: Vec<Item>, filter: &DeliveryFilter) -> Result<Vec<Item>, StoreError> {
    let mut keys = Vec::new();
    for item in items {
        let key = db::key(db::text(&item, "pk"), sk_of(&item));
        let IndexedDelivery { pk, event_id, event_type } = from_item(ENTITY, item)?;
        let endpoint_id = &endpoint_of(&pk)?;
        let compared = FilteredDelivery { endpoint_id, event_type: &event_type, event_id: &event_id };
        if filter.includes(compared) {
            keys.push(key);
        }
    }
    Ok(keys)
}
