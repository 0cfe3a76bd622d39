//! Deliveries that a coach asks for: an event sent again, or a test event. Each begins a new retry chain. One
//! transaction stores the chain, an outbox entry with its first order, and the audit record. So an accepted retry
//! happens even if the function dies after its answer. Orders of older chains no longer count: a delivery has one chain
//! at a time.
//!
//! A chain can begin for as long as deliveries are kept. It prolongs that time only by its own length, so no number of
//! retries keeps a body for good.

use domain::delivery::{CHAIN_RETENTION, DELIVERY_RETENTION, DeliveryOrder, DeliveryState, DeliveryStatus};
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;

use super::record::{DeliveryItem, ENTITY, key};
use super::{Deliveries, NewDelivery};
use crate::db::{Part, StoreError, Write, to_item};
use crate::endpoint_ref::EndpointRef;
use crate::outbox::Content;

/// Attempts of earlier chains that stay in a delivery's log. Each attempt pays write units for the whole item.
const KEPT_ATTEMPTS: usize = 50;

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

    pub fn id(&self) -> &DeliveryId {
        &self.0.id
    }

    /// The type of the event.
    pub fn event_type(&self) -> &str {
        &self.0.event_type
    }
}

/// The cause of another chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartCause {
    ByHand,
    Recovery,
}

impl DeliveryItem {
    /// The end of the time in which a chain can begin, in seconds. Retention that earlier chains added does not extend
    /// it.
    fn restarts_until(&self) -> i64 {
        (self.made_at + DELIVERY_RETENTION).unix_s().min(self.expires_at)
    }

    /// The expiry of the record if a chain begins now, in seconds.
    fn kept_until(&self, now: Timestamp) -> i64 {
        (now + CHAIN_RETENTION).unix_s().max(self.expires_at)
    }
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
            Some(record) if record.erased => ResendLookup::Erased,
            Some(record) => ResendLookup::Ready(Box::new(ResendableDelivery(record))),
        })
    }

    /// The part of a transaction that sends one delivery again at once, whatever its status, and its order. Refused
    /// if the delivery has changed since it was read.
    pub fn restart(
        &self,
        endpoint: &EndpointRef,
        ResendableDelivery(record): &ResendableDelivery,
        now: Timestamp,
    ) -> (Write, Content) {
        self.restart_write(endpoint, record, RestartCause::ByHand, now)
    }

    /// The part of a transaction that stores the delivery of a test event, and its order.
    pub fn create_test(&self, delivery: NewDelivery<'_>, now: Timestamp) -> (Write, Content) {
        let order = DeliveryOrder::first(delivery.coach_id, delivery.endpoint_id, &delivery.id, now).past_breaker();
        let record = DeliveryItem { test: true, ..self.record_of(delivery, now) };
        let put = self.table.write(to_item(&record)).when_absent().put(Part::Delivery(0));
        (put, Content::Order(Box::new(order)))
    }

    /// The write that begins another chain of a delivery, if it is as it was read, and the first order of the chain.
    pub(super) fn restart_write(
        &self,
        EndpointRef { coach, id: endpoint }: &EndpointRef,
        record: &DeliveryItem,
        cause: RestartCause,
        now: Timestamp,
    ) -> (Write, Content) {
        let chain = record.chain + 1;
        let pending =
            DeliveryState { status: DeliveryStatus::Pending, chain, next_attempt: 1, next_attempt_at: Some(now) };
        let restarted = DeliveryItem {
            attempts: record.attempts[record.attempts.len().saturating_sub(KEPT_ATTEMPTS)..].to_vec(),
            waits_since: now.ms(),
            expires_at: record.kept_until(now),
            recovered_at: if cause == RestartCause::Recovery { Some(now.ms()) } else { record.recovered_at },
            ..record.clone()
        };
        let first = DeliveryOrder { chain, ..DeliveryOrder::first(coach, endpoint, &record.id, now) };
        let order = if cause == RestartCause::ByHand { first.past_breaker() } else { first };
        let write = self.replace(restarted.in_state(&pending)).put(Part::Delivery(0));
        (write, Content::Order(Box::new(order)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn a_chain_begins_within_30_days_and_prolongs_them_by_no_more_than_its_own_time() {
        let at = |days: i64| Timestamp::from_ms(days * 86_400_000);
        let made = DeliveryItem { made_at: at(0), expires_at: at(30).unix_s(), ..record() };
        assert_eq!((made.kept_until(at(20)), made.kept_until(at(29))), (at(30).unix_s(), at(32).unix_s()));
        let prolonged = DeliveryItem { expires_at: made.kept_until(at(29)), ..made };
        assert_eq!(prolonged.restarts_until(), at(30).unix_s());
        assert_eq!((prolonged.kept_until(at(1)), prolonged.kept_until(at(30))), (at(32).unix_s(), at(33).unix_s()));
    }
}
