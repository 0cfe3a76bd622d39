//! Claims of attempts under a lease, and orders that lead to no attempt any more.

use domain::delivery::{ATTEMPT_LEASE, DeliveryOrder, DeliveryStatus};
use domain::id::EventId;
use domain::time::Timestamp;

use super::{Deliveries, DeliveryItem, ENTITY, body_context, new_owner};
use crate::db::{StoreError, Written, from_item, n, s};

/// The result of claiming an attempt.
#[derive(Debug)]
pub enum AttemptClaim {
    Taken(Box<ClaimedAttempt>),
    /// Another function holds the lease of the attempt.
    Held,
    Spent(SpentOrder),
}

/// An order that leads to no attempt any more, and the step that may be missing. A function may have died right after
/// it recorded the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpentOrder {
    /// The attempt has been made. The next attempt's order may not have been sent.
    Next(Box<DeliveryOrder>),
    /// The receiver took the event at that time. The success may not have been recorded in the endpoint's health.
    Delivered(Timestamp),
    /// No step is missing: the delivery or the retry chain has ended, or another order has overtaken this one.
    Nothing,
}

/// An attempt under our lease.
pub struct ClaimedAttempt {
    pub order: DeliveryOrder,
    pub event_id: EventId,
    pub event_type: String,
    /// The time of the delivery's creation.
    pub made_at: Timestamp,
    pub body: Vec<u8>,
    pub(super) owner: String,
}
domain::discreet! { ClaimedAttempt }

impl Deliveries {
    /// Claims an order's attempt for [`ATTEMPT_LEASE`].
    pub async fn claim(&self, order: &DeliveryOrder, now: Timestamp) -> Result<AttemptClaim, StoreError> {
        let owner = new_owner();
        let update = self
            .update_of_next(order, now)
            .when("attribute_not_exists(lease_until) OR lease_until <= :now", [(":now", n(now.ms()))])
            .set("lease_owner", s(&owner))
            .set("lease_until", n((now + ATTEMPT_LEASE).ms()))
            .returning_item();
        let item = match update.update_now().await? {
            Written::Refused(None) => return Ok(AttemptClaim::Spent(SpentOrder::Nothing)),
            Written::Done(item) | Written::Refused(Some(item)) => item,
        };
        let record: DeliveryItem = from_item(ENTITY, item)?;
        if record.lease_owner.as_ref() == Some(&owner) {
            return self.claimed(order, record, owner);
        }
        Ok(spent(order, &record, now)?.map_or(AttemptClaim::Held, AttemptClaim::Spent))
    }

    fn claimed(&self, order: &DeliveryOrder, record: DeliveryItem, owner: String) -> Result<AttemptClaim, StoreError> {
        if record.sealed.is_empty() {
            // The client was erased during an attempt that never ended. The erasure's next pass ends the delivery.
            return Ok(AttemptClaim::Spent(SpentOrder::Nothing));
        }
        let context = body_context(&order.endpoint_id, &order.delivery_id);
        let body = self.vault.unseal(ENTITY, &context, &record.sealed)?;
        let (event_id, event_type, made_at) = (record.event_id, record.event_type, record.made_at);
        Ok(AttemptClaim::Taken(Box::new(ClaimedAttempt {
            order: order.clone(),
            event_id,
            event_type,
            made_at,
            body,
            owner,
        })))
    }
}

/// The reason why an order no longer counts; `None` if its attempt is the next one.
pub(super) fn spent(
    order: &DeliveryOrder,
    record: &DeliveryItem,
    now: Timestamp,
) -> Result<Option<SpentOrder>, StoreError> {
    if record.expires_at <= now.unix_s() {
        return Ok(Some(SpentOrder::Nothing));
    }
    if let (DeliveryStatus::Delivered, Some(line)) = (record.status, record.attempts.last()) {
        return Ok(Some(SpentOrder::Delivered(line.ended_at())));
    }
    if record.status != DeliveryStatus::Pending || record.chain != order.chain {
        return Ok(Some(SpentOrder::Nothing));
    }
    match record.next_attempt.cmp(&order.attempt) {
        std::cmp::Ordering::Equal => Ok(None),
        std::cmp::Ordering::Greater => {
            // A recorded hop or lease shows that the order has been sent.
            let has_come = record.hop.is_some() || record.lease_owner.is_some();
            let due_at = record.next_attempt_at.filter(|_| !has_come);
            let next = due_at.map(|at| SpentOrder::Next(Box::new(order.for_attempt(record.next_attempt, at))));
            Ok(Some(next.unwrap_or(SpentOrder::Nothing)))
        }
        std::cmp::Ordering::Less => Err(StoreError::corrupt(ENTITY, "an order is ahead of its delivery")),
    }
}
