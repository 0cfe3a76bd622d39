//! Deliveries that a coach orders: an event sent again, a recovery of failed deliveries, a test event. Each begins a
//! new retry chain. One transaction stores the chain, an outbox entry with its first order and, but for a recovery, the
//! audit record. So an accepted retry happens even if the function dies after its answer. Orders of older chains no
//! longer count: a delivery has one chain at a time.
//!
//! A recovery sends no test events, and each delivery at most once within [`RECOVERY_PAUSE`]. So a coach who switches
//! an endpoint off and on and recovers in a loop sends nothing twice. A recovery that finds a failed test event removes
//! it from the index `failed`. The index is sorted by the time of failure: ids start with the time of creation, which
//! may be days earlier. A dry run counts with the same reads and the same rule, and writes nothing.
//!
//! [`RECOVERY_PAUSE`]: domain::delivery::RECOVERY_PAUSE
//!
//! A chain can begin for as long as deliveries are kept. It prolongs that time only by its own length, so no number of
//! retries keeps a body for good.

use std::time::Instant;

use domain::audit::{AuditAction, AuditDetail};
use domain::delivery::{CHAIN_RETENTION, DELIVERY_RETENTION, DeliveryOrder, DeliveryStatus, RecoverySelection};
use domain::endpoint::Endpoint;
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};
use runtime::error_chain;

use super::attempt::StoredAttempt;
use super::{Deliveries, DeliveryItem, ENTITY, NewDelivery, key, partition};
use crate::audit::{self, AuditContext};
use crate::db::{
    Item, Part, QueryPage, StoreError, Transacted, Write, from_item, n, query_page, s, to_attribute, to_item,
};
use crate::endpoint::EndpointRef;
use crate::group::Bounds;
use crate::outbox::{Content, Outbox};
use crate::workspace::Workspaces;

/// Failed deliveries per page of the index: as many as one BatchGetItem reads.
const PAGE_ITEMS: i32 = 100;
/// Deliveries of one transaction, and bytes of their items. A transaction takes 100 writes and two write units per KB.
/// A partition has 1,000 units a second.
const GROUP_BOUNDS: Bounds = Bounds { items: 25, bytes: 128 * 1024 };
/// Attempts of earlier chains that stay in a delivery's log. Each attempt pays write units for the whole item.
const KEPT_ATTEMPTS: usize = 50;

/// Concurrent updates that remove test events from the index.
const CONCURRENT_UPDATES: usize = 16;

/// The result of looking for a delivery to send again.
pub enum ResendLookup {
    Ready(Box<ResendableDelivery>),
    /// The client is erased: there is no body to send.
    Erased,
    NotFound,
}

/// A delivery that can be sent again.
pub struct ResendableDelivery(DeliveryItem);

impl ResendableDelivery {
    pub fn is_test(&self) -> bool {
        self.0.test
    }
}

/// The result of sending an event again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restarted {
    Done,
    /// An attempt is under way.
    Busy,
    /// Another request has taken over the claim.
    ClaimLost,
}

/// The deliveries that a recovery has sent again.
#[derive(Debug, Default)]
pub struct Recovery {
    pub deliveries: usize,
    /// The delivery whose order was written last.
    pub last: Option<DeliveryId>,
}

/// The cause of another chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestartCause {
    ByHand,
    Recovery,
}

impl DeliveryItem {
    /// The end of the time in which a chain can begin, in seconds. Retention that earlier chains added does not extend
    /// it.
    fn restarts_until(&self) -> i64 {
        let kept_until = self.made_at.map(|at| (at + DELIVERY_RETENTION).unix_s());
        kept_until.map_or(self.expires_at, |until| until.min(self.expires_at))
    }

    /// The expiry of the record if a chain begins now, in seconds. A record without `made_at` is not prolonged.
    fn kept_until(&self, now: Timestamp) -> i64 {
        let chain_until = self.made_at.map(|_| (now + CHAIN_RETENTION).unix_s());
        chain_until.map_or(self.expires_at, |until| until.max(self.expires_at))
    }

    /// Returns true if a recovery sends this delivery again. The index may lag and another recovery may have been
    /// faster, so the record itself decides.
    fn is_recoverable(&self, selection: &RecoverySelection, now: Timestamp) -> bool {
        let [failed_at, recovered_at] = [self.failed_at, self.recovered_at].map(|ms| ms.map(Timestamp::from_ms));
        let is_selected = failed_at.is_some_and(|at| selection.includes(&self.event_type, at, recovered_at, now));
        let is_whole = self.restarts_until() > now.unix_s() && !self.sealed.is_empty();
        self.status == DeliveryStatus::Failed && is_selected && is_whole && !self.test
    }
}

