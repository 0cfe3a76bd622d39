//! Deliveries that a coach asks for: an event sent again, all that failed, a test. Each begins a chain of attempts of its own, with the
//! order for the first in the same transaction; orders of older chains count no more, so that there are never two chains at once.
//!
//! A recovery sends real events alone, each at most once within [`RECOVERY_PAUSE`]: a coach who switches an endpoint
//! off and on and recovers in a loop sends nothing twice. A recovery that meets a failed test event takes the test
//! event out of the index of what failed.
//!
//! A chain can begin for as long as deliveries are kept. It prolongs what it needs by its own time alone: however often something is sent
//! again, its body goes.

use std::time::Instant;

use aws_sdk_dynamodb::types::{AttributeValue, Update};
use domain::delivery::{CHAIN_RETENTION, DELIVERY_RETENTION, DeliveryOrder, DeliveryStatus, RECOVERY_PAUSE};
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};
use runtime::error_chain;

use super::attempt::StoredAttempt;
use super::{Deliveries, ENTITY, NewDelivery, Record, key, partition};
use crate::db::{
    Ask, Item, Part, StoreError, Transacted, Write, failed, from_item, n, s, to_attribute, to_item, write,
};
use crate::group::Bounds;
use crate::outbox::{Content, Outbox};

/// Failed deliveries that one look at the index finds: as many as one BatchGetItem reads.
const PAGE_ITEMS: i32 = 100;
/// Deliveries of one transaction, and bytes of their items. A transaction takes 100 writes. What it writes is paid for twice, a unit for each
/// KB, and a partition has 1,000 units a second.
const TOGETHER: Bounds = Bounds { items: 25, bytes: 128 * 1024 };
/// Attempts of earlier chains that a delivery's log keeps: an item has a limit, and each attempt pays for the size of it.
const KEPT_ATTEMPTS: usize = 50;

/// Updates at once of test events that leave the index.
const CONCURRENT_UPDATES: usize = 16;

/// The result of looking for a delivery to send again.
pub enum Found {
    Kept(Box<Kept>),
    /// There is nothing left to send: the client is erased.
    Erased,
    NotFound,
}

/// A delivery that can be sent again.
pub struct Kept(Record);

impl Kept {
    pub fn is_test(&self) -> bool {
        self.0.test
    }
}

/// What came of sending an event again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restarted {
    Done,
    /// An attempt is under way.
    Busy,
}

/// The deliveries that a recovery has sent again.
#[derive(Debug, Default)]
pub struct Recovery {
    pub deliveries: usize,
    /// The delivery that was ordered last.
    pub last: Option<DeliveryId>,
}

/// The cause of another chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    ByHand,
    Recovery,
}

impl Record {
    /// Until when a chain can begin, in seconds: what chains have prolonged is for them alone.
    fn restarts_until(&self) -> i64 {
        let kept_until = self.made_at.map(|at| (at + DELIVERY_RETENTION).unix_s());
        kept_until.map_or(self.expires_at, |until| until.min(self.expires_at))
    }

    /// Until when it is kept, in seconds, if a chain begins now. Of one that does not say when it was made nobody could tell what has been
    /// prolonged, and nothing is.
    fn kept_until(&self, now: Timestamp) -> i64 {
        let chain_until = self.made_at.map(|_| (now + CHAIN_RETENTION).unix_s());
        chain_until.map_or(self.expires_at, |until| until.max(self.expires_at))
    }

    /// Returns true if a recovery of what failed since then sends it again. The index may be behind and another call
    /// ahead: the record as it stands decides.
    fn is_recovered(&self, since: Timestamp, now: Timestamp) -> bool {
        let failed_then = self.failed_at.is_some_and(|at| (since.ms()..=now.ms()).contains(&at));
        let is_whole = self.restarts_until() > now.unix_s() && !self.sealed.is_empty();
        let has_paused = self.recovered_at.is_none_or(|at| Timestamp::from_ms(at) + RECOVERY_PAUSE <= now);
        self.status == DeliveryStatus::Failed && failed_then && is_whole && has_paused && !self.test
    }
}

impl Deliveries {
    /// Looks for a delivery to send again. One that is kept for an earlier chain alone is not found.
    pub async fn find(&self, endpoint: &EndpointId, id: &DeliveryId, now: Timestamp) -> Result<Found, StoreError> {
        let Some(item) = self.db.get(&self.table, key(endpoint, id)).await? else { return Ok(Found::NotFound) };
        let record: Record = from_item(ENTITY, item)?;
        Ok(match () {
            () if record.restarts_until() <= now.unix_s() => Found::NotFound,
            () if record.sealed.is_empty() => Found::Erased,
            () => Found::Kept(Box::new(Kept(record))),
        })
    }

