//! Pages of jobs: orders for pending deliveries, and new chains for failed ones. Pages come from the index of the
//! status, which orders an endpoint's deliveries by their ids.
//!
//! A page may be repeated. Of two orders for one attempt the queue drops one, or the record lets one count. The orders
//! of a page after an early end of the breaker are no copies of those that wait for it. A failed delivery that was sent
//! again is marked with the time, and no recovery that began earlier includes it.

use std::ops::Range;

use domain::delivery::{DeliveryOrder, DeliveryStatus, FailedDelivery, MOST_COUNTED, Recovered, Recovery};
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;

use super::Deliveries;
use super::record::{DeliveryItem, ENTITY, id_of, sort_key};
use super::restart::RestartCause;
use crate::db::{self, Item, StoreError, from_item, query_page, query_up_to};
use crate::endpoint_ref::EndpointRef;
use crate::unit::{Commit, Once, Unit, Units};

/// Entries of the index per page: as many as one BatchGetItem reads.
const PAGE_ITEMS: i32 = 100;
/// Concurrent transactions, of one delivery each.
const CONCURRENT_RESTARTS: usize = 16;

/// An entry of the index `failed`.
#[derive(Deserialize)]
struct FailedEntry {
    event_type: String,
    #[serde(default)]
    test: bool,
    #[serde(default)]
    erased: bool,
    recovered_at: Option<i64>,
}

/// A page of a job.
#[derive(Debug)]
pub struct JobPage<T> {
    pub done: T,
    /// The last delivery of the page. `None`: the job has no further page.
    pub last: Option<DeliveryId>,
}

impl Deliveries {
    /// Builds the orders of a page of pending deliveries. After the breaker was closed early, at `closed_at`: of those
    /// that are due.
    pub async fn resume_page(
        &self,
        endpoint: &EndpointRef,
        closed_at: Option<Timestamp>,
        after: Option<&DeliveryId>,
        now: Timestamp,
    ) -> Result<JobPage<Vec<DeliveryOrder>>, StoreError> {
        let all = DeliveryId::first_at(0)..DeliveryId::last();
        let (entries, last) = self.page_of(&endpoint.id, DeliveryStatus::Pending, &all, after).await?;
        let mut orders = Vec::new();
        for item in self.table.read(entries.iter().map(db::key_of).collect()).await? {
            let order = from_item::<DeliveryItem>(ENTITY, item)?.next_order(now)?;
            match closed_at {
                None => orders.push(order),
                Some(closed_at) if order.due_at <= now => orders.push(order.later(closed_at)),
                // The order that waits for that time is not held up.
                Some(_) => {}
            }
        }
        Ok(JobPage { done: orders, last })
    }

    /// Begins a chain for each delivery of a page that the recovery includes. A delivery that changes meanwhile is left
    /// as it is. Returns the number of chains.
    pub async fn recover_page(
        &self,
        endpoint: &EndpointRef,
        recovery: &Recovery,
        after: Option<&DeliveryId>,
        units: &Units,
        now: Timestamp,
    ) -> Result<JobPage<usize>, StoreError> {
        let (entries, last) = self.page_of(&endpoint.id, DeliveryStatus::Failed, &recovery.ids(), after).await?;
        let mut keys = Vec::new();
        for entry in entries {
            if is_included(recovery, &entry)? {
                keys.push(db::key_of(&entry));
            }
        }
        let records = self.table.read(keys).await?.into_iter().map(|item| from_item(ENTITY, item));
        let records: Vec<DeliveryItem> = records.collect::<Result<_, _>>()?;
        // The index may lag: the record decides.
        let restarting = records
            .iter()
            .filter(|record| record.status == DeliveryStatus::Failed && recovery.includes(&record.as_failed()))
            .map(|record| self.recover_one(endpoint, record, units, now))
            .collect::<Vec<_>>();
        let restarted: Vec<bool> = stream::iter(restarting).buffer_unordered(CONCURRENT_RESTARTS).try_collect().await?;
        Ok(JobPage { done: restarted.into_iter().filter(|is_done| *is_done).count(), last })
    }

    /// Begins a chain of a delivery, with its first order. Returns false if the delivery has changed.
    async fn recover_one(
        &self,
        endpoint: &EndpointRef,
        record: &DeliveryItem,
        units: &Units,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (write, order) = self.restart_write(endpoint, record, RestartCause::Recovery, now);
        let unit = Unit::new().write([write]).entries([order]);
        Ok(matches!(units.commit(unit, Once::ByVersion, now).await?, Commit::Done))
    }

