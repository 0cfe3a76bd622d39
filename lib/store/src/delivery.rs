//! Table `deliveries`: one item per event and endpoint, which is also its line in the delivery log. Kept for 30 days,
//! and up to 3 more for a retry chain that began late.
//! pk `ENDPOINT#<endpoint_id>`, sk `DELIVERY#<delivery_id>`: ids begin with the time of creation, which orders a
//! partition. `sealed`: the body, rendered once. `chain`, `next_attempt`: the order that counts. `lease_owner`,
//! `lease_until`: the attempt under way. `hop`: the last recorded hop of the next attempt's order. `sent_to`, `sent_s`,
//! `signature`: the request of the latest attempt. GSI `failed`: `pk`, `failed_at`. GSI `by_coach`: `coach_id`, `sk`.
//! sk `EVENT#<event_id>`: the mark of an event that may be emitted again.
//! Each claim writes a random owner. If a repeat is refused and the item has this owner, the first try succeeded.
//! 1. `create` PutItem, unless it exists, or a transaction with the mark. `put_back` UpdateItem, once per hop.
//! 2. `claim` UpdateItem: takes the lease if the attempt is next. `record` UpdateItem on the lease.
//! 3. `page` Query, newest first, of `by_coach` with BatchGetItem: module `log`. `counts_since` Query: module `counts`.
//!    `read` GetItem: module `detail`. `waiting` Query, for new orders: module `resume`.
//! 4. `end_pending` Query, then an UpdateItem each: module `end`.
//! 5. `find` GetItem. `restart` Transaction with the order. `recover` Query of `failed`, BatchGetItem, transactions for
//!    groups; `count_recoverable` the same without writes: module `restart`.
//! 6. `erase_client` Query of GSI `by_client` (`client_id`, `sk`), then an UpdateItem each: module `erase`.

mod claim;
mod counts;
mod detail;
mod end;
mod erase;
mod log;
mod outcome;
mod record;
mod recovery;
mod restart;
mod resume;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::delivery::{DELIVERY_RETENTION, DeliveryOrder, DeliveryStatus};
use domain::id::{CoachId, DeliveryId, EndpointId, EventId};
use domain::subject::Subject;
use domain::time::Timestamp;
use runtime::{BoxError, Environment, random_bytes};

use crate::db::{self, Db, Item, ItemWrite, Part, StoreError, Table, Transacted, Written, from_item, n, s, to_item};
use crate::vault::Vault;

pub use claim::{AttemptClaim, ClaimedAttempt};
pub use erase::ErasureProgress;
pub use log::{DeliveryLog, DeliveryLogPage, DeliveryLogRequest};
pub use outcome::AttemptRecording;
pub use record::SpentOrder;
pub use recovery::{Failures, RecoverableCount, Recovery, RecoveryEnd};
pub use restart::{ResendLookup, ResendableDelivery};

use record::{DeliveryItem, ENTITY, SORT_PREFIX, StoredAttempt, body_context, key, partition, sort_key};

/// A delivery to be stored.
#[derive(Clone)]
pub struct NewDelivery<'a> {
    pub coach_id: &'a CoachId,
    pub endpoint_id: &'a EndpointId,
    pub id: DeliveryId,
    pub event_id: &'a EventId,
    pub event_type: &'a str,
    /// The subject of the event.
    pub subject: &'a Subject,
    /// The time of the creation, which leads the id.
    pub made_at: Timestamp,
    /// True if the event may come again with another time of creation, and so with another id of its delivery.
    pub may_repeat: bool,
    pub body: Vec<u8>,
    /// The reason why no attempt is made. The coach can send the delivery again by hand.
    pub not_sent: Option<String>,
}

/// The result of storing a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryCreation {
    New,
    /// The delivery existed, and its first attempt has not been made: its order may never have been sent.
    Waiting,
    /// The delivery existed, and is under way or has ended; or the event has come before.
    Known,
}

/// The result of recording that an order goes back to the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutBackOutcome {
    /// No other copy of the order was recorded.
    Recorded,
    /// Another copy of the order was recorded. It may never have been sent on.
    RecordedBefore,
    Spent(SpentOrder),
}

/// The deliveries table.
#[derive(Clone)]
pub struct Deliveries {
    table: Table,
    vault: Vault,
}

