//! Taking attempts on: those of a batch of orders by one request, each on its own terms.

use aws_sdk_dynamodb::types::ReturnValue;
use domain::delivery::{ATTEMPT_LEASE, DeliveryOrder, DeliveryStatus};
use domain::id::EventId;
use domain::time::Timestamp;

use super::{Deliveries, ENTITY, Record, body_context, new_owner, partition, sort_key};
use crate::db::{Ask, Item, StoreError, Written, from_item, n, s, write};
use crate::statement::{Answer, Statement, Tried};

/// What came of taking on an attempt.
#[derive(Debug)]
pub enum Claim {
    Taken(Box<Taken>),
    /// The attempt has been made. The next attempt's order, unless it is known to have been sent.
    Stale(Option<Box<DeliveryOrder>>),
    /// Somebody is at it.
    Held,
    /// The receiver has taken the event, at that time.
    Delivered(Timestamp),
    /// The delivery, or the order's chain, has ended otherwise.
    Ended,
    /// There is no such delivery, or no longer.
    Unknown,
}

/// An attempt that is ours to make.
pub struct Taken {
    pub order: DeliveryOrder,
    pub event_id: EventId,
    pub event_type: String,
    /// When the event was made. Unknown of deliveries that were stored before this was kept.
    pub made_at: Option<Timestamp>,
    pub body: Vec<u8>,
    pub(super) owner: String,
}
domain::discreet! { Taken }

impl Deliveries {
    /// Takes attempts on, each for as long as [`ATTEMPT_LEASE`]; what came of each, in their order.
    pub async fn claim(&self, orders: Vec<DeliveryOrder>, now: Timestamp) -> Vec<Answer<'_, Claim>> {
        let owners: Vec<String> = orders.iter().map(|_| new_owner()).collect();
        let claiming = orders.iter().zip(&owners).map(|(order, owner)| self.claiming(order, owner, now)).collect();
        let tried = self.db.try_all(claiming).await;
        let claims = orders.into_iter().zip(owners).zip(tried).map(|((order, owner), Tried(tried))| match tried {
            Some(Written::Done(Some(item))) => Answer::Here(self.claimed(&order, owner, Written::Done(item), now)),
            Some(Written::Refused(item)) => Answer::Here(self.claimed(&order, owner, Written::Refused(item), now)),
            Some(Written::Done(None)) | None => Answer::awaited(async move {
                let written = self.claim_alone(&order, &owner, now).await?;
                self.claimed(&order, owner, written, now)
            }),
        });
        claims.collect()
    }

    /// The same as [`Self::claim_alone`].
    fn claiming(&self, order: &DeliveryOrder, owner: &str, now: Timestamp) -> Statement {
        Statement::update(
            (&self.table, partition(&order.endpoint_id), sort_key(&order.delivery_id)),
            ("SET lease_owner = ? SET lease_until = ?", vec![s(owner), n((now + ATTEMPT_LEASE).ms())]),
            (
                r#""status" = ? AND chain = ? AND next_attempt = ? AND expires_at > ? AND (lease_until IS MISSING OR lease_until <= ?)"#,
                vec![
                    s(DeliveryStatus::Pending.as_str()),
                    n(order.chain),
                    n(order.attempt),
                    n(now.unix_s()),
                    n(now.ms()),
                ],
            ),
        )
        .returning()
    }

    async fn claim_alone(
        &self,
        order: &DeliveryOrder,
        owner: &str,
        now: Timestamp,
    ) -> Result<Written<Item>, StoreError> {
        let written = write("UpdateItem", || {
            self.update_of_next(order, now, "(attribute_not_exists(lease_until) OR lease_until <= :now)")
                .update_expression("SET lease_owner = :owner, lease_until = :until")
                .expression_attribute_values(":owner", s(owner))
                .expression_attribute_values(":now", n(now.ms()))
                .expression_attribute_values(":until", n((now + ATTEMPT_LEASE).ms()))
                .return_values(ReturnValue::AllNew)
                .ask()
        });
        Ok(match written.await? {
            Written::Done(updated) => Written::Done(updated.attributes.unwrap_or_default()),
            Written::Refused(item) => Written::Refused(item),
        })
    }

    fn claimed(
        &self,
        order: &DeliveryOrder,
        owner: String,
        written: Written<Item>,
        now: Timestamp,
    ) -> Result<Claim, StoreError> {
        match written {
            Written::Done(item) => self.taken(order, from_item(ENTITY, item)?, owner),
            Written::Refused(None) => Ok(Claim::Unknown),
            Written::Refused(Some(item)) => {
                let record: Record = from_item(ENTITY, item)?;
                if record.lease_owner.as_ref() == Some(&owner) {
                    self.taken(order, record, owner)
                } else {
                    refused(order, &record, now)
                }
            }
        }
    }

    fn taken(&self, order: &DeliveryOrder, record: Record, owner: String) -> Result<Claim, StoreError> {
        if record.sealed.is_empty() {
            // The client was erased during an attempt that never ended. The erasure's next pass ends the delivery.
            return Ok(Claim::Ended);
        }
        let context = body_context(&order.endpoint_id, &order.delivery_id);
        let body = self.vault.unseal(ENTITY, &context, &record.sealed)?;
        let (event_id, event_type, made_at) = (record.webhook_id, record.event_type, record.made_at);
        Ok(Claim::Taken(Box::new(Taken { order: order.clone(), event_id, event_type, made_at, body, owner })))
    }
}

/// Why an attempt could not be taken on.
pub(super) fn refused(order: &DeliveryOrder, record: &Record, now: Timestamp) -> Result<Claim, StoreError> {
    if record.expires_at <= now.unix_s() {
        return Ok(Claim::Unknown);
    }
    if let (DeliveryStatus::Delivered, Some(line)) = (record.status, record.attempts.last()) {
        return Ok(Claim::Delivered(line.ended_at()));
    }
    if record.status != DeliveryStatus::Pending || record.chain != order.chain {
        return Ok(Claim::Ended);
    }
    match record.next_attempt.cmp(&order.attempt) {
        std::cmp::Ordering::Equal => Ok(Claim::Held),
        std::cmp::Ordering::Greater => {
            let reached_us = record.hop.is_some() || record.lease_owner.is_some();
            let due_at = record.next_attempt_at.filter(|_| !reached_us);
            Ok(Claim::Stale(due_at.map(|at| Box::new(order.for_attempt(record.next_attempt, at)))))
        }
        std::cmp::Ordering::Less => Err(StoreError::corrupt(ENTITY, "an order is ahead of it")),
    }
}