    /// Counts the deliveries that a recovery sends again, from the index alone.
    pub async fn count_recoverable(&self, endpoint: &EndpointId, recovery: &Recovery) -> Result<Recovered, StoreError> {
        let ids = recovery.ids();
        if ids.is_empty() {
            return Ok(Recovered { deliveries: 0, more: false });
        }
        let bounds = [&ids.start, &ids.end].map(sort_key);
        let query = self.deliveries_of(endpoint, Some(DeliveryStatus::Failed), bounds);
        let mut entries = query_up_to(query, MOST_COUNTED + 1).await?;
        let more = entries.len() > MOST_COUNTED;
        entries.truncate(MOST_COUNTED);
        let mut deliveries = 0;
        for entry in &entries {
            deliveries += usize::from(is_included(recovery, entry)?);
        }
        Ok(Recovered { deliveries, more })
    }

    /// Reads a page of the index: the entries of a status with these ids, and the last id if there may be more.
    async fn page_of(
        &self,
        endpoint: &EndpointId,
        status: DeliveryStatus,
        ids: &Range<DeliveryId>,
        after: Option<&DeliveryId>,
    ) -> Result<(Vec<Item>, Option<DeliveryId>), StoreError> {
        if ids.is_empty() {
            return Ok((Vec::new(), None));
        }
        // A blank sorts before everything that ids consist of.
        let from = after.map_or_else(|| sort_key(&ids.start), |id| format!("{} ", sort_key(id)));
        let query = self.deliveries_of(endpoint, Some(status), [from, sort_key(&ids.end)]);
        let page = query_page(query.limit(PAGE_ITEMS)).await?;
        let last = page.next.as_ref().map(id_of).transpose()?;
        Ok((page.items, last))
    }
}

/// Returns true if a recovery sends the delivery of this entry again.
fn is_included(recovery: &Recovery, entry: &Item) -> Result<bool, StoreError> {
    let id = id_of(entry)?;
    let FailedEntry { event_type, test, erased, recovered_at } = from_item(ENTITY, entry.clone())?;
    let recovered_at = recovered_at.map(Timestamp::from_ms);
    Ok(recovery.includes(&FailedDelivery { id: &id, event_type: &event_type, test, erased, recovered_at }))
}

impl DeliveryItem {
    fn as_failed(&self) -> FailedDelivery<'_> {
        FailedDelivery {
            id: &self.id,
            event_type: &self.event_type,
            test: self.test,
            erased: self.erased,
            recovered_at: self.recovered_at.map(Timestamp::from_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::delivery::RecoverySelection;
    use domain::event::EventType;
    use domain::id::RecoveryId;

    use super::super::record::tests::record;
    use super::*;
    use crate::db::to_item;

    /// The attributes of the index, as in the template.
    const INDEXED: [&str; 7] = ["pk", "sk", "failed_of", "event_type", "test", "recovered_at", "erased"];

    fn hour(hours: i64) -> Timestamp {
        Timestamp::from_ms(hours * 3_600_000)
    }

    fn failed(created_h: i64, event_type: &str, recovered_h: Option<i64>, [test, erased]: [bool; 2]) -> DeliveryItem {
        let (id, recovered_at) = (DeliveryId::first_at(hour(created_h).ms()), recovered_h.map(|at| hour(at).ms()));
        let event_type = event_type.to_owned();
        DeliveryItem { sk: sort_key(&id), id, event_type, recovered_at, test, erased, ..record() }
    }

    /// The count goes by the index, the job by the records.
    #[test]
    fn a_count_has_what_the_job_sends_and_a_repeated_page_sends_nothing() {
        let types = Some(vec![EventType::NewClient.into()]);
        let selection = RecoverySelection { since: hour(10), until: Some(hour(40)), types };
        let recovery = Recovery { id: RecoveryId::parse("recovery_1").unwrap(), selection, begun_at: hour(50) };
        let mut sent = Vec::new();
        for created_h in [9, 10, 39, 40] {
            for event_type in ["new_client", "phase_advanced"] {
                for recovered_h in [None, Some(49), Some(50)] {
                    for flags in [[false, false], [true, false], [false, true], [true, true]] {
                        let record = failed(created_h, event_type, recovered_h, flags);
                        let mut entry = to_item(&record);
                        entry.retain(|name, _| INDEXED.contains(&name.as_str()));
                        let is_sent = recovery.includes(&record.as_failed());
                        assert_eq!(is_included(&recovery, &entry).unwrap(), is_sent);
                        sent.extend(is_sent.then_some((created_h, recovered_h)));
                        let again = DeliveryItem { recovered_at: Some(hour(50).ms() + 1), ..record };
                        assert!(!recovery.includes(&again.as_failed()));
                    }
                }
            }
        }
        assert_eq!(sent, [(10, None), (10, Some(49)), (39, None), (39, Some(49))]);
    }
}
