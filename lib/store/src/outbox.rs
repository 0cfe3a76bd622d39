//! Table `outbox`: events, changes, orders and mails that a committed write has still to publish. Each entry is written
//! in the transaction of its cause and deleted when it has been sent. The content is sealed.
//! pk `<event id or change id>`. Plain beside the content, so that operators see whom an entry is about: `coach_id`,
//! the ids of the subject and, of a change, `change` with its name.
//! GSI `unsent`: `unsent_shard`, `send_after` (ms). The stream carries new images to the relay. It can skip a record
//! (retention, exhausted retries): `unsent` finds what the stream skipped.
//!
//! 1. `put` Part of the cause's transaction; a unit puts its entries ([`crate::unit`]).
//! 2. `from_image` Parses an entry from the stream's record.
//! 3. `has_unsent` Scan of `unsent`, which is empty as a rule, up to the first entry.
//! 4. `unsent` Query of one shard: entries that the stream should have carried by now. `get` GetItem of one of them.
//! 5. `release` Part of a transaction: an entry that was held back is to be sent, with its final content.
//! 6. `touch` UpdateItem: the stream carries an entry again that waits for its contact.
//! 7. `delete` DeleteItem, after sending. The relay drops entries of erased subjects.
//! 8. `entries` Query of each shard, then BatchGetItem, for operators: the entries about a person.

use std::borrow::Cow;

use chrono::TimeDelta;
use domain::change::Change;
use domain::delivery::{DeliveryJob, DeliveryOrder, JobWork};
use domain::event::Event;
use domain::id::{CoachId, DeliveryId};
use domain::notice::EndpointNotice;
use domain::subject::Subject;
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::db::{
    self, Db, Item, MeteredRequest, Part, StoreError, Table, Write, b, failed, n, number, query_page, s, text, to_item,
};
use crate::group::Bounds;
use crate::shard::{SHARDS, shard_of};
use crate::vault::Vault;

/// Events of one cause that have an entry each. A transaction takes 100 writes, and one check-in may match 300
/// automations. Events beyond the first 40 share entries.
const SINGLE_EVENTS: usize = 40;
/// Time by which an event may be ahead of its storing: writes of a record in one millisecond have times of their own.
const WRITES_AHEAD: TimeDelta = TimeDelta::seconds(1);
/// Further events per entry, and their bytes: an item has 400 KB. Names may be long and steps many.
const GROUP_BOUNDS: Bounds = Bounds { items: 40, bytes: 256 * 1024 };

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// An event for the coach's endpoints.
    Event(Box<Event>),
    /// Several events of one cause, and therefore of one coach: more than a transaction has room for.
    Events { events: Vec<Event> },
    /// A change for the bus.
    Change(Box<Change>),
    /// An order for the delivery queue: a coach asked for the delivery.
    Order(Box<DeliveryOrder>),
    /// A job on the deliveries of an endpoint, for the queue where orders wait.
    Job(Box<DeliveryJob>),
    /// A mail to the coach.
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
            Self::Order(order) => order_id(&order.delivery_id, order.chain).into(),
            Self::Job(job) => match &job.work {
                JobWork::Recover(recovery) => recovery.id.as_str().into(),
                JobWork::Resume => format!("resume_{}", job.endpoint_id).into(),
                JobWork::ResumeDue { closed_at } => format!("resume_{}_{}", job.endpoint_id, closed_at.ms()).into(),
            },
        }
    }

    /// The subject of the entry. Events of one cause have one subject.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Event(event) => event.subject(),
            Self::Events { events } => first(events).subject(),
            Self::Change(change) => change.subject(),
            Self::Order(_) | Self::Job(_) | Self::Notice(_) => Subject::default(),
        }
    }

    /// The content, in which the fact of a fast clock counts as of its storing. So a reader that asks for what happened
    /// since a time gets all that was stored since then.
    fn as_of(&self, stored_at: Timestamp) -> Self {
        let no_later = |event: &Event| {
            let is_fast = event.occurred_at > stored_at + WRITES_AHEAD;
            Event { occurred_at: if is_fast { stored_at } else { event.occurred_at }, ..event.clone() }
        };
        match self {
            Self::Event(event) => Self::Event(Box::new(no_later(event))),
            Self::Events { events } => Self::Events { events: events.iter().map(no_later).collect() },
            Self::Change(_) | Self::Order(_) | Self::Job(_) | Self::Notice(_) => self.clone(),
        }
    }

    /// The name of a change.
    fn change(&self) -> Option<&'static str> {
        match self {
            Self::Change(change) => Some(change.name()),
            Self::Event(_) | Self::Events { .. } | Self::Order(_) | Self::Job(_) | Self::Notice(_) => None,
        }
    }

    /// The coach whose entry it is.
    pub fn coach_id(&self) -> &CoachId {
        match self {
            Self::Event(event) => &event.coach_id,
            Self::Events { events } => &first(events).coach_id,
            Self::Change(change) => &change.coach_id,
            Self::Notice(notice) => &notice.coach_id,
            Self::Order(order) => &order.coach_id,
            Self::Job(job) => &job.coach_id,
        }
    }
}

