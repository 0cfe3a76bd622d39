//! Table `outbox`: what a committed write has still to tell the world. One item per event or change, written in the
//! transaction of its cause, deleted when it has been sent. Everything that names a person is sealed.
//!
//! pk `<event id or change id>`. GSI `unsent`: `unsent_shard`, `send_after` (ms). The stream carries new images to the
//! relay.
//!
//! 1. `put`, `put_events` Parts of the cause's transaction.
//! 2. `from_image` The relay reads an entry from the stream's record.
//! 3. `has_unsent` Scan of `unsent`, which is empty as a rule, up to the first entry.
//! 4. `unsent`     Query `unsent` of one shard: what the stream should have carried by now and has not.
//! 5. `get`        GetItem, for an entry that `unsent` named.
//! 6. `release`    Part of a transaction: an entry that was held back is to be sent, with its final content.
//! 7. `delete`     DeleteItem, once sent.
//! 8. `remove`     Part of a client's erasure.

use std::borrow::Cow;

use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, Update};
use domain::change::Change;
use domain::delivery::DeliveryOrder;
use domain::event::Event;
use domain::id::CoachId;
use domain::notice::EndpointNotice;
use domain::subject::Subject;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{Ask, Db, Item, Part, StoreError, Write, b, failed, from_item, n, s, to_item, write};
use crate::group::Bounds;
use crate::unreadable::unreadable;
use crate::vault::Vault;

/// Partitions of the `unsent` index.
pub const SHARDS: u8 = 4;

/// Events of one cause that have an entry each: nearly always all.
const SINGLE_EVENTS: usize = 40;
/// Events beyond those that one entry holds, and bytes of them: an item has 400 KB. Most events have less than one, but names may be long and
/// steps many.
const TOGETHER: Bounds = Bounds { items: 40, bytes: 256 * 1024 };

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// To the coach's receivers.
    Event(Box<Event>),
    /// The same, of one cause and therefore of one coach: more of them than a transaction has room for.
    Events { events: Vec<Event> },
    /// To the bus.
    #[serde(rename = "fact")]
    Change(Box<Change>),
    /// To the delivery queue: a delivery that a coach asked for.
    Order(Box<DeliveryOrder>),
    /// To the coach, by mail.
    Notice(Box<EndpointNotice>),
}

impl Content {
    /// The entry's key.
    pub fn id(&self) -> Cow<'_, str> {
        match self {
            Self::Event(event) => event.id.as_str().into(),
            Self::Events { events } => format!("from_{}", first(events).id.as_str()).into(),
            Self::Change(change) => change.id.as_str().into(),
            Self::Notice(notice) => notice.id().into(),
            Self::Order(order) => format!("order_{}_{}", order.delivery_id, order.chain).into(),
        }
    }

    /// The person that it is about. Events of one cause are about one.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Event(event) => event.subject.clone(),
            Self::Events { events } => first(events).subject.clone(),
            Self::Change(change) => change.subject(),
            Self::Order(_) | Self::Notice(_) => Subject::default(),
        }
    }

    /// The coach whom it is about.
    pub fn coach_id(&self) -> &CoachId {
        match self {
            Self::Event(event) => &event.coach_id,
            Self::Events { events } => &first(events).coach_id,
            Self::Change(change) => &change.coach_id,
            Self::Notice(notice) => &notice.coach_id,
            Self::Order(order) => &order.coach_id,
        }
    }
}

/// An entry of the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub content: Content,
    /// Not to be sent before.
    pub send_after: Timestamp,
}

/// Where a page of unsent entries ended.
#[derive(Debug, Clone)]
pub struct UnsentStart(Item);

#[derive(Serialize, Deserialize)]
struct Record {
    pk: String,
    unsent_shard: String,
    send_after: i64,
    #[serde(with = "crate::binary")]
    sealed: Vec<u8>,
}

/// The outbox table.
#[derive(Clone)]
pub struct Outbox {
    db: Db,
    table: String,
    vault: Vault,
}