/// A page of the index `failed`.
struct FailedPage {
    /// The deliveries to send again, in the order of their failures.
    recoverable: Vec<DeliveryItem>,
    /// Test events, which are never recovered.
    tests: Vec<DeliveryItem>,
    next: Option<Item>,
}

impl Deliveries {
    /// Looks up a delivery to send again. A delivery that is kept only for the attempts of an earlier chain is not
    /// found.
    pub async fn find(
        &self,
        endpoint: &EndpointId,
        id: &DeliveryId,
        now: Timestamp,
    ) -> Result<ResendLookup, StoreError> {
        let found: Option<DeliveryItem> = self.table.get(ENTITY, key(endpoint, id)).await?;
        Ok(match found.filter(|record| record.restarts_until() > now.unix_s()) {
            None => ResendLookup::NotFound,
            Some(record) if record.sealed.is_empty() => ResendLookup::Erased,
            Some(record) => ResendLookup::Ready(Box::new(ResendableDelivery(record))),
        })
    }

    /// Sends one delivery again at once, whatever its status. `answer` is the part of the transaction that records the
    /// answer.
    pub async fn restart(
        &self,
        workspaces: &Workspaces,
        context: AuditContext<'_>,
        endpoint: &Endpoint,
        ResendableDelivery(record): &ResendableDelivery,
        answer: Vec<Write>,
        outbox: &Outbox,
    ) -> Result<Restarted, StoreError> {
        let endpoint_ref = EndpointRef { coach: context.coach.clone(), id: endpoint.id.clone() };
        let detail = AuditDetail {
            endpoint_id: Some(endpoint.id.clone()),
            event_type: Some(record.event_type.clone()),
            ..AuditDetail::of_endpoint(endpoint)
        };
        let (action, target) = (AuditAction::DeliveryRetried, record.id.as_str());
        let mut writes = vec![audit::record(&workspaces.table, context, action, target, detail)];
        writes.extend(self.restart_writes(&endpoint_ref, record, RestartCause::ByHand, outbox, context.now));
        writes.extend(answer);
        Ok(match self.table.db.transact(&writes).await? {
            Transacted::Done => Restarted::Done,
            Transacted::Refused(refused) if refused.is(Part::Claim) => Restarted::ClaimLost,
            Transacted::Refused(_) => Restarted::Busy,
        })
    }

    /// Returns true while the first attempt of a delivery's chain is not recorded.
    pub async fn waits_for_first_attempt(&self, endpoint: &EndpointId, id: &DeliveryId) -> Result<bool, StoreError> {
        let found: Option<DeliveryItem> = self.table.get(ENTITY, key(endpoint, id)).await?;
        Ok(found.is_some_and(|record| record.status == DeliveryStatus::Pending && record.next_attempt == 1))
    }

    /// Sends failed deliveries again, in the order of their failures. Stops at `until`, or when the store stops
    /// answering: the next call continues.
    pub async fn recover(
        &self,
        endpoint: &EndpointRef,
        selection: &RecoverySelection,
        outbox: &Outbox,
        now: Timestamp,
        until: Instant,
    ) -> Result<Recovery, StoreError> {
        let (mut recovery, mut start) = (Recovery::default(), None);
        loop {
            let FailedPage { recoverable, tests, next } = self.failed_page(&endpoint.id, selection, now, start).await?;
            self.remove_from_index(&endpoint.id, &tests).await?;
            // One group after the other: all items are in one partition, whose write capacity is limited.
            for group in GROUP_BOUNDS.groups(&recoverable, size_of) {
                match self.restart_all(endpoint, group, outbox, now).await {
                    Ok(restarted) => {
                        recovery.deliveries += restarted.deliveries;
                        recovery.last = restarted.last.or(recovery.last);
                    }
                    Err(error) if recovery.deliveries == 0 => return Err(error),
                    Err(error) => {
                        tracing::warn!(endpoint_id = %endpoint.id, error = error_chain(&error), "recovery stopped early");
                        return Ok(recovery);
                    }
                }
                if Instant::now() >= until {
                    return Ok(recovery);
                }
            }
            start = next;
            // Checked for every page, even one without a delivery to send again.
            if start.is_none() || Instant::now() >= until {
                return Ok(recovery);
            }
        }
    }

