//! Deliveries that a coach asks for: an event sent again, all that failed, a test. Each begins a chain of attempts of its own, with the
//! order for the first in the same transaction; orders of older chains count no more, so that there are never two chains at once.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnConsumedCapacity, TransactWriteItem, Update};
use domain::delivery::{DELIVERY_RETENTION, DeliveryOrder, DeliveryStatus};
use domain::id::{CoachId, DeliveryId, EndpointId};
use domain::time::Timestamp;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{Deliveries, ENTITY, NewDelivery, Record, key, partition};
use crate::db::{Item, StoreError, Transacted, from_item, n, putting, read_failed, s, to_attribute, to_item, updating};
use crate::outbox::{Content, Outbox};

/// How long one call may begin pages of what failed. The function behind it has 25 s, and a page takes some tenths.
const RECOVERY: Duration = Duration::from_secs(18);
/// Failed deliveries that one look at the index finds: as many as one BatchGetItem reads.
const PAGE_ITEMS: i32 = 100;
/// Deliveries of one transaction. It takes 100 writes, and no more than 4 MB of items.
const TRANSACTION_RESTARTS: usize = 25;
/// Attempts of earlier chains that a delivery's log keeps: an item has a limit, and each attempt pays for the size of it.
const KEPT_ATTEMPTS: usize = 50;
/// Transactions at once.
const CONCURRENT_RESTARTS: usize = 4;

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

impl Deliveries {
    /// Sends one delivery again at once, whatever became of it so far.
    pub async fn restart(
        &self,
        (coach, endpoint): (&CoachId, &EndpointId),
        id: &DeliveryId,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Restarted, StoreError> {
        let get = self.db.client().get_item().table_name(&self.table).set_key(Some(key(endpoint, id)));
        let get = get.consistent_read(true).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let Some(item) = get.send().await.map_err(|error| read_failed("GetItem", error))?.item else {
            return Ok(Restarted::NotFound);
        };
        let record: Record = from_item(ENTITY, item)?;
        if record.expires_at <= now.unix_s() {
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

    /// Sends again what has failed since then, whenever its event was, in the order in which it failed. How many. What cannot be sent
    /// again within 18 s is left to the next call.
    pub async fn recover(
        &self,
        whose: (&CoachId, &EndpointId),
        since: Timestamp,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let began = Instant::now();
        let (mut recovered, mut start) = (0, None);
        while began.elapsed() < RECOVERY {
            let (failed, next) = self.failed_between(whose.1, (since, now), start).await?;
            let keys = failed.iter().map(|id| key(whose.1, id)).collect();
            let mut records: Vec<Record> = self
                .db
                .read(&self.table, keys)
                .await?
                .into_iter()
                .map(|item| from_item(ENTITY, item))
                .collect::<Result<_, _>>()?;
            // The index may be behind, and another call ahead: what counts is how the delivery stands.
            records.retain(|record| {
                let then = record.failed_at.is_some_and(|at| (since.ms()..=now.ms()).contains(&at));
                let is_whole = record.expires_at > now.unix_s() && !record.sealed.is_empty();
                record.status == DeliveryStatus::Failed && then && is_whole
            });
            records.sort_by_key(|record| record.failed_at);
            let groups = records.chunks(TRANSACTION_RESTARTS).map(|group| self.restart_all(whose, group, outbox, now));
            let groups: Vec<_> = groups.collect();
            let done: Vec<usize> = stream::iter(groups).buffer_unordered(CONCURRENT_RESTARTS).try_collect().await?;
            recovered += done.iter().sum::<usize>();
            start = next;
            if start.is_none() {
                break;
            }
        }
        Ok(recovered)
    }

    /// Begins a chain for each of these in one transaction; where one of them is not as it was read, for each that is. How many.
    async fn restart_all(
        &self,
        whose: (&CoachId, &EndpointId),
        records: &[Record],
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let writes = |record| self.restarting(whose, record, outbox, now);
        let all: Vec<TransactWriteItem> = records.iter().flat_map(writes).collect();
        if matches!(self.db.transact(&all).await?, Transacted::Done) {
            return Ok(records.len());
        }
        let mut done = 0;
        for record in records {
            done += usize::from(matches!(self.db.transact(&writes(record)).await?, Transacted::Done));
        }
        Ok(done)
    }

    /// Stores a delivery that is made once by request, with its order.
    pub async fn create_ordered(
        &self,
        coach: &CoachId,
        delivery: NewDelivery<'_>,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let order = DeliveryOrder::first(coach, delivery.endpoint_id, delivery.id, now);
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
    ) -> [TransactWriteItem; 2] {
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
            .expression_attribute_values(":expires", n((now + DELIVERY_RETENTION).unix_s()));
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
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| read_failed("Query", error))?;
        let ids = page.items.unwrap_or_default().iter().map(super::log::id_of).collect::<Result<_, _>>()?;
        Ok((ids, page.last_evaluated_key))
    }
}

fn ordering(outbox: &Outbox, order: DeliveryOrder, now: Timestamp) -> TransactWriteItem {
    outbox.put(&Content::Order(Box::new(order)), now)
}