impl Outbox {
    /// The table that `OUTBOX_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("OUTBOX_TABLE")?.to_owned(), vault: vault.clone() })
    }

    /// Writes an entry. The id derives from the cause, so that writing it again changes nothing.
    pub(crate) fn put(&self, content: &Content, send_after: Timestamp) -> Write {
        let record = Record {
            pk: content.id().into_owned(),
            unsent_shard: shard_of(&content.id()),
            send_after: send_after.ms(),
            sealed: self.vault.seal_json(&context(&content.id()), content),
        };
        let put = Put::builder().table_name(&self.table).set_item(Some(to_item(&record)));
        Part::Outbox.put(put)
    }

    /// Writes these events, of one cause and in an order that is always the same, to be sent at once: an entry for each, and for what goes
    /// beyond [`SINGLE_EVENTS`] one for some of them together.
    pub(crate) fn put_events(
        &self,
        events: impl IntoIterator<Item = Event>,
        now: Timestamp,
    ) -> impl Iterator<Item = Write> {
        contents(events).map(move |content| self.put(&content, now))
    }

    /// Lets an entry go that was held back. One that has been held for its time may be on its way as it was, or sent: it stays so, and the
    /// caller learns it from the transaction's failed condition.
    pub(crate) fn release(&self, content: &Content, now: Timestamp) -> Write {
        let update = Update::builder()
            .table_name(&self.table)
            .key("pk", s(content.id()))
            .update_expression("SET sealed = :sealed, send_after = :now")
            .condition_expression("send_after > :now")
            .expression_attribute_values(":sealed", b(self.vault.seal_json(&context(&content.id()), content)))
            .expression_attribute_values(":now", n(now.ms()));
        Part::Outbox.update(update)
    }

    /// Takes an entry back, sent or not: whom it names is erased.
    pub(crate) fn remove(&self, id: &str) -> Write {
        Part::Outbox.delete(Delete::builder().table_name(&self.table).key("pk", s(id)))
    }

    /// The entry that a stream record's new image holds.
    pub fn from_image(&self, image: serde_dynamo::Item) -> Result<Entry, StoreError> {
        let record = serde_dynamo::from_item(image).map_err(|error| unreadable("outbox entry", error))?;
        self.entry(record)
    }

    /// Ids of one shard's entries that were to be sent before `before`, each with when it was to be, oldest first, at most `limit`, from
    /// where an earlier page ended.
    pub async fn unsent(
        &self,
        shard: u8,
        before: Timestamp,
        limit: i32,
        start: Option<UnsentStart>,
    ) -> Result<(Vec<(String, Timestamp)>, Option<UnsentStart>), StoreError> {
        let query = self.db.client().query().table_name(&self.table).index_name("unsent");
        let found = query
            .key_condition_expression("unsent_shard = :shard AND send_after < :before")
            .expression_attribute_values(":shard", s(shard.to_string()))
            .expression_attribute_values(":before", n(before.ms()))
            .limit(limit)
            .set_exclusive_start_key(start.map(|start| start.0))
            .ask()
            .await
            .map_err(|error| failed("Query", error))?;
        let ids = found.items.unwrap_or_default().into_iter().filter_map(|mut item| {
            let send_after = item.get("send_after")?.as_n().ok()?.parse().ok()?;
            match item.remove("pk") {
                Some(AttributeValue::S(id)) => Some((id, Timestamp::from_ms(send_after))),
                _ => None,
            }
        });
        Ok((ids.collect(), found.last_evaluated_key.map(UnsentStart)))
    }

    /// Whether there is anything unsent, as far as the index knows: one request, where shards take one each.
    pub async fn has_unsent(&self) -> Result<bool, StoreError> {
        let mut start = None;
        loop {
            let scan = self.db.client().scan().table_name(&self.table).index_name("unsent").limit(1);
            let scan = scan.set_exclusive_start_key(start);
            let page = scan.ask().await.map_err(|error| failed("Scan", error))?;
            start = page.last_evaluated_key;
            if page.items.is_some_and(|items| !items.is_empty()) {
                return Ok(true);
            }
            if start.is_none() {
                return Ok(false);
            }
        }
    }

    /// The entry with that id, unless it has been sent.
    pub async fn get(&self, id: &str) -> Result<Option<Entry>, StoreError> {
        let item = self.db.get(&self.table, Item::from([("pk".to_owned(), s(id))])).await?;
        item.map(|item| self.entry(from_item("outbox entry", item)?)).transpose()
    }

    /// Takes an entry off the list: it has been sent.
    pub async fn delete(&self, content: &Content) -> Result<(), StoreError> {
        let written = write("DeleteItem", || {
            let delete = self.db.client().delete_item().table_name(&self.table).key("pk", s(content.id()));
            delete.ask()
        });
        written.await?;
        Ok(())
    }

    fn entry(&self, record: Record) -> Result<Entry, StoreError> {
        let content = self.vault.unseal_json("outbox entry", &context(&record.pk), &record.sealed)?;
        Ok(Entry { content, send_after: Timestamp::from_ms(record.send_after) })
    }
}

fn contents(events: impl IntoIterator<Item = Event>) -> impl Iterator<Item = Content> {
    let mut single: Vec<Event> = events.into_iter().collect();
    let more = single.split_off(single.len().min(SINGLE_EVENTS));
    let together: Vec<Content> =
        TOGETHER.groups(&more, size_of).iter().map(|events| Content::Events { events: events.to_vec() }).collect();
    single.into_iter().map(|event| Content::Event(Box::new(event))).chain(together)
}

/// The bytes of an event in its entry.
fn size_of(event: &Event) -> usize {
    serde_json::to_vec(event).expect("an event converts to JSON").len()
}

fn first(events: &[Event]) -> &Event {
    events.first().expect("an entry of events holds some")
}

fn context(id: &str) -> String {
    format!("outbox/{id}")
}

fn shard_of(id: &str) -> String {
    let sum: u32 = id.bytes().map(u32::from).sum();
    (sum % u32::from(SHARDS)).to_string()
}