    /// Counts the deliveries that a recovery would send again, as far as it gets until `until`.
    pub async fn count_recoverable(
        &self,
        endpoint: &EndpointId,
        selection: &RecoverySelection,
        now: Timestamp,
        until: Instant,
    ) -> Result<usize, StoreError> {
        let (mut deliveries, mut start) = (0, None);
        loop {
            let page = self.failed_page(endpoint, selection, now, start).await?;
            deliveries += page.recoverable.len();
            start = page.next;
            if start.is_none() || Instant::now() >= until {
                return Ok(deliveries);
            }
        }
    }

    /// Reads a page of failed deliveries.
    async fn failed_page(
        &self,
        endpoint: &EndpointId,
        selection: &RecoverySelection,
        now: Timestamp,
        start: Option<Item>,
    ) -> Result<FailedPage, StoreError> {
        let QueryPage { items, next } = self.failed_keys(endpoint, selection, now, start).await?;
        let found = self.table.read(items).await?.into_iter().map(|item| from_item(ENTITY, item));
        let records: Vec<DeliveryItem> = found.collect::<Result<_, _>>()?;
        let (tests, mut recoverable): (Vec<_>, Vec<_>) = records.into_iter().partition(|record| record.test);
        recoverable.retain(|record| record.is_recoverable(selection, now));
        recoverable.sort_by_key(|record| record.failed_at);
        Ok(FailedPage { recoverable, tests, next })
    }