    /// Sends one delivery again at once, whatever became of it so far.
    pub async fn restart(
        &self,
        whose: (&CoachId, &EndpointId),
        Kept(record): &Kept,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Restarted, StoreError> {
        match self.db.transact(&self.restarting(whose, record, Asked::ByHand, outbox, now)).await? {
            Transacted::Done => Ok(Restarted::Done),
            Transacted::Refused(_) => Ok(Restarted::Busy),
        }
    }

    /// Returns true while the first attempt of a delivery's chain is still to be made, or under way.
    pub async fn waits_for_first_attempt(&self, endpoint: &EndpointId, id: &DeliveryId) -> Result<bool, StoreError> {
        let Some(item) = self.db.get(&self.table, key(endpoint, id)).await? else { return Ok(false) };
        let record: Record = from_item(ENTITY, item)?;
        Ok(record.status == DeliveryStatus::Pending && record.next_attempt == 1)
    }

    /// Sends again what has failed since then, whenever its event was, in the order in which it failed. The rest is
    /// left to the next call by `until`, or where the store gives no answer any more.
    pub async fn recover(
        &self,
        whose: (&CoachId, &EndpointId),
        since: Timestamp,
        outbox: &Outbox,
        (now, until): (Timestamp, Instant),
    ) -> Result<Recovery, StoreError> {
        let (mut recovery, mut start) = (Recovery::default(), None);
        loop {
            let (failed, next) = self.failed_between(whose.1, (since, now), start).await?;
            let keys = failed.iter().map(|id| key(whose.1, id)).collect();
            let found = self.db.read(&self.table, keys).await?.into_iter().map(|item| from_item(ENTITY, item));
            let mut records: Vec<Record> = found.collect::<Result<_, _>>()?;
            self.leave_out_tests(whose.1, &records).await?;
            records.retain(|record| record.is_recovered(since, now));
            records.sort_by_key(|record| record.failed_at);
            // One after the other: they are all in one partition, which takes so much a second and no more.
            for group in TOGETHER.groups(&records, size_of) {
                match self.restart_all(whose, group, outbox, now).await {
                    Ok(restarted) => {
                        recovery.deliveries += restarted.deliveries;
                        recovery.last = restarted.last.or(recovery.last);
                    }
                    Err(error) if recovery.deliveries == 0 => return Err(error),
                    Err(error) => {
                        tracing::warn!(endpoint_id = %whose.1, error = error_chain(&error), "a recovery ends early");
                        return Ok(recovery);
                    }
                }
                if Instant::now() >= until {
                    return Ok(recovery);
                }
            }
            start = next;
            // Also of pages on which nothing is left to send again.
            if start.is_none() || Instant::now() >= until {
                return Ok(recovery);
            }
        }
    }

    /// Takes test events out of the index of what failed: no later recovery reads them again.
    async fn leave_out_tests(&self, endpoint: &EndpointId, records: &[Record]) -> Result<(), StoreError> {
        let leaving = records.iter().filter(|record| record.test && record.failed_at.is_some()).map(async |record| {
            write("UpdateItem", || {
                self.update(endpoint, &record.id)
                    .update_expression("REMOVE failed_at")
                    .condition_expression("attribute_exists(pk)")
                    .ask()
            })
            .await
            .map(drop)
        });
        let leaving: Vec<_> = leaving.collect();
        stream::iter(leaving).buffer_unordered(CONCURRENT_UPDATES).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Begins a chain for each of these in one transaction, but for those that are no longer as they were read.
    async fn restart_all(
        &self,
        whose: (&CoachId, &EndpointId),
        records: &[Record],
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Recovery, StoreError> {
        let mut left: Vec<(usize, &Record)> = records.iter().enumerate().collect();
        while !left.is_empty() {
            let restarting = left.iter().flat_map(|(number, record)| {
                let begun = self.restarting(whose, record, Asked::Recovery, outbox, now);
                begun.map(|write| write.labelled(Part::Delivery(*number)))
            });
            let writes: Vec<Write> = restarting.collect();
            match self.db.transact(&writes).await? {
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

    /// Stores the delivery of a test event, with its order.
    pub async fn create_test(
        &self,
        coach: &CoachId,
        delivery: NewDelivery<'_>,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let order = DeliveryOrder::first(coach, delivery.endpoint_id, &delivery.id, now);
        let record = Record { test: true, ..self.record_of(delivery, now) };
        let put = Part::Delivery(0).put_over(&self.table, to_item(&record), None);
        let writes = [put, ordering(outbox, order, now)];
        match self.db.transact(&writes).await? {
            Transacted::Done => Ok(()),
            Transacted::Refused(_) => Err(StoreError::corrupt(ENTITY, "one with this id exists")),
        }
    }

    /// What begins another chain of a delivery that is still as it was read: the change of its state, and the first order.
    fn restarting(
        &self,
        (coach, endpoint): (&CoachId, &EndpointId),
        record: &Record,
        asked: Asked,
        outbox: &Outbox,
        now: Timestamp,
    ) -> [Write; 2] {
        let chain = record.chain + 1;
        let recovered = if asked == Asked::Recovery { ", recovered_at = :now" } else { "" };
        let kept: Vec<AttributeValue> =
            record.attempts.iter().rev().take(KEPT_ATTEMPTS).rev().map(to_attribute).collect();
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(endpoint, &record.id)))
            .update_expression(format!(
                "SET #status = :pending, chain = :chain, next_attempt = :first, next_attempt_at = :at, expires_at = :expires, \
                 attempts = :kept{recovered} REMOVE failed_at, hop, hop_owner, lease_owner, lease_until",
            ))
            .condition_expression(
                "chain = :seen AND #status = :was AND size(attempts) = :made AND size(sealed) > :nothing \
                 AND (attribute_not_exists(lease_until) OR lease_until <= :now)",
            )
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":pending", s(DeliveryStatus::Pending.as_str()))
            .expression_attribute_values(":chain", n(chain))
            .expression_attribute_values(":seen", n(record.chain))
            .expression_attribute_values(":was", s(record.status.as_str()))
            .expression_attribute_values(":made", n(record.attempts.len()))
            .expression_attribute_values(":kept", AttributeValue::L(kept))
            .expression_attribute_values(":first", n(1))
            .expression_attribute_values(":nothing", n(0))
            .expression_attribute_values(":at", s(now.to_string()))
            .expression_attribute_values(":now", n(now.ms()))
            .expression_attribute_values(":expires", n(record.kept_until(now)));
        let first = DeliveryOrder::first(coach, endpoint, &record.id, now);
        [Part::Delivery(0).update(update), ordering(outbox, DeliveryOrder { chain, ..first }, now)]
    }

    /// A page of what failed between these times, in the order in which it did, and where the next begins. What fails while it is read
    /// through is not among it.
    async fn failed_between(
        &self,
        endpoint: &EndpointId,
        (since, until): (Timestamp, Timestamp),
        start: Option<Item>,
    ) -> Result<(Vec<DeliveryId>, Option<Item>), StoreError> {
        let query = self.db.client().query().table_name(&self.table).index_name("failed");
        let page = query
            .key_condition_expression("pk = :pk AND failed_at BETWEEN :since AND :until")
            .expression_attribute_values(":pk", s(partition(endpoint)))
            .expression_attribute_values(":since", n(since.ms().min(until.ms())))
            .expression_attribute_values(":until", n(until.ms()))
            .limit(PAGE_ITEMS)
            .set_exclusive_start_key(start)
            .ask()
            .await
            .map_err(|error| failed("Query", error))?;
        let ids = page.items.unwrap_or_default().iter().map(super::log::id_of).collect::<Result<_, _>>()?;
        Ok((ids, page.last_evaluated_key))
    }
}

/// About the bytes of a record's item.
fn size_of(record: &Record) -> usize {
    const MEMBERS: usize = 400;
    let attempts: usize = record.attempts.iter().map(StoredAttempt::size).sum();
    MEMBERS + record.sealed.len() + attempts
}

fn ordering(outbox: &Outbox, order: DeliveryOrder, now: Timestamp) -> Write {
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
        let made = Record { made_at: Some(at(0)), expires_at: at(30).unix_s(), ..record() };
        assert_eq!((made.kept_until(at(20)), made.kept_until(at(29))), (at(30).unix_s(), at(32).unix_s()));
        let prolonged = Record { expires_at: made.kept_until(at(29)), ..made };
        assert_eq!(prolonged.restarts_until(), at(30).unix_s());
        assert_eq!((prolonged.kept_until(at(1)), prolonged.kept_until(at(30))), (at(32).unix_s(), at(33).unix_s()));
        let unknown = Record { expires_at: at(30).unix_s(), ..record() };
        assert_eq!((unknown.restarts_until(), unknown.kept_until(at(29))), (at(30).unix_s(), at(30).unix_s()));
    }

    #[test]
    fn a_transaction_restarts_few_records_and_fewer_that_are_large() {
        let of = |excerpt: usize| {
            let line = StoredAttempt::sealed(Timestamp::from_ms(1), AttemptResult::StatusCode(500), vec![0; excerpt]);
            Record { attempts: vec![line], ..record() }
        };
        let sizes =
            |records: &[Record]| TOGETHER.groups(records, size_of).iter().map(|group| group.len()).collect::<Vec<_>>();
        assert!(sizes(&[]).is_empty());
        let small: Vec<Record> = (0..60).map(|_| of(100)).collect();
        assert_eq!(sizes(&small), [25, 25, 10]);
        let large: Vec<Record> = [60_000, 60_000, 60_000, 200_000, 100, 100].map(of).into();
        assert_eq!(sizes(&large), [2, 1, 1, 2]);
    }
}
