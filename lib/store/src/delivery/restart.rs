//! Deliveries that a coach asks for: an event sent again, all that failed, a test. Each begins a chain of attempts of its own, with the
//! order for the first in the same transaction; orders of older chains count no more, so that there are never two chains at once.
//!
//! A chain can begin for as long as deliveries are kept. It prolongs what it needs by its own time alone: however often something is sent
//! again, its body goes.

use std::time::Instant;

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use domain::delivery::{CHAIN_RETENTION, DELIVERY_RETENTION, DeliveryOrder, DeliveryStatus};
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::time::Timestamp;
use runtime::error_chain;

use super::attempt::StoredAttempt;
use super::{Deliveries, ENTITY, NewDelivery, Record, key, partition};
use crate::db::{
    Ask, Item, StoreError, Transacted, failed, from_item, n, putting, refused_at, s, to_attribute, to_item, updating,
};
use crate::group::Bounds;
use crate::outbox::{Content, Outbox};

/// Failed deliveries that one look at the index finds: as many as one BatchGetItem reads.
const PAGE_ITEMS: i32 = 100;
/// Deliveries of one transaction, and bytes of their items. A transaction takes 100 writes. What it writes is paid for twice, a unit for each
/// KB, and a partition has 1,000 units a second.
const TOGETHER: Bounds = Bounds { items: 25, bytes: 128 * 1024 };
/// The writes that begin a chain: the delivery, and the order.
const WRITES_EACH: usize = 2;
/// Attempts of earlier chains that a delivery's log keeps: an item has a limit, and each attempt pays for the size of it.
const KEPT_ATTEMPTS: usize = 50;

/// What came of sending an event again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restarted {
    Done,
    /// An attempt is under way.
    Busy,
    /// There is nothing left to send: the client is erased.
    Erased,
    NotFound,
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
}

impl Deliveries {
    /// Sends one delivery again at once, whatever became of it so far. One that is kept for an earlier chain alone is not found.
    pub async fn restart(
        &self,
        (coach, endpoint): (&CoachId, &EndpointId),
        id: &DeliveryId,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Restarted, StoreError> {
        let Some(item) = self.db.get(&self.table, key(endpoint, id)).await? else { return Ok(Restarted::NotFound) };
        let record: Record = from_item(ENTITY, item)?;
        if record.restarts_until() <= now.unix_s() {
            return Ok(Restarted::NotFound);
        }
        if record.sealed.is_empty() {
            return Ok(Restarted::Erased);
        }
        match self.db.transact(&self.restarting((coach, endpoint), &record, outbox, now)).await? {
            Transacted::Done => Ok(Restarted::Done),
            Transacted::Refused(_) => Ok(Restarted::Busy),
        }
    }

    /// Sends again what has failed since then, whenever its event was, in the order in which it failed. How many. What is left by `until`, or
    /// where the store gives no answer any more, is left to the next call.
    pub async fn recover(
        &self,
        whose: (&CoachId, &EndpointId),
        since: Timestamp,
        outbox: &Outbox,
        (now, until): (Timestamp, Instant),
    ) -> Result<usize, StoreError> {
        let (mut recovered, mut start) = (0, None);
        loop {
            let (failed, next) = self.failed_between(whose.1, (since, now), start).await?;
            let keys = failed.iter().map(|id| key(whose.1, id)).collect();
            let found = self.db.read(&self.table, keys).await?.into_iter().map(|item| from_item(ENTITY, item));
            let mut records: Vec<Record> = found.collect::<Result<_, _>>()?;
            // The index may be behind, and another call ahead: what counts is how the delivery stands.
            records.retain(|record| {
                let then = record.failed_at.is_some_and(|at| (since.ms()..=now.ms()).contains(&at));
                let is_whole = record.restarts_until() > now.unix_s() && !record.sealed.is_empty();
                record.status == DeliveryStatus::Failed && then && is_whole
            });
            records.sort_by_key(|record| record.failed_at);
            // One after the other: they are all in one partition, which takes so much a second and no more.
            for group in TOGETHER.groups(&records, size_of) {
                match self.restart_all(whose, group, outbox, now).await {
                    Ok(restarted) => recovered += restarted,
                    Err(error) if recovered == 0 => return Err(error),
                    Err(error) => {
                        tracing::warn!(endpoint_id = %whose.1, error = error_chain(&error), "a recovery ends early");
                        return Ok(recovered);
                    }
                }
                if Instant::now() >= until {
                    return Ok(recovered);
                }
            }
            start = next;
            // Also of pages on which nothing is left to send again.
            if start.is_none() || Instant::now() >= until {
                return Ok(recovered);
            }
        }
    }

    /// Begins a chain for each of these in one transaction, but for those that are no longer as they were read. How many.
    async fn restart_all(
        &self,
        whose: (&CoachId, &EndpointId),
        records: &[Record],
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let mut left: Vec<&Record> = records.iter().collect();
        while !left.is_empty() {
            let writes: Vec<TransactWriteItem> =
                left.iter().flat_map(|record| self.restarting(whose, record, outbox, now)).collect();
            match self.db.transact(&writes).await? {
                Transacted::Done => return Ok(left.len()),
                Transacted::Refused(reasons) => {
                    let before = left.len();
                    let mut writes = reasons.chunks(WRITES_EACH);
                    left.retain(|_| writes.next().is_some_and(|own| !(0..own.len()).any(|i| refused_at(own, i))));
                    if left.len() == before {
                        return Err(StoreError::corrupt(ENTITY, "a restart was refused for no reason"));
                    }
                }
            }
        }
        Ok(0)
    }

    /// Stores a delivery that is made once by request, with its order.
    pub async fn create_ordered(
        &self,
        coach: &CoachId,
        delivery: NewDelivery<'_>,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let order = DeliveryOrder::first(coach, delivery.endpoint_id, &delivery.id, now);
        let put = Put::builder().table_name(&self.table).set_item(Some(to_item(&self.record_of(delivery, now))));
        let writes = [putting(put.condition_expression("attribute_not_exists(pk)")), ordering(outbox, order, now)];
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
        outbox: &Outbox,
        now: Timestamp,
    ) -> [TransactWriteItem; WRITES_EACH] {
        let chain = record.chain + 1;
        let kept: Vec<AttributeValue> =
            record.attempts.iter().rev().take(KEPT_ATTEMPTS).rev().map(to_attribute).collect();
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(endpoint, &record.id)))
            .update_expression(
                "SET #status = :pending, chain = :chain, next_attempt = :first, next_attempt_at = :at, expires_at = :expires, \
                 attempts = :kept REMOVE failed_at, hop, hop_owner, lease_owner, lease_until",
            )
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
        [updating(update), ordering(outbox, DeliveryOrder { chain, ..first }, now)]
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

fn ordering(outbox: &Outbox, order: DeliveryOrder, now: Timestamp) -> TransactWriteItem {
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
