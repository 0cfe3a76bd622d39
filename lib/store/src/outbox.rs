//! Table `outbox`: what a committed write has still to publish. One item per event or change, written in the
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

use domain::change::Change;
use domain::delivery::DeliveryOrder;
use domain::event::Event;
use domain::id::CoachId;
use domain::notice::EndpointNotice;
use domain::subject::Subject;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{
    self, Db, Item, MeteredRequest, Part, StoreError, Table, Write, b, failed, n, number, query_page, s, text, to_item,
};
use crate::group::Bounds;
use crate::unreadable::unreadable;
use crate::vault::Vault;

/// Partitions of the `unsent` index.
pub const SHARDS: u8 = 4;

/// Events of one cause that have an entry each: nearly always all.
const SINGLE_EVENTS: usize = 40;
/// Further events that one entry holds, and their bytes: an item has 400 KB. Names may be long and steps many.
const GROUP_BOUNDS: Bounds = Bounds { items: 40, bytes: 256 * 1024 };

/// The content of an entry.
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
struct OutboxItem {
    pk: String,
    unsent_shard: String,
    send_after: i64,
    #[serde(with = "crate::binary")]
    sealed: Vec<u8>,
}

/// The outbox table.
#[derive(Clone)]
pub struct Outbox {
    pub(crate) table: Table,
    vault: Vault,
}

impl Outbox {
    /// The table that `OUTBOX_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "OUTBOX_TABLE")?, vault: vault.clone() })
    }

    /// Writes an entry. The id derives from the cause, so that writing it again changes nothing.
    pub(crate) fn put(&self, content: &Content, send_after: Timestamp) -> Write {
        let record = OutboxItem {
            pk: content.id().into_owned(),
            unsent_shard: shard_of(&content.id()),
            send_after: send_after.ms(),
            sealed: self.vault.seal_json(&context(&content.id()), content),
        };
        self.table.write(to_item(&record)).put(Part::Outbox)
    }

    /// Writes the events of one cause, in an order that is always the same: an entry for each of the first
    /// [`SINGLE_EVENTS`], then entries of several events.
    pub(crate) fn put_events(
        &self,
        events: impl IntoIterator<Item = Event>,
        now: Timestamp,
    ) -> impl Iterator<Item = Write> {
        contents(events).map(move |content| self.put(&content, now))
    }

    /// Releases an entry that was held back. Refused where its time is over: it may be on its way as it was, or sent.
    pub(crate) fn release(&self, content: &Content, now: Timestamp) -> Write {
        let sealed = b(self.vault.seal_json(&context(&content.id()), content));
        let update = self.table.write(db::pk(content.id())).set("sealed", sealed).set("send_after", n(now.ms()));
        update.when("send_after > :send_after", []).update(Part::Outbox)
    }

    /// Takes an entry back, sent or not: whom it names is erased.
    pub(crate) fn remove(&self, id: &str) -> Write {
        self.table.write(db::pk(id)).delete(Part::Outbox)
    }

    /// The entry that a stream record's new image holds.
    pub fn from_image(&self, image: serde_dynamo::Item) -> Result<Entry, StoreError> {
        let record = serde_dynamo::from_item(image).map_err(|error| unreadable("outbox entry", error))?;
        self.entry(record)
    }

    /// Ids of one shard's entries that were to be sent before `before`, with their times, oldest first.
    pub async fn unsent(
        &self,
        shard: u8,
        before: Timestamp,
        limit: i32,
        start: Option<UnsentStart>,
    ) -> Result<(Vec<(String, Timestamp)>, Option<UnsentStart>), StoreError> {
        let values = [(":shard", s(shard.to_string())), (":before", n(before.ms()))];
        let query = self.table.query("unsent_shard = :shard AND send_after < :before", values).index_name("unsent");
        let page = query_page(query.limit(limit).set_exclusive_start_key(start.map(|start| start.0))).await?;
        let ids = page.items.iter().filter_map(|item| {
            let send_after = number(item, "send_after")?;
            Some((text(item, "pk").to_owned(), Timestamp::from_ms(send_after)))
        });
        Ok((ids.collect(), page.next.map(UnsentStart)))
    }

    /// Returns true if there is anything unsent, as far as the index knows: one request, where shards take one each.
    pub async fn has_unsent(&self) -> Result<bool, StoreError> {
        let mut start = None;
        loop {
            let scan = self.table.db.client().scan().table_name(&self.table.name).index_name("unsent").limit(1);
            let scan = scan.set_exclusive_start_key(start);
            let page = scan.send_metered().await.map_err(|error| failed("Scan", error))?;
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
        self.table.get("outbox entry", db::pk(id)).await?.map(|record| self.entry(record)).transpose()
    }

    /// Takes an entry off the list: it has been sent.
    pub async fn delete(&self, content: &Content) -> Result<(), StoreError> {
        self.table.write(db::pk(content.id())).delete_now().await?;
        Ok(())
    }

    fn entry(&self, record: OutboxItem) -> Result<Entry, StoreError> {
        let content = self.vault.unseal_json("outbox entry", &context(&record.pk), &record.sealed)?;
        Ok(Entry { content, send_after: Timestamp::from_ms(record.send_after) })
    }
}

fn contents(events: impl IntoIterator<Item = Event>) -> impl Iterator<Item = Content> {
    let mut single: Vec<Event> = events.into_iter().collect();
    let more = single.split_off(single.len().min(SINGLE_EVENTS));
    let grouped: Vec<Content> =
        GROUP_BOUNDS.groups(&more, size_of).iter().map(|events| Content::Events { events: events.to_vec() }).collect();
    single.into_iter().map(|event| Content::Event(Box::new(event))).chain(grouped)
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
