//! Recoveries: failed deliveries of an endpoint that begin a new retry chain. A recovery is many transactions, each of
//! some deliveries with their first orders.
//!
//! A recovery sends no test events, and each delivery at most once within [`RECOVERY_PAUSE`]. So a coach who switches
//! an endpoint off and on and recovers in a loop sends nothing twice. A recovery that finds a failed test event removes
//! it from the index `failed`. The index is sorted by the time of failure: ids start with the time of creation, which
//! may be days earlier. A dry run counts with the same reads and the same rule, and writes nothing.
//!
//! [`RECOVERY_PAUSE`]: domain::delivery::RECOVERY_PAUSE

use std::time::Instant;

use domain::delivery::{DeliveryStatus, RecoverySelection};
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;

use super::Deliveries;
use super::record::{DeliveryItem, ENTITY, StoredAttempt, partition};
use super::restart::RestartCause;
use crate::db::{Item, Part, QueryPage, StoreError, Transacted, Write, from_item, query_page, s};
use crate::endpoint_ref::EndpointRef;
use crate::group::Bounds;
use crate::outbox::Outbox;

/// Failed deliveries per page of the index: as many as one BatchGetItem reads.
const PAGE_ITEMS: i32 = 100;
/// Deliveries of one transaction, and bytes of their items. A transaction takes 100 writes and two write units per KB.
/// A partition has 1,000 units a second.
const GROUP_BOUNDS: Bounds = Bounds { items: 25, bytes: 128 * 1024 };

/// The deliveries that a recovery has sent again.
#[derive(Debug)]
pub struct Recovery {
    pub deliveries: usize,
    /// The delivery whose order was written last. The write may have failed.
    pub last: Option<DeliveryId>,
    pub end: RecoveryEnd,
}

/// The reason why a recovery ended.
#[derive(Debug)]
pub enum RecoveryEnd {
    Complete,
    OutOfTime,
    /// The store stopped answering.
    Failed(StoreError),
}

/// The deliveries that a recovery would send again.
#[derive(Debug, Clone, Copy)]
pub struct RecoverableCount {
    pub deliveries: usize,
    /// False if time ran out before the end.
    pub is_complete: bool,
}

/// The failures that a recovery is for.
pub struct Failures<'a> {
    pub selection: &'a RecoverySelection,
    /// The time at which the recovery began. A repeated request continues a recovery that began earlier.
    pub begun_at: Timestamp,
    pub now: Timestamp,
}

/// A page of the index `failed`.
struct FailedPage {
    /// The deliveries to send again, in the order of their failures.
    recoverable: Vec<DeliveryItem>,
    next: Option<Item>,
}

impl DeliveryItem {
    /// Returns true if a recovery sends this delivery again. The index may lag and another recovery may have been
    /// faster, so the record itself decides.
    fn is_recoverable(&self, Failures { selection, begun_at, now }: &Failures<'_>) -> bool {
        let recovered_at = self.recovered_at.map(Timestamp::from_ms);
        let is_selected = selection.includes(&self.event_type, self.made_at, recovered_at, *begun_at);
        let is_whole = self.restarts_until() > now.unix_s() && !self.erased;
        self.status == DeliveryStatus::Failed && is_selected && is_whole && !self.test
    }
}

impl Deliveries {
    /// Sends failed deliveries again, in the order of their failures. Stops at `until`, or when the store stops
    /// answering: another recovery continues.
    pub async fn recover(
        &self,
        endpoint: &EndpointRef,
        failures: &Failures<'_>,
        outbox: &Outbox,
        until: Instant,
    ) -> Recovery {
        let mut recovery = Recovery { deliveries: 0, last: None, end: RecoveryEnd::Complete };
        recovery.end = match self.recover_pages(endpoint, failures, outbox, until, &mut recovery).await {
            Ok(end) => end,
            Err(error) => RecoveryEnd::Failed(error),
        };
        recovery
    }

    async fn recover_pages(
        &self,
        endpoint: &EndpointRef,
        failures: &Failures<'_>,
        outbox: &Outbox,
        until: Instant,
        recovery: &mut Recovery,
    ) -> Result<RecoveryEnd, StoreError> {
        let mut start = None;
        loop {
            let FailedPage { recoverable, next } = self.failed_page(&endpoint.id, failures, start).await?;
            // One group after the other: all items are in one partition, whose write capacity is limited.
            for group in GROUP_BOUNDS.groups(&recoverable, size_of) {
                // Noted before the write, whose answer may be lost.
                let id_of = |record: &DeliveryItem| record.id.clone();
                let before = std::mem::replace(&mut recovery.last, group.last().map(id_of));
                let restarted = self.restart_all(endpoint, group, outbox, failures.now).await?;
                recovery.deliveries += restarted.len();
                recovery.last = restarted.last().copied().map(id_of).or(before);
                if Instant::now() >= until {
                    return Ok(RecoveryEnd::OutOfTime);
                }
            }
            if next.is_none() {
                return Ok(RecoveryEnd::Complete);
            }
            // Checked for every page, even one without a delivery to send again.
            if Instant::now() >= until {
                return Ok(RecoveryEnd::OutOfTime);
            }
            start = next;
        }
    }

