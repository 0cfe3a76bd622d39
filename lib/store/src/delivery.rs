//! Table `deliveries`: one item per event and endpoint, which is also its line in the delivery log. Kept for 30 days,
//! and up to 3 more for a retry chain that began late.
//! pk `ENDPOINT#<endpoint_id>`, sk `DELIVERY#<delivery_id>`: ids begin with the time of creation, which orders a
//! partition. `sealed`: the body, rendered once. `chain`, `next_attempt`: the order that counts. `sent_to`, `sent_s`,
//! `signature`: the request of the latest attempt. GSI `pending`: `pending_of` (the pk), `sk`. GSI `failed`:
//! `failed_of`, `sk`.
//! sk `EVENT#<event_id>`: the mark of an event that may be emitted again.
//! 1. `create` PutItem, unless it exists, or a transaction with the mark. `created` GetItem.
//! 2. `read_for` BatchGetItem with the endpoint. `record` PutItem on the version read: module `attempt`.
//! 3. `page` Query of each endpoint, or of a status with BatchGetItem, newest first: module `log`, which finds an
//!    event's deliveries by module `event_times`, and those of deleted endpoints by module `deleted`.
//!    `read` GetItem: module `detail`.
//! 4. `end_pending` Query of `pending`, then an UpdateItem each; `end` UpdateItem: module `end`.
//! 5. `find` GetItem. `restart` Transaction with the order: module `restart`.
//! 6. `erase` Query of GSI `by_subject` (`subject_ref`, `sk`) or `by_merged_contact` (`merged_contact_ref`, `sk`), then
//!    a PutItem each: module `erase`. Operators read by the same indexes.
//! 7. `count` UpdateItem, `activity` Query of the days' counts: module `activity`.
//!    `last_day` the same, and a count of `pending`: module `counts`.
//! 8. `resume_page` Query of `pending`, BatchGetItem. `recover_page` the same of `failed`, then a transaction each.
//!    `count_recoverable` Query of `failed`: module `job`.
//! 9. `overdue_page` Scan of `pending`. `next_orders` BatchGetItem. `mark_reordered` UpdateItem: module `overdue`.

mod activity;
mod attempt;
mod counts;
mod deleted;
mod detail;
mod end;
mod erase;
mod event_times;
mod job;
mod log;
mod merge;
mod operated;
mod overdue;
mod record;
mod restart;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::delivery::{DELIVERY_RETENTION, DeliveryStatus};
use domain::id::{CoachId, DeliveryId, EndpointId, EventId};
use domain::subject::Subject;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};

use crate::contact_ref::ContactRef;
use crate::db::{self, Db, Item, ItemWrite, Part, StoreError, Table, Transacted, Written, from_item, n, s, to_item};
use crate::vault::Vault;

pub use attempt::{Delivery, MadeAttempt};
pub(crate) use deleted::PREFIX as DELETED;
pub use erase::{ErasureProgress, SubjectIndex};
pub use job::JobPage;
pub use log::{DeliveryLogPage, DeliveryLogRequest};
pub use operated::{OperatedAttempt, OperatedDelivery};
pub use overdue::{OverdueDelivery, OverduePage, OverdueStart};
pub(crate) use record::{endpoint_of, open_member, partition as partition_of};
pub use restart::{ResendLookup, ResendableDelivery};

use record::{DeliveryItem, ENTITY, StatusKeys, StoredAttempt, body_context, index_of, key, partition, sort_key};