/// The id of the entry with the first order of a retry chain.
pub(crate) fn order_id(delivery: &DeliveryId, chain: u32) -> String {
    format!("order_{delivery}_{chain}")
}

/// An entry of the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub content: Content,
    /// The relay sends the entry no earlier.
    pub send_after: Timestamp,
}

/// The end of a page of unsent entries.
#[derive(Debug, Clone)]
pub struct UnsentStart(Item);

/// An entry as it is written.
#[derive(Serialize)]
struct OutboxItem<'a> {
    pk: &'a str,
    coach_id: &'a CoachId,
    #[serde(flatten)]
    subject: Subject,
    change: Option<&'static str>,
    unsent_shard: String,
    send_after: i64,
    #[serde(with = "crate::binary")]
    sealed: Vec<u8>,
}

/// The part of an entry that is read.
#[derive(Deserialize)]
struct SealedEntry {
    pk: String,
    send_after: i64,
    #[serde(with = "crate::binary")]
    sealed: Vec<u8>,
}

impl<'a> OutboxItem<'a> {
    fn of(id: &'a str, content: &'a Content, send_after: Timestamp, sealed: Vec<u8>) -> Self {
        Self {
            pk: id,
            coach_id: content.coach_id(),
            subject: content.subject(),
            change: content.change(),
            unsent_shard: shard_of(id),
            send_after: send_after.ms(),
            sealed,
        }
    }
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

    /// Part of a transaction: stores an entry. The id derives from the cause, so writing it again changes nothing.
    pub(crate) fn put(&self, content: &Content, send_after: Timestamp) -> Write {
        let content = &content.as_of(send_after);
        let id = content.id();
        let sealed = self.vault.seal_json(&context(&id), content);
        let item = to_item(&OutboxItem::of(&id, content, send_after, sealed));
        self.table.write(item).put(Part::Outbox)
    }

    /// Part of a transaction: releases a change that was held back. Refused after its `send_after`: the relay may have
    /// sent the change. The plain attributes stay: a change of the same id has the same name, coach and subject.
    pub fn release(&self, change: Change, now: Timestamp) -> Write {
        let content = Content::Change(Box::new(change));
        let sealed = b(self.vault.seal_json(&context(&content.id()), &content));
        let update = self.table.write(db::pk(content.id())).set("sealed", sealed).set("send_after", n(now.ms()));
        update.when("send_after > :send_after", []).update(Part::Outbox)
    }

    /// Parses the entry in a stream record's new image.
    pub fn from_image(&self, image: serde_dynamo::Item) -> Result<Entry, StoreError> {
        let record = serde_dynamo::from_item(image).map_err(|error| StoreError::unreadable("outbox entry", error))?;
        self.entry(record)
    }

