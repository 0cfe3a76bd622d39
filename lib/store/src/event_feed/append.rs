//! Stores events at the next positions of a feed, each once.

use std::collections::HashSet;

use chrono::TimeDelta;
use domain::event::Event;
use domain::event_feed::FeedPosition;
use domain::id::CoachId;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ENTITY, EventFeed, FeedItem, PREFIX, PREFIX_END, context, place, sort_key};
use crate::db::{Item, Part, StoreError, Transacted, Written, from_item, n, query_page, s, to_item};
use crate::workspace::{key_of, partition};

/// Life of an item. After it DynamoDB deletes the item, at any time and in any order.
const LIFE: TimeDelta = TimeDelta::days(60);
/// Rest of a life in which an item counts as lasting: longer than any request by far.
const LASTING: TimeDelta = TimeDelta::days(15);
const START: &str = "START";
/// Items of the first request for the end of a feed: mostly few are as new as the event. Each costs a read unit for
/// every 4 KB, so ten take a fifth off the cost of an event.
const FIRST_TAIL_PAGE: i32 = 10;
/// Items of each further request.
const TAIL_PAGE: i32 = 100;
/// Positions that are tried for an event, while others store events. Then the relay tries again later.
const MAX_PUTS: usize = 1_000;

/// The last item of a feed.
#[derive(Debug, Clone, Copy)]
struct Last {
    position: FeedPosition,
    stored_at: Timestamp,
    /// Seconds since the Unix epoch.
    expires_at: i64,
}

impl Last {
    fn of(item: &FeedItem) -> Result<Self, StoreError> {
        Ok(Self { position: item.position()?, stored_at: item.stored_at(), expires_at: item.expires_at })
    }

    fn behind(self) -> FeedPosition {
        self.position.next(self.stored_at)
    }
}

/// The beginning of a feed.
#[derive(Serialize, Deserialize)]
struct Start {
    pk: String,
    sk: String,
    began_at: Timestamp,
}

impl Start {
    /// Returns true for the beginning that relays agree on at present.
    fn is_recent(&self, now: Timestamp) -> bool {
        self.began_at + LASTING > now
    }
}

impl EventFeed {
    /// Stores events of a coach behind all others, unless they are in the feed. `written_at` is the time at which the
    /// first of them was written: the feed holds them since then at the earliest.
    pub async fn append(
        &self,
        coach: &CoachId,
        events: &[&Event],
        written_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (mut last, mut known) = self.tail(coach, written_at).await?;
        for event in events {
            let mut puts = 0..MAX_PUTS;
            while !known.contains(event.id.as_str()) {
                puts.next().ok_or_else(|| StoreError::contention("a position in the event feed"))?;
                let position = match self.next_position(coach, last, now).await? {
                    Next::Position(position) => position,
                    Next::Changed => {
                        (last, known) = self.tail(coach, written_at).await?;
                        continue;
                    }
                };
                let stored_at = position.after.max(now).max(written_at).max(event.occurred_at);
                let item = self.item_of(coach, event, position, stored_at);
                match self.put(&item, event).await? {
                    Put::Done => last = Some(Last::of(&item)?),
                    Put::Taken(item) => {
                        last = Some(Last::of(&item)?);
                        known.insert(item.event_id);
                        continue;
                    }
                    Put::Known => {}
                }
                known.insert(event.id.to_string());
            }
        }
        Ok(())
    }

