//! Table `events`: the event feed of each coach. pk `COACH#<coach_id>`, sk `EVENT#<time>#<number>`: an event, sealed,
//! and the ids of its subject. sk `START`: when the feed began. sk `MARK#<event_id>`: an event that may be emitted
//! twice. All but `START` expire.
//!
//! **Positions.** The relay stores an event at the position that follows from the last item, on condition that the
//! position is free. So an item is stored after all items before it, and no event ever appears before an event that a
//! reader has passed, whatever the order in which transactions commit and relays work. Of two relays at a position one
//! is refused, is shown the item of the other, and tries the next position.
//!
//! **Once.** A relay that died may have stored the event. So a relay reads the items that were stored since the event
//! was written, and each item that takes its position: it sees every item up to the position that it takes. The time of
//! an item is never before that of the item before, nor before its event was written, whatever a clock says. An event
//! that may be emitted twice is stored together with its mark.
//!
//! **Expiry.** Items live for twice the time for which the feed shows them. A relay keeps the last item longer before
//! it builds on an item that might expire. If all items are old, the feed begins again, at the time in `START`, which
//! one relay sets. That time is later than all positions before.
//!
//! 1. `append` Query, newest first, up to the time of the event. PutItem; the rare kind with a mark in a transaction.
//!    GetItem and PutItem of `START` for the first event, UpdateItem or DeleteItem of an old item.
//! 2. `scan` Query in either order. The first page of the ascending order also queries the item before.
//! 3. `erase` Query of a coach's items, UpdateItem of those that name a person: module `erase`.

mod append;
mod erase;

use domain::event::Event;
use domain::event_feed::{FeedPosition, FeedReader, Scan, Stored};
use domain::id::CoachId;
use domain::list::Order;
use domain::subject::Subject;
use domain::time::Timestamp;
use futures::future::try_join;
use runtime::{BoxError, Environment};
use serde::{Deserialize, Serialize};

use crate::db::{Db, Item, StoreError, Table, from_item, query_page, s};
use crate::vault::Vault;
use crate::workspace::partition;

pub use erase::MAX_ERASED_CONTACTS;

const ENTITY: &str = "event";
const PREFIX: &str = "EVENT#";
/// The end of the range of sort keys with the prefix.
const PREFIX_END: &str = "EVENT#~";

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
    /// Absent after the erasure of the subject.
    #[serde(default, with = "crate::binary", skip_serializing_if = "Vec::is_empty")]
    sealed: Vec<u8>,
    expires_at: i64,
}

impl EventFeed {
    /// The table that `EVENTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "EVENTS_TABLE")?, vault: vault.clone() })
    }

    /// Reads on for a page: up to `most` items behind what was read.
    pub async fn scan(
        &self,
        coach: &CoachId,
        reader: &FeedReader,
        found: &mut Scan,
        most: u32,
    ) -> Result<(), StoreError> {
        let passed = found.items.last().map(|item| item.position).or(reader.cursor.map(|cursor| cursor.position));
        let (mut read, before) = match (reader.order, passed) {
            (Order::Asc, Some(passed)) => {
                (self.read(coach, &after(passed), PREFIX_END, reader.order, most).await?, None)
            }
            (Order::Asc, None) => {
                // The time in a position is that of the event before. So the first event may lie before this key.
                let first = sort_key(FeedPosition { after: reader.stored_since(), number: 0 });
                let read = self.read(coach, &first, PREFIX_END, reader.order, most);
                let before = self.read(coach, PREFIX, &first, Order::Desc, 1);
                let (read, before) = try_join(read, before).await?;
                (read, before.items.into_iter().next())
            }
            (Order::Desc, passed) => {
                let end = passed.map_or(PREFIX_END.to_owned(), sort_key);
                let mut read = self.read(coach, PREFIX, &end, reader.order, most + 1).await?;
                read.items.retain(|item| passed != Some(item.position));
                (read, None)
            }
        };
        found.items.extend(before.into_iter().chain(read.items.drain(..)));
        found.is_end = read.is_end;
        Ok(())
    }

    /// Reads the items between two sort keys, both included, consistently.
    async fn read(
        &self,
        coach: &CoachId,
        first: &str,
        last: &str,
        order: Order,
        most: u32,
    ) -> Result<Scan, StoreError> {
        let values = [(":pk", s(partition(coach))), (":first", s(first)), (":last", s(last))];
        let query = self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values).consistent_read(true);
        let query = query.scan_index_forward(order == Order::Asc);
        let page = query_page(query.limit(i32::try_from(most).unwrap_or(i32::MAX))).await?;
        let items = page.items.into_iter().map(|item| self.stored(item)).collect::<Result<_, _>>()?;
        Ok(Scan { items, is_end: page.next.is_none() })
    }

    fn stored(&self, item: Item) -> Result<Stored, StoreError> {
        let item: FeedItem = from_item(ENTITY, item)?;
        let open = |sealed: &[u8]| self.vault.unseal_json::<Event>(ENTITY, &context(&item.event_id), sealed);
        let event = Some(&*item.sealed).filter(|sealed| !sealed.is_empty()).map(open).transpose()?;
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

fn sort_key(FeedPosition { after, number }: FeedPosition) -> String {
    format!("{PREFIX}{:015}#{number:012}", after.ms())
}

/// The first sort key behind a position.
fn after(position: FeedPosition) -> String {
    format!("{}!", sort_key(position))
}

fn context(event_id: &str) -> String {
    format!("event_feed/{event_id}")
}
