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
/// Failed deliveries that one look at the index finds.
const PAGE_ITEMS: i32 = 250;
/// Attempts of earlier chains that a delivery's log keeps: an item has a limit, and each attempt pays for the size of it.
const KEPT_ATTEMPTS: usize = 50;
/// Transactions at once.
const CONCURRENT_RESTARTS: usize = 16;

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
        self.restart_if((coach, endpoint), id, (outbox, now), |_| true).await
    }

    /// The same, if it is so of the delivery as it stands.
    async fn restart_if(
        &self,
        (coach, endpoint): (&CoachId, &EndpointId),
        id: &DeliveryId,
        (outbox, now): (&Outbox, Timestamp),
        is_wanted: impl Fn(&Record) -> bool,
    ) -> Result<Restarted, StoreError> {
        let get = self.db.client().get_item().table_name(&self.table).set_key(Some(key(endpoint, id)));
        let get = get.consistent_read(true).return_consumed_capacity(ReturnConsumedCapacity::Total);
        match get.send().await.map_err(|error| read_failed("GetItem", error))?.item {
            Some(item) => {
                let record: Record = from_item(ENTITY, item)?;
                if is_wanted(&record) {
                    self.restart_read((coach, endpoint), record, outbox, now).await
                } else {
                    Ok(Restarted::Busy)
                }
            }
            None => Ok(Restarted::NotFound),
        }
    }

    /// Sends again what has failed since then, whenever its event was, in the order in which it failed. How many. What cannot be sent
    /// again within 18 s is left to the next call.
    pub async fn recover(
        &self,
        (coach, endpoint): (&CoachId, &EndpointId),
        since: Timestamp,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let began = Instant::now();
        let (mut recovered, mut start) = (0, None);
        // The index may be behind, and another call ahead: what counts is how the delivery stands.
        let has_failed = |record: &Record| {
            let then = record.failed_at.is_some_and(|at| (since.ms()..=now.ms()).contains(&at));
            record.status == DeliveryStatus::Failed && then
        };
        while began.elapsed() < RECOVERY {
            let (failed, next) = self.failed_between(endpoint, (since, now), start).await?;
            let restarts: Vec<_> =
                failed.iter().map(|id| self.restart_if((coach, endpoint), id, (outbox, now), has_failed)).collect();
            let outcomes: Vec<Restarted> =
                stream::iter(restarts).buffer_unordered(CONCURRENT_RESTARTS).try_collect().await?;
            recovered += outcomes.into_iter().filter(|outcome| *outcome == Restarted::Done).count();
            start = next;
            if start.is_none() {
                break;
            }
        }
        Ok(recovered)
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

    async fn restart_read(
        &self,
        (coach, endpoint): (&CoachId, &EndpointId),
        record: Record,
        outbox: &Outbox,
        now: Timestamp,
    ) -> Result<Restarted, StoreError> {
        if record.expires_at <= now.unix_s() {
            return Ok(Restarted::NotFound);
        }
        if record.sealed.is_empty() {
            return Ok(Restarted::Erased);
        }
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
        let writes = [updating(update), ordering(outbox, DeliveryOrder { chain, ..first }, now)];
        Ok(match self.db.transact(&writes).await? {
            Transacted::Done => Restarted::Done,
            Transacted::Refused(_) => Restarted::Busy,
        })
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