    /// Reads the last item, and the ids of the events that were stored since that time.
    async fn tail(&self, coach: &CoachId, since: Timestamp) -> Result<(Option<Last>, HashSet<String>), StoreError> {
        let values = [(":pk", s(partition(coach))), (":first", s(PREFIX)), (":last", s(PREFIX_END))];
        let query = self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values).consistent_read(true);
        let query = query.scan_index_forward(false);
        let (mut last, mut known, mut start) = (None, HashSet::new(), None);
        loop {
            let limit = if start.is_none() { FIRST_TAIL_PAGE } else { TAIL_PAGE };
            let page = query_page(query.clone().limit(limit).set_exclusive_start_key(start)).await?;
            for item in page.items {
                let item: FeedItem = from_item(ENTITY, item)?;
                if last.is_none() {
                    last = Some(Last::of(&item)?);
                }
                if item.stored_at() < since {
                    return Ok((last, known));
                }
                known.insert(item.event_id);
            }
            start = page.next;
            if start.is_none() {
                return Ok((last, known));
            }
        }
    }

    /// Returns the position behind the last item.
    ///
    /// Behind an expired item others may have been deleted, so the feed begins again. An item that might expire soon is
    /// kept. Clocks differ, so relays may disagree. Therefore both need the item as it was read, and a beginning is
    /// noted before the item goes: whoever finds the item gone finds the beginning.
    async fn next_position(&self, coach: &CoachId, last: Option<Last>, now: Timestamp) -> Result<Next, StoreError> {
        let Some(last) = last else {
            return Ok(Next::Position(FeedPosition::first(self.begin(coach, now).await?)));
        };
        if last.expires_at > (now + LASTING).unix_s() {
            return Ok(Next::Position(last.behind()));
        }
        let item = self.table.write(key_of(coach, &sort_key(last.position)));
        let item = item.when("expires_at = :found", [(":found", n(last.expires_at))]);
        let begins = self.start(coach).await?.is_some_and(|start| start.is_recent(now));
        if begins || last.expires_at <= now.unix_s() {
            let began_at = self.begin(coach, now).await?;
            let is_deleted = item.delete_now().await?.is_done();
            return Ok(if is_deleted { Next::Position(FeedPosition::first(began_at)) } else { Next::Changed });
        }
        let kept = item.set("expires_at", n((now + LIFE).unix_s())).update_now().await?;
        Ok(if kept.is_done() { Next::Position(last.behind()) } else { Next::Changed })
    }

    /// Returns the time at which the feed begins. Relays that begin it at about the same time get one time.
    async fn begin(&self, coach: &CoachId, now: Timestamp) -> Result<Timestamp, StoreError> {
        let found = self.start(coach).await?;
        if let Some(start) = found.as_ref().filter(|start| start.is_recent(now)) {
            return Ok(start.began_at);
        }
        let start = Start { pk: partition(coach), sk: START.to_owned(), began_at: now };
        let write = self.table.write(to_item(&start));
        let write = match &found {
            Some(found) => write.when("began_at = :found", [(":found", s(found.began_at.to_string()))]),
            None => write.when_absent(),
        };
        match write.put_now().await? {
            Written::Done(_) => Ok(now),
            Written::Refused(Some(item)) => from_item(ENTITY, item).map(|start: Start| start.began_at),
            Written::Refused(None) => Err(StoreError::corrupt(ENTITY, "the beginning of the feed is gone")),
        }
    }

    async fn start(&self, coach: &CoachId) -> Result<Option<Start>, StoreError> {
        self.table.get(ENTITY, key_of(coach, START)).await
    }

    fn item_of(&self, coach: &CoachId, event: &Event, position: FeedPosition, stored_at: Timestamp) -> FeedItem {
        let event_id = event.id.to_string();
        FeedItem {
            pk: partition(coach),
            sk: sort_key(position),
            stored_at: stored_at.ms(),
            subject: event.subject(),
            type_position: Some(format!("{}#{}", event.event_type.as_str(), place(position))),
            sealed: self.vault.seal_json(&context(&event_id), event),
            expires_at: (stored_at + LIFE).unix_s(),
            event_id,
        }
    }

    async fn put(&self, item: &FeedItem, event: &Event) -> Result<Put, StoreError> {
        let put = self.table.write(to_item(item)).when_absent();
        let taken = |found: Option<Item>| match found {
            Some(found) => from_item(ENTITY, found).map(Put::Taken),
            None => Err(StoreError::corrupt(ENTITY, "the item that takes its position is gone")),
        };
        if !event.may_repeat() {
            return match put.put_now().await? {
                Written::Done(_) => Ok(Put::Done),
                Written::Refused(found) => taken(found),
            };
        }
        let mut mark = key_of(&event.coach_id, &format!("MARK#{}", event.id));
        mark.insert("expires_at".to_owned(), n(item.expires_at));
        let writes = [put.put(Part::FeedPosition), self.table.write(mark).when_absent().put(Part::EmittedMark)];
        match self.table.db.transact(&writes).await? {
            Transacted::Done => Ok(Put::Done),
            Transacted::Refused(refused) if refused.is(Part::EmittedMark) => Ok(Put::Known),
            Transacted::Refused(refused) => taken(refused.item(Part::FeedPosition).cloned()),
        }
    }
}

/// The result of looking for a position.
enum Next {
    Position(FeedPosition),
    /// The end of the feed is not as it was read.
    Changed,
}

/// The result of a put.
enum Put {
    Done,
    /// The position holds this item.
    Taken(FeedItem),
    /// The event was stored before.
    Known,
}
