//! Claims of attempts under a lease.

use domain::delivery::{ATTEMPT_LEASE, DeliveryOrder};
use domain::id::EventId;
use domain::time::Timestamp;

use super::record::{DeliveryItem, ENTITY, SpentOrder, body_context};
use super::{Deliveries, new_owner};
use crate::db::{StoreError, Written, from_item, n, s};

/// The result of claiming an attempt.
#[derive(Debug)]
pub enum AttemptClaim {
    Taken(Box<ClaimedAttempt>),
    /// Another function holds the lease of the attempt.
    Held,
    Spent(SpentOrder),
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
        Ok(record.spent(order, now)?.map_or(AttemptClaim::Held, AttemptClaim::Spent))
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
