//! The delivery log of some endpoints, newest first: a merge of their deliveries. The bodies are left out.
//!
//! An endpoint's partition has all its deliveries. The indexes `pending` and `failed` have the few of that status, with
//! all that a filter compares. A page reads a limited number of deliveries, and the next page goes on from there. So a
//! filter that shows nothing costs as little in a long log as in a short one.

use std::ops::RangeInclusive;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::delivery::{DeliveryFilter, DeliveryStatus, DeliveryView, MAX_READ_DELIVERIES};
use domain::id::{CoachId, DeliveryId, EndpointId, EventId};
use domain::subject::Subject;
use domain::time::Timestamp;
use serde::Deserialize;

use super::Deliveries;
use super::merge::{Merged, MergedQueries};
use super::record::{ENTITY, StoredAttempt, endpoint_of, id_of, index_of, sort_key};
use crate::db::{self, Item, StoreError, from_item, sk_of, text};
use crate::page::PAGE_BYTES;

/// Deliveries of the index that are read whole at once: as many as one BatchGetItem reads.
const WHOLE_ITEMS: usize = 100;

/// The part of a log that a coach asks for.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryLogRequest<'a> {
    pub coach: &'a CoachId,
    /// The coach's endpoints whose deliveries the log has.
    pub endpoints: &'a [EndpointId],
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

/// Deliveries that a page may show.
struct Candidates {
    items: Vec<Item>,
    /// The last delivery that was compared with the filter.
    last: Option<DeliveryId>,
    /// Why there are no more.
    end: Option<LogEnd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LogEnd {
    Complete,
    Interrupted,
}

impl Deliveries {
    /// Reads a page of a delivery log, newest first. A page before the end may be shorter than `limit`.
    pub async fn page(&self, request: &DeliveryLogRequest<'_>, now: Timestamp) -> Result<DeliveryLogPage, StoreError> {
        let DeliveryLogRequest { coach, endpoints, filter, after, limit } = *request;
        let times = match &filter.event_id {
            Some(event) => Some(self.event_times(coach, event).await?),
            None => None,
        };
        let Some(ids) = filter.ids(times.as_ref(), after) else { return Ok(DeliveryLogPage::default()) };
        let queries = endpoints.iter().map(|endpoint| self.log_query(endpoint, filter.status, &ids)).collect();
        // One more than the page shows whether others follow.
        let mut log = MergedQueries::new(queries, limit + 1, MAX_READ_DELIVERIES);
        let mut page = GrowingPage { deliveries: Vec::new(), bytes: 0, limit };
        let mut last = None;
        while page.deliveries.len() < limit {
            let most = WHOLE_ITEMS.min(limit - page.deliveries.len());
            let found = candidates(&mut log, filter, most).await?;
            for item in self.whole(found.items, filter.status).await? {
                if let Some(view) = self.shown(item, filter, now)?
                    && !page.add(view)
                {
                    return Ok(page.full());
                }
            }
            last = found.last.or(last);
            if let Some(end) = found.end {
                let next_cursor = last.filter(|_| end == LogEnd::Interrupted);
                return Ok(DeliveryLogPage { deliveries: page.deliveries, next_cursor });
            }
        }
        let is_complete = matches!(log.next().await?, Merged::End);
        Ok(DeliveryLogPage { deliveries: page.deliveries, next_cursor: last.filter(|_| !is_complete) })
    }

    /// The query of an endpoint's deliveries that may have a status, newest first.
    fn log_query(
        &self,
        endpoint: &EndpointId,
        status: Option<DeliveryStatus>,
        ids: &RangeInclusive<DeliveryId>,
    ) -> QueryFluentBuilder {
        let query = self.deliveries_of(endpoint, status, [ids.start(), ids.end()].map(sort_key));
        let query = if status.and_then(index_of).is_some() {
            query
        } else {
            query.expression_attribute_names("#status", "status").projection_expression(
                "pk, sk, id, event_id, event_type, client_id, made_at, test, #status, attempts, next_attempt_at, \
                 expires_at",
            )
        };
        query.scan_index_forward(false)
    }

    /// The items with all that the log shows, newest first. Those of the index name their deliveries.
    async fn whole(&self, found: Vec<Item>, status: Option<DeliveryStatus>) -> Result<Vec<Item>, StoreError> {
        if status.and_then(index_of).is_none() {
            return Ok(found);
        }
        let keys = found.iter().map(|item| db::key(text(item, "pk"), sk_of(item))).collect();
        let mut items = self.table.read(keys).await?;
        items.sort_unstable_by(|a, b| sk_of(b).cmp(sk_of(a)));
        Ok(items)
    }

    /// The delivery as the log shows it; `None` if it has expired or has another status by now.
    fn shown(&self, item: Item, filter: &DeliveryFilter, now: Timestamp) -> Result<Option<DeliveryView>, StoreError> {
        let endpoint = endpoint_of(text(&item, "pk"))?;
        let line: LoggedDelivery = from_item(ENTITY, item)?;
        if line.expires_at <= now.unix_s() || !filter.includes_status(line.status) {
            return Ok(None);
        }
        self.view(endpoint, line).map(Some)
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

/// Takes the next deliveries of a log that a filter may show, at most `most`.
async fn candidates(log: &mut MergedQueries, filter: &DeliveryFilter, most: usize) -> Result<Candidates, StoreError> {
    let mut found = Candidates { items: Vec::new(), last: None, end: None };
    while found.items.len() < most {
        match log.next().await? {
            Merged::Item(item) => {
                found.last = Some(id_of(&item)?);
                if filter.includes(text(&item, "event_type"), text(&item, "event_id")) {
                    found.items.push(item);
                }
            }
            Merged::End => found.end = Some(LogEnd::Complete),
            Merged::Interrupted => found.end = Some(LogEnd::Interrupted),
        }
        if found.end.is_some() {
            break;
        }
    }
    Ok(found)
}