impl Deliveries {
    /// The table that `DELIVERIES_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "DELIVERIES_TABLE")?, vault: vault.clone() })
    }

    /// Stores a delivery. Its first attempt is due at once.
    pub async fn create(&self, delivery: NewDelivery<'_>, now: Timestamp) -> Result<DeliveryCreation, StoreError> {
        if delivery.may_repeat {
            return self.create_with_mark(delivery, now).await;
        }
        let item = to_item(&self.record_of(delivery, now));
        match self.table.write(item).when_absent().put_now().await? {
            Written::Done(_) => Ok(DeliveryCreation::New),
            Written::Refused(item) => existing(item),
        }
    }

    /// Stores a delivery with the mark of its event, unless the event has come before.
    async fn create_with_mark(
        &self,
        delivery: NewDelivery<'_>,
        now: Timestamp,
    ) -> Result<DeliveryCreation, StoreError> {
        let mut mark = db::key(partition(delivery.endpoint_id), format!("EVENT#{}", delivery.event_id));
        mark.insert("expires_at".to_owned(), n((now + DELIVERY_RETENTION).unix_s()));
        let writes = [
            self.table.write(to_item(&self.record_of(delivery, now))).when_absent().put(Part::Delivery(0)),
            self.table.write(mark).when_absent().put(Part::EmittedMark),
        ];
        match self.table.db.transact(&writes).await? {
            Transacted::Done => Ok(DeliveryCreation::New),
            Transacted::Refused(refused) => existing(refused.item(Part::Delivery(0)).cloned()),
        }
    }

    /// Records that an order arrived before its attempt may be made, and goes back to the queue.
    pub async fn put_back(&self, order: &DeliveryOrder, now: Timestamp) -> Result<PutBackOutcome, StoreError> {
        let owner = new_owner();
        let update = self.update_of_next(order, now).set("hop", n(order.hop)).set("hop_owner", s(&owner));
        let record: DeliveryItem = match update.when("attribute_not_exists(hop) OR hop < :hop", []).update_now().await?
        {
            Written::Done(_) => return Ok(PutBackOutcome::Recorded),
            Written::Refused(None) => return Ok(PutBackOutcome::Spent(SpentOrder::Nothing)),
            Written::Refused(Some(item)) => from_item(ENTITY, item)?,
        };
        Ok(match record.spent(order, now).unwrap_or(Some(SpentOrder::Nothing)) {
            Some(spent) => PutBackOutcome::Spent(spent),
            None if record.hop_owner.as_ref() == Some(&owner) => PutBackOutcome::Recorded,
            None if record.hop == Some(order.hop) => PutBackOutcome::RecordedBefore,
            // Another copy is more hops ahead.
            None => PutBackOutcome::Spent(SpentOrder::Nothing),
        })
    }

    fn record_of(&self, delivery: NewDelivery<'_>, now: Timestamp) -> DeliveryItem {
        let NewDelivery { coach_id, endpoint_id, id, event_id, event_type, subject, made_at, body, not_sent, .. } =
            delivery;
        let is_sent = not_sent.is_none();
        DeliveryItem {
            pk: partition(endpoint_id),
            sk: sort_key(&id),
            coach_id: coach_id.clone(),
            event_id: event_id.clone(),
            event_type: event_type.to_owned(),
            subject: subject.clone(),
            made_at,
            status: if is_sent { DeliveryStatus::Pending } else { DeliveryStatus::Failed },
            attempts: not_sent.map(|reason| StoredAttempt::unsent(now, &reason)).into_iter().collect(),
            chain: 1,
            next_attempt: 1,
            next_attempt_at: is_sent.then_some(now),
            failed_at: (!is_sent).then(|| now.ms()),
            recovered_at: None,
            test: false,
            hop: None,
            hop_owner: None,
            lease_owner: None,
            lease_until: None,
            recorded_by: None,
            sent_to: None,
            sent_s: None,
            signature: None,
            sealed: self.vault.seal(&body_context(endpoint_id, &id), &body),
            expires_at: (now + DELIVERY_RETENTION).unix_s(),
            id,
        }
    }

    fn update(&self, endpoint: &EndpointId, id: &DeliveryId) -> ItemWrite<'_> {
        self.table.write(key(endpoint, id))
    }

    /// An update on condition that the delivery is pending and that this attempt is its next one.
    fn update_before(&self, next: &NextAttempt<'_>) -> ItemWrite<'_> {
        let values = [
            (":pending", s(DeliveryStatus::Pending.as_str())),
            (":chain", n(next.chain)),
            (":attempt", n(next.attempt)),
        ];
        let update = self.update(next.endpoint, next.delivery);
        update.when("#status = :pending AND chain = :chain AND next_attempt = :attempt", values)
    }

    /// An update on condition that the delivery is pending, has not expired, and waits for the order's attempt.
    fn update_of_next(&self, order: &DeliveryOrder, now: Timestamp) -> ItemWrite<'_> {
        self.update_before(&order.into()).when("expires_at > :now_s", [(":now_s", n(now.unix_s()))])
    }

    /// A query of an endpoint's deliveries. Its expressions may name `#status`.
    fn query(&self, endpoint: &EndpointId) -> QueryFluentBuilder {
        let values = [(":pk", s(partition(endpoint))), (":sk", s(SORT_PREFIX))];
        let query = self.table.query("pk = :pk AND begins_with(sk, :sk)", values);
        query.expression_attribute_names("#status", "status")
    }
}

/// The result of creating a delivery that was refused.
fn existing(delivery: Option<Item>) -> Result<DeliveryCreation, StoreError> {
    let Some(item) = delivery else { return Ok(DeliveryCreation::Known) };
    let stored: DeliveryItem = from_item(ENTITY, item)?;
    let waiting = stored.status == DeliveryStatus::Pending && stored.attempts.is_empty();
    Ok(if waiting { DeliveryCreation::Waiting } else { DeliveryCreation::Known })
}

/// The attempt that a delivery waits for.
struct NextAttempt<'a> {
    endpoint: &'a EndpointId,
    delivery: &'a DeliveryId,
    chain: u32,
    attempt: u32,
}

impl<'a> From<&'a DeliveryOrder> for NextAttempt<'a> {
    fn from(order: &'a DeliveryOrder) -> Self {
        let DeliveryOrder { endpoint_id: endpoint, delivery_id: delivery, chain, attempt, .. } = order;
        Self { endpoint, delivery, chain: *chain, attempt: *attempt }
    }
}

fn new_owner() -> String {
    hex::encode(random_bytes::<8>())
}

#[cfg(test)]
mod tests;
