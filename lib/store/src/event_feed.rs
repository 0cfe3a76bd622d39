//! Table `events`: the event feed of each coach. pk `COACH#<coach_id>`, sk `EVENT#<time>#<number>`: an event, sealed,
//! and the ids of its subject. LSI `by_type`: `type_position`, `<type>#<time>#<number>`. sk `START`: when the feed
//! began. sk `MARK#<event_id>`: an event that may be emitted twice. All but `START` expire.
//!
//! **Positions.** The relay stores an event at the position that follows from the last item, on condition that the
//! position is free. So an item is stored after all items before it, and no event ever appears before an event that a
//! reader has passed, whatever the order in which transactions commit and relays work. Of two relays at a position one
//! is refused, is shown the item of the other, and tries the next position.
//!
//! **Once.** A relay that died may have stored the event. So a relay reads the items that were stored since the event
//! was written, and each item that takes its position: it sees every item up to the position that it takes. The time of
//! an item is never before that of the item before, nor before its event happened or was written, whatever a clock
//! says. An event that may be emitted twice is stored together with its mark.
//!
//! **Expiry.** Items live for twice the time for which the feed shows them. A relay keeps the last item longer before
//! it builds on an item that might expire. If all items are old, the feed begins again, at the time in `START`, which
//! one relay sets. That time is later than all positions before.
//!
//! 1. `append` Query, newest first, up to the time of the event. PutItem; the rare kind with a mark in a transaction.
//!    GetItem and PutItem of `START` for the first event, UpdateItem or DeleteItem of an old item.
//! 2. `scan` Query in either order. The first page of the ascending order also queries the item before. If the nearest
//!    items do not fill the page, Query of `by_type` for each type of the reader; in ascending order after a Query of
//!    the last item, up to which the page can go. The index costs an event a write unit, and spares the readers of a
//!    rare type most of the feed. A filter would not: what it drops is read nevertheless.
//! 3. `erase` Query of a coach's items, UpdateItem of those that name a person: module `erase`. Operators read by the
//!    same query.

mod append;
mod erase;

use domain::event::{Event, EventType};
use domain::event_feed::{FeedChoice, FeedPosition, FeedReader, Further, Scan, Stored};
use domain::id::CoachId;
use domain::list::Order;
use domain::subject::Subject;
use domain::time::Timestamp;
use futures::future::{try_join, try_join_all};
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::db::{Db, Item, StoreError, Table, from_item, query_page, query_up_to, s, text};
use crate::vault::Vault;
use crate::workspace::partition;

pub use erase::MAX_ERASED_CONTACTS;
pub(crate) use erase::query_naming;

const ENTITY: &str = "event";
const PREFIX: &str = "EVENT#";
/// The end of the range of sort keys with the prefix.
const PREFIX_END: &str = "EVENT#~";

/// Items that are read first for a reader of some types. Mostly they are all that is new.
const NEAREST_ITEMS: usize = 40;

/// The event feed.
#[derive(Clone)]
pub struct EventFeed {
    table: Table,
    vault: Vault,
}

/// An item of the feed.
#[derive(Clone, Serialize, Deserialize)]
struct FeedItem {
    pk: String,
    sk: String,
    event_id: String,
    /// Milliseconds.
    stored_at: i64,
    #[serde(flatten)]
    subject: Subject,
    /// The type and the position. Absent after the erasure of the subject, like the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    type_position: Option<String>,
    #[serde(default, with = "crate::binary", skip_serializing_if = "Vec::is_empty")]
    sealed: Vec<u8>,
    expires_at: i64,
}