    /// Counts the deliveries that a recovery would send again, as far as it gets until `until`.
    pub async fn count_recoverable(
        &self,
        endpoint: &EndpointId,
        failures: &Failures<'_>,
        until: Instant,
    ) -> Result<RecoverableCount, StoreError> {
        let (mut deliveries, mut start) = (0, None);
        loop {
            let page = self.failed_page(endpoint, failures, start).await?;
            deliveries += page.recoverable.len();
            start = page.next;
            let is_complete = start.is_none();
            if is_complete || Instant::now() >= until {
                return Ok(RecoverableCount { deliveries, is_complete });
            }
        }
    }

    /// Reads a page of failed deliveries.
    async fn failed_page(
        &self,
        endpoint: &EndpointId,
        failures: &Failures<'_>,
        start: Option<Item>,
    ) -> Result<FailedPage, StoreError> {
        let QueryPage { items, next } = self.failed_keys(endpoint, failures, start).await?;
        let found = self.table.read(items).await?.into_iter().map(|item| from_item(ENTITY, item));
        let records: Vec<DeliveryItem> = found.collect::<Result<_, _>>()?;
        let mut recoverable = records;
        recoverable.retain(|record| record.is_recoverable(failures));
        Ok(FailedPage { recoverable, next })
    }

    /// Begins a chain for each record in one transaction, and returns these records. Records that have changed since
    /// they were read are left out.
    async fn restart_all<'r>(
        &self,
        endpoint: &EndpointRef,
        records: &'r [DeliveryItem],
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Vec<&'r DeliveryItem>, StoreError> {
        let mut left: Vec<(usize, &DeliveryItem)> = records.iter().enumerate().collect();
        while !left.is_empty() {
            let writes = left.iter().flat_map(|(number, record)| {
                let (write, order) = self.restart_write(endpoint, record, RestartCause::Recovery, now);
                [write, outbox.put(&order, now)].map(|write| write.labelled(Part::Delivery(*number)))
            });
            let writes: Vec<Write> = writes.collect();
            match self.table.db.transact(&writes).await? {
                Transacted::Done => return Ok(left.into_iter().map(|(_, record)| record).collect()),
                Transacted::Refused(refused) => {
                    let before = left.len();
                    left.retain(|(number, _)| !refused.is(Part::Delivery(*number)));
                    if left.len() == before {
                        return Err(StoreError::corrupt(ENTITY, "a restart was refused for no reason"));
                    }
                }
            }
        }
        Ok(Vec::new())
    }

    /// Reads the keys of a page of deliveries that failed in the selection's time, in the order of failure. The upper
    /// bound excludes failures during the recovery.
    async fn failed_keys(
        &self,
        endpoint: &EndpointId,
        Failures { selection, begun_at, .. }: &Failures<'_>,
        start: Option<Item>,
    ) -> Result<QueryPage, StoreError> {
        let last = selection.last(*begun_at);
        if last < selection.since {
            return Ok(QueryPage { items: Vec::new(), next: None });
        }
        let failed =
            |at: Timestamp| s(format!("{}#{}", DeliveryStatus::Failed.as_str(), DeliveryId::first_at(at.ms())));
        let (from, to) = (failed(selection.since), failed(Timestamp::from_ms(last.ms() + 1)));
        let values = [(":pk", s(partition(endpoint))), (":from", from), (":to", to)];
        let query =
            self.table.query("pk = :pk AND undelivered BETWEEN :from AND :to", values).index_name("undelivered");
        query_page(query.projection_expression("pk, sk").limit(PAGE_ITEMS).set_exclusive_start_key(start)).await
    }
}

/// The approximate size of a delivery's item in bytes.
fn size_of(record: &DeliveryItem) -> usize {
    const MEMBERS: usize = 400;
    let attempts: usize = record.attempts.iter().map(StoredAttempt::size).sum();
    MEMBERS + record.sealed.len() + attempts
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn a_transaction_restarts_few_records_and_fewer_that_are_large() {
        let of = |bytes: usize| DeliveryItem { sealed: vec![0; bytes], ..record() };
        let sizes = |records: &[DeliveryItem]| {
            GROUP_BOUNDS.groups(records, size_of).iter().map(|group| group.len()).collect::<Vec<_>>()
        };
        assert!(sizes(&[]).is_empty());
        let small: Vec<DeliveryItem> = (0..60).map(|_| of(100)).collect();
        assert_eq!(sizes(&small), [25, 25, 10]);
        let large: Vec<DeliveryItem> = [60_000, 60_000, 60_000, 200_000, 100, 100].map(of).into();
        assert_eq!(sizes(&large), [2, 1, 1, 2]);
    }
}