    /// Reads the ids and times of one shard's entries that were due before `before`, oldest first.
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

    /// Returns true if the index shows an unsent entry. One Scan answers for all shards. The shards are queried, oldest
    /// first, only if an entry exists.
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

    /// Reads the entry with that id, unless it has been sent.
    pub async fn get(&self, id: &str) -> Result<Option<Entry>, StoreError> {
        self.table.get("outbox entry", db::pk(id)).await?.map(|record| self.entry(record)).transpose()
    }

    /// Has the stream carry an entry again, unless the entry has been sent.
    pub async fn touch(&self, id: &str) -> Result<(), StoreError> {
        let touched = self.table.write(db::pk(id)).count("touches").when("attribute_exists(pk)", []);
        touched.update_now().await?;
        Ok(())
    }

    /// Deletes an entry after it has been sent.
    pub async fn delete(&self, content: &Content) -> Result<(), StoreError> {
        self.table.write(db::pk(content.id())).delete_now().await?;
        Ok(())
    }

    fn entry(&self, record: SealedEntry) -> Result<Entry, StoreError> {
        let content = self.vault.unseal_json("outbox entry", &context(&record.pk), &record.sealed)?;
        Ok(Entry { content, send_after: Timestamp::from_ms(record.send_after) })
    }
}

/// Reads the entries whose plain attributes `is_wanted` selects.
pub(crate) async fn entries(table: &Table, is_wanted: impl Fn(&Item) -> bool) -> Result<Vec<Item>, StoreError> {
    let mut found = Vec::new();
    for shard in 0..SHARDS {
        let mut start = None;
        loop {
            let query = table.query("unsent_shard = :shard", [(":shard", s(shard.to_string()))]).index_name("unsent");
            let page = query_page(query.projection_expression("pk").set_exclusive_start_key(start)).await?;
            found.extend(table.read(page.items).await?.into_iter().filter(&is_wanted));
            start = page.next;
            if start.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

/// Opens the content of an entry.
pub(crate) fn open_member(vault: &Vault, item: &Item, _: &str, sealed: &[u8]) -> Result<Option<Value>, StoreError> {
    vault.unseal_json("outbox entry", &context(text(item, "pk")), sealed).map(Some)
}

/// Entries for the events of one cause, always in the same order. Each of the first [`SINGLE_EVENTS`] has an entry, the
/// others share entries.
pub(crate) fn contents(events: impl IntoIterator<Item = Event>) -> impl Iterator<Item = Content> {
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

#[cfg(test)]
mod tests {
    use domain::contact::{Contact, ContactDraft, KnownContact};
    use domain::email::Email;
    use domain::id::{ClientId, ContactId};

    use super::*;
    use crate::db::from_item;

    #[test]
    fn an_entry_names_its_coach_its_subject_and_its_change_beside_the_sealed_content() {
        let (coach, now) = (CoachId::parse("ada").unwrap(), Timestamp::from_ms(5));
        let id = ContactId::parse("0197a6a0-5c3b-7000-8000-2f1d3c4b5a69").unwrap();
        let draft = ContactDraft { name: "Grace".to_owned(), email: Email::parse("grace@example.com").unwrap() };
        let contact = KnownContact::create(id, &draft, now).contact;
        let contact = Contact { client_id: Some(ClientId::parse("c1").unwrap()), ..contact };
        let content = Content::Change(Box::new(Change::contact_created(&coach, &contact)));
        let item = to_item(&OutboxItem::of("chg_1", &content, now, vec![1]));
        let mut names: Vec<&str> = item.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), "change client_id coach_id contact_id pk sealed send_after unsent_shard");
        assert_eq!([text(&item, "change"), text(&item, "client_id")], ["contact.created", "c1"]);
        let read: SealedEntry = from_item("outbox entry", item).unwrap();
        assert_eq!((read.pk.as_str(), read.sealed), ("chg_1", vec![1]));
    }
}