/// A delivery to be stored.
#[derive(Clone)]
pub struct NewDelivery<'a> {
    pub coach_id: &'a CoachId,
    pub endpoint_id: &'a EndpointId,
    pub id: DeliveryId,
    pub event_id: &'a EventId,
    pub event_type: &'a str,
    /// The subject of the event.
    pub subject: Subject,
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

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Stores a delivery. Its first attempt is due at once.
    pub async fn create(&self, delivery: NewDelivery<'_>, now: Timestamp) -> Result<DeliveryCreation, StoreError> {
        self.put_event_time(&delivery, now).await?;
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

    fn record_of(&self, delivery: NewDelivery<'_>, now: Timestamp) -> DeliveryItem {
        let NewDelivery { coach_id, endpoint_id, id, event_id, event_type, subject, made_at, body, not_sent, .. } =
            delivery;
        let status = if not_sent.is_none() { DeliveryStatus::Pending } else { DeliveryStatus::Failed };
        DeliveryItem {
            pk: partition(endpoint_id),
            sk: sort_key(&id),
            version: 1,
            coach_id: coach_id.clone(),
            event_id: event_id.clone(),
            event_type: event_type.to_owned(),
            subject_ref: subject_ref(coach_id, &subject),
            merged_contact_ref: subject.merged_contact_id.map(|merged| ContactRef::new(coach_id, merged).to_string()),
            subject,
            made_at,
            status,
            next_attempt_at: not_sent.is_none().then_some(now),
            attempts: not_sent.map(|reason| StoredAttempt::unsent(now, &reason)).into_iter().collect(),
            chain: 1,
            next_attempt: 1,
            waits_since: now.ms(),
            indexed: StatusKeys::of(status, &partition(endpoint_id)),
            reordered_at: None,
            recovered_at: None,
            test: false,
            erased: false,
            sent_to: None,
            sent_s: None,
            signature: None,
            sealed: self.vault.seal(&body_context(endpoint_id, &id), &body),
            expires_at: (now + DELIVERY_RETENTION).unix_s(),
            id,
        }
    }

    /// Reads how far the creation of a delivery has come. A delivery that was never stored is `Known`: it has no order.
    pub async fn created(&self, endpoint: &EndpointId, id: &DeliveryId) -> Result<DeliveryCreation, StoreError> {
        existing(self.table.item(key(endpoint, id)).await?)
    }

    /// A query of an endpoint's deliveries with sort keys in these bounds, in the index of a status that has one.
    fn deliveries_of(
        &self,
        endpoint: &EndpointId,
        status: Option<DeliveryStatus>,
        [from, to]: [String; 2],
    ) -> QueryFluentBuilder {
        let (index, pk) = status.and_then(index_of).map_or((None, "pk"), |(index, pk)| (Some(index.to_owned()), pk));
        let values = [(":pk", s(partition(endpoint))), (":from", s(from)), (":to", s(to))];
        self.table.query(&format!("{pk} = :pk AND sk BETWEEN :from AND :to"), values).set_index_name(index)
    }

    fn update(&self, endpoint: &EndpointId, id: &DeliveryId) -> ItemWrite<'_> {
        self.table.write(key(endpoint, id))
    }

    /// A put of a changed record, if it is as it was read.
    fn replace(&self, changed: DeliveryItem) -> ItemWrite<'_> {
        let found = changed.version;
        self.table.write(to_item(&DeliveryItem { version: found + 1, ..changed })).when_version(Some(found))
    }
}

/// The person whose erasure removes the content of a delivery: the contact, or else the client.
fn subject_ref(coach: &CoachId, subject: &Subject) -> Option<String> {
    let contact = subject.contact_id.map(|contact| ContactRef::new(coach, contact).to_string());
    contact.or_else(|| subject.client_id.as_ref().map(|client| client.as_str().to_owned()))
}

/// The result of creating a delivery that was refused.
fn existing(delivery: Option<Item>) -> Result<DeliveryCreation, StoreError> {
    let Some(item) = delivery else { return Ok(DeliveryCreation::Known) };
    let stored: DeliveryItem = from_item(ENTITY, item)?;
    let waiting = stored.status == DeliveryStatus::Pending && stored.attempts.is_empty();
    Ok(if waiting { DeliveryCreation::Waiting } else { DeliveryCreation::Known })
}