    /// Removes test events from the index `failed`, so later recoveries do not read them again.
    async fn remove_from_index(&self, endpoint: &EndpointId, tests: &[DeliveryItem]) -> Result<(), StoreError> {
        let updates = tests.iter().filter(|record| record.failed_at.is_some()).map(async |record| {
            self.update(endpoint, &record.id).remove(["failed_at"]).when_present().update_now().await.map(drop)
        });
        let updates: Vec<_> = updates.collect();
        stream::iter(updates).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Begins a chain for each record in one transaction. Records that have changed since they were read are left out.
    async fn restart_all(
        &self,
        endpoint: &EndpointRef,
        records: &[DeliveryItem],
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Recovery, StoreError> {
        let mut left: Vec<(usize, &DeliveryItem)> = records.iter().enumerate().collect();
        while !left.is_empty() {
            let writes = left.iter().flat_map(|(number, record)| {
                let pair = self.restart_writes(endpoint, record, RestartCause::Recovery, outbox, now);
                pair.map(|write| write.labelled(Part::Delivery(*number)))
            });
            let writes: Vec<Write> = writes.collect();
            match self.table.db.transact(&writes).await? {
                Transacted::Done => {
                    let last = left.last().map(|(_, record)| record.id.clone());
                    return Ok(Recovery { deliveries: left.len(), last });
                }
                Transacted::Refused(refused) => {
                    let before = left.len();
                    left.retain(|(number, _)| !refused.is(Part::Delivery(*number)));
                    if left.len() == before {
                        return Err(StoreError::corrupt(ENTITY, "a restart was refused for no reason"));
                    }
                }
            }
        }
        Ok(Recovery::default())
    }

    /// Stores the delivery of a test event with its first order. `answer` is the part of the transaction that records
    /// the answer. Returns false if another request has taken over the claim.
    pub async fn create_test(
        &self,
        workspaces: &Workspaces,
        context: AuditContext<'_>,
        delivery: NewDelivery<'_>,
        detail: AuditDetail,
        answer: Vec<Write>,
        outbox: &Outbox,
    ) -> Result<bool, StoreError> {
        let AuditContext { coach, now, .. } = context;
        let order = DeliveryOrder::first(coach, delivery.endpoint_id, &delivery.id, now);
        let (action, target) = (AuditAction::EndpointTestSent, delivery.endpoint_id.as_str());
        let trail = audit::record(&workspaces.table, context, action, target, detail);
        let record = DeliveryItem { test: true, ..self.record_of(delivery, now) };
        let put = self.table.write(to_item(&record)).when_absent().put(Part::Delivery(0));
        let mut writes = vec![put, order_write(outbox, order, now), trail];
        writes.extend(answer);
        match self.table.db.transact(&writes).await? {
            Transacted::Done => Ok(true),
            Transacted::Refused(refused) if refused.is(Part::Claim) => Ok(false),
            Transacted::Refused(_) => Err(StoreError::corrupt(ENTITY, "a delivery with this id exists")),
        }
    }

    /// The writes that begin another chain of a delivery and store its first order, on condition that the delivery is
    /// as it was read.
    fn restart_writes(
        &self,
        EndpointRef { coach, id: endpoint }: &EndpointRef,
        record: &DeliveryItem,
        cause: RestartCause,
        outbox: &Outbox,
        now: Timestamp,
    ) -> [Write; 2] {
        let chain = record.chain + 1;
        let kept = &record.attempts[record.attempts.len().saturating_sub(KEPT_ATTEMPTS)..];
        let as_read =
            [(":seen", n(record.chain)), (":was", s(record.status.as_str())), (":made", n(record.attempts.len()))];
        let mut update = self
            .update(endpoint, &record.id)
            .set("status", s(DeliveryStatus::Pending.as_str()))
            .set("chain", n(chain))
            .set("next_attempt", n(1))
            .set("next_attempt_at", s(now.to_string()))
            .set("expires_at", n(record.kept_until(now)))
            .set("attempts", to_attribute(&kept))
            .remove(["failed_at", "hop", "hop_owner", "lease_owner", "lease_until"])
            .when("chain = :seen AND #status = :was AND size(attempts) = :made AND size(sealed) > :zero", as_read)
            .when("attribute_not_exists(lease_until) OR lease_until <= :now", [(":now", n(now.ms()))]);
        if cause == RestartCause::Recovery {
            update = update.set("recovered_at", n(now.ms()));
        }
        let first = DeliveryOrder::first(coach, endpoint, &record.id, now);
        [update.update(Part::Delivery(0)), order_write(outbox, DeliveryOrder { chain, ..first }, now)]
    }

    /// Reads the keys of a page of deliveries that failed in the selection's time, in the order of failure. The upper
    /// bound excludes failures during the recovery.
    async fn failed_keys(
        &self,
        endpoint: &EndpointId,
        selection: &RecoverySelection,
        now: Timestamp,
        start: Option<Item>,
    ) -> Result<QueryPage, StoreError> {
        let last = selection.last(now);
        if last < selection.since {
            return Ok(QueryPage { items: Vec::new(), next: None });
        }
        let values = [(":pk", s(partition(endpoint))), (":since", n(selection.since.ms())), (":until", n(last.ms()))];
        let query = self.table.query("pk = :pk AND failed_at BETWEEN :since AND :until", values).index_name("failed");
        query_page(query.projection_expression("pk, sk").limit(PAGE_ITEMS).set_exclusive_start_key(start)).await
    }
}

/// The approximate size of a delivery's item in bytes.
fn size_of(record: &DeliveryItem) -> usize {
    const MEMBERS: usize = 400;
    let attempts: usize = record.attempts.iter().map(StoredAttempt::size).sum();
    MEMBERS + record.sealed.len() + attempts
}

fn order_write(outbox: &Outbox, order: DeliveryOrder, now: Timestamp) -> Write {
    outbox.put(&Content::Order(Box::new(order)), now)
}

#[cfg(test)]
mod tests {
    use domain::delivery::AttemptResult;

    use super::super::tests::record;
    use super::*;

    #[test]
    fn a_chain_begins_within_30_days_and_prolongs_them_by_no_more_than_its_own_time() {
        let at = |days: i64| Timestamp::from_ms(days * 86_400_000);
        let made = DeliveryItem { made_at: Some(at(0)), expires_at: at(30).unix_s(), ..record() };
        assert_eq!((made.kept_until(at(20)), made.kept_until(at(29))), (at(30).unix_s(), at(32).unix_s()));
        let prolonged = DeliveryItem { expires_at: made.kept_until(at(29)), ..made };
        assert_eq!(prolonged.restarts_until(), at(30).unix_s());
        assert_eq!((prolonged.kept_until(at(1)), prolonged.kept_until(at(30))), (at(32).unix_s(), at(33).unix_s()));
        let unknown = DeliveryItem { expires_at: at(30).unix_s(), ..record() };
        assert_eq!((unknown.restarts_until(), unknown.kept_until(at(29))), (at(30).unix_s(), at(30).unix_s()));
    }

    #[test]
    fn a_transaction_restarts_few_records_and_fewer_that_are_large() {
        let of = |excerpt: usize| {
            let line = StoredAttempt::sealed(Timestamp::from_ms(1), AttemptResult::StatusCode(500), vec![0; excerpt]);
            DeliveryItem { attempts: vec![line], ..record() }
        };
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