impl EventFeed {
    /// The table that `EVENTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "EVENTS_TABLE")?, vault: vault.clone() })
    }

    /// Reads what a page needs: the nearest items of the feed, then further ones of the reader's types.
    pub async fn scan(&self, coach: &CoachId, reader: &FeedReader) -> Result<Scan, StoreError> {
        let nearest = self.nearest(coach, reader).await?;
        let needs_more = matches!(reader.choose(&nearest), FeedChoice::ReadOn);
        let Some(passed) = nearest.items.last().map(|item| item.position).filter(|_| needs_more) else {
            return Ok(nearest);
        };
        let further = Some(self.further(coach, reader, passed).await?);
        Ok(Scan { further, ..nearest })
    }

    async fn nearest(&self, coach: &CoachId, reader: &FeedReader) -> Result<Scan, StoreError> {
        let is_of_all = reader.types.len() == EventType::ALL.len();
        // One item more than the page holds shows if there is more.
        let most = if is_of_all { reader.limit + 1 } else { (reader.limit + 1).min(NEAREST_ITEMS) };
        let passed = reader.cursor.map(|cursor| cursor.position);
        match (reader.order, passed) {
            (Order::Asc, Some(passed)) => {
                let first = format!("{PREFIX}{}", behind(passed));
                self.read(coach, [&first, PREFIX_END], reader, most).await
            }
            (Order::Asc, None) => {
                // The time in a position is that of the event before. So the first event may lie before this key.
                let first = sort_key(FeedPosition { after: reader.stored_since(), number: 0 });
                let read = self.read(coach, [&first, PREFIX_END], reader, most);
                let downwards = FeedReader { order: Order::Desc, ..reader.clone() };
                let before = self.read(coach, [PREFIX, &first], &downwards, 1);
                let (mut read, before) = try_join(read, before).await?;
                read.items.splice(..0, before.items);
                Ok(read)
            }
            (Order::Desc, passed) => {
                let end = passed.map_or(PREFIX_END.to_owned(), |passed| format!("{PREFIX}{}", before(passed)));
                self.read(coach, [PREFIX, &end], reader, most).await
            }
        }
    }

    /// Reads the items of the reader's types beyond a position.
    async fn further(&self, coach: &CoachId, reader: &FeedReader, passed: FeedPosition) -> Result<Further, StoreError> {
        let most = reader.limit + 1;
        let (end, [first, last]) = match reader.order {
            Order::Asc => {
                let last = self.last(coach, reader).await?;
                let Some(end) = last.filter(|last| *last > passed) else {
                    return Ok(Further { items: Vec::new(), end: Some(passed) });
                };
                (end, [behind(passed), place(end)])
            }
            Order::Desc => (FeedPosition::origin(), [String::new(), before(passed)]),
        };
        let of_types = reader.types.iter().map(async |named| {
            let [first, last] = [&first, &last].map(|bound| s(format!("{}#{bound}", named.as_str())));
            let values = [(":pk", s(partition(coach))), (":first", first), (":last", last)];
            let query = self.table.query("pk = :pk AND #type_position BETWEEN :first AND :last", values);
            let query = query.index_name("by_type").consistent_read(true);
            let query = query.scan_index_forward(reader.order == Order::Asc).limit(count(most));
            let items = query_up_to(query, most).await?;
            items.into_iter().map(|item| self.stored(item, reader)).collect::<Result<Vec<_>, StoreError>>()
        });
        Ok(Further::merge(try_join_all(of_types).await?, most, reader.order, end))
    }

    /// Reads the position of the last item.
    async fn last(&self, coach: &CoachId, reader: &FeedReader) -> Result<Option<FeedPosition>, StoreError> {
        let downwards = FeedReader { order: Order::Desc, types: Vec::new(), ..reader.clone() };
        let read = self.read(coach, [PREFIX, PREFIX_END], &downwards, 1).await?;
        Ok(read.items.first().map(|item| item.position))
    }

    /// Reads the items between two sort keys, both included, consistently.
    async fn read(
        &self,
        coach: &CoachId,
        [first, last]: [&str; 2],
        reader: &FeedReader,
        most: usize,
    ) -> Result<Scan, StoreError> {
        let values = [(":pk", s(partition(coach))), (":first", s(first)), (":last", s(last))];
        let query = self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values).consistent_read(true);
        let query = query.scan_index_forward(reader.order == Order::Asc);
        let page = query_page(query.limit(count(most))).await?;
        let items = page.items.into_iter().map(|item| self.stored(item, reader)).collect::<Result<_, _>>()?;
        Ok(Scan { items, is_end: page.next.is_none(), further: None })
    }

    /// Opens an item of the reader's types.
    fn stored(&self, item: Item, reader: &FeedReader) -> Result<Stored, StoreError> {
        let item: FeedItem = from_item(ENTITY, item)?;
        let named = item.type_position.as_deref().and_then(|position| position.split_once('#'));
        let is_wanted = named.is_some_and(|(named, _)| reader.types.iter().any(|wanted| wanted.as_str() == named));
        let open = || self.vault.unseal_json::<Event>(ENTITY, &context(&item.event_id), &item.sealed);
        let event = (is_wanted && !item.sealed.is_empty()).then(open).transpose()?;
        Ok(Stored { position: item.position()?, stored_at: item.stored_at(), event })
    }
}

impl FeedItem {
    fn position(&self) -> Result<FeedPosition, StoreError> {
        let parts = self.sk.strip_prefix(PREFIX).and_then(|position| position.split_once('#'));
        let position = parts.and_then(|(after, number)| {
            Some(FeedPosition { after: Timestamp::from_ms(after.parse().ok()?), number: number.parse().ok()? })
        });
        position.ok_or_else(|| StoreError::corrupt(ENTITY, "its key has another form"))
    }

    fn stored_at(&self) -> Timestamp {
        Timestamp::from_ms(self.stored_at)
    }
}

/// The text of a position: texts sort as positions do.
fn place(FeedPosition { after, number }: FeedPosition) -> String {
    format!("{:015}#{number:012}", after.ms())
}

fn sort_key(position: FeedPosition) -> String {
    format!("{PREFIX}{}", place(position))
}

/// The first text behind that of a position.
fn behind(position: FeedPosition) -> String {
    format!("{}!", place(position))
}

/// A text before that of a position, and behind those of all positions before.
fn before(position: FeedPosition) -> String {
    let number = position.number.saturating_sub(1);
    format!("{}~", place(FeedPosition { number, ..position }))
}

fn count(items: usize) -> i32 {
    i32::try_from(items).unwrap_or(i32::MAX)
}

/// Opens the event of an item.
pub(crate) fn open_member(vault: &Vault, item: &Item, _: &str, sealed: &[u8]) -> Result<Option<Value>, StoreError> {
    vault.unseal_json(ENTITY, &context(text(item, "event_id")), sealed).map(Some)
}

fn context(event_id: &str) -> String {
    format!("event_feed/{event_id}")
}
