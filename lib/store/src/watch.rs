//! Table `records`, watches. A fact makes its client due and evaluates no rules. If a later fact removes a match before
//! the next sweep, no event is emitted.
//! pk `CLIENT#<client_id>`, sk `DOSES_WATCH`: the client's state for rules of computed events, and its due time. It
//! sorts after the doses: one query reads both. It holds the versions of the dose items that changed last. A query may
//! read half of a transaction, so `client` reads again while a dose item is older.
//! pk `COACH#<coach_id>`, sk `WATCH`: the version of the coach's rules, and the progress of the pass over its clients.
//! GSI `due`: `sweep_shard`, `sweep_due_at` (ms). Inactive clients, and clients without rules, have no `sweep_shard`.
//! 1. `client`, `coach` Query of a client's watch and doses; GetItem of a coach's watch.
//! 2. `create`, `change`, `delete` Parts of transactions. `change` is refused for an erased client. `change_alone`:
//!    UpdateItem.
//! 3. `change_rules`, `change_zone` Part of the transaction that changes an automation, a programme or the time zone.
//! 4. `put_evaluated` Part of a transaction on the version read: the states of an evaluation.
//! 5. `save_pass` PutItem on the version read. `due`, `oldest_due` Query of one shard, longest waiting first.

mod client;
mod coach;
mod due;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use chrono::NaiveDate;
use domain::client::Client;
use domain::dose::Month;
use domain::id::{ClientId, CoachId};
use domain::sweep::{Facts, States};
use domain::time::Timestamp;
use domain::tz::{Tz, ZoneName};
use runtime::{BoxError, Environment};

pub use client::{Watch, WatchUpdate};
pub use coach::CoachWatch;
pub use due::DueMark;

use crate::db::{
    Db, Item, Part, StoreError, Table, Write, Written, backoff, n, number, query_all, query_page, s, sk_of, text,
    to_item,
};
use crate::doses::{DOSES_PREFIX, Doses, month_sk};

/// Most reads of a client's partition while its doses are older than its watch.
const MAX_READS: u32 = 6;

/// A client or coach that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    Client {
        id: ClientId,
        coach_id: CoachId,
    },
    /// All clients of the coach are due: the rules have changed.
    Coach(CoachId),
    /// The key of an entry that cannot be read. The sweep evaluates the other entries all the same.
    Unreadable(String),
}

/// The end of a page of the due index.
#[derive(Debug, Clone)]
pub struct DueStart(Item);

/// A page of the due index.
#[derive(Debug)]
pub struct DuePage {
    pub due: Vec<Due>,
    /// `None` at the end.
    pub next: Option<DueStart>,
}

/// The state of a client that an evaluation reads.
#[derive(Debug)]
pub struct Observed {
    pub watch: Watch,
    pub doses: Doses,
}

impl Observed {
    /// The facts about the client that rules evaluate, except its programme's phases.
    pub fn facts(&self, zone: Tz) -> Facts {
        Facts {
            created_at: self.watch.created_at,
            zone,
            last_check_in_at: self.watch.last_check_in_at,
            last_daily_log_on: self.watch.last_daily_log_on,
            phase: self.watch.phase(),
            phases: Vec::new(),
            schedule: self.doses.schedule.clone(),
            logged: self.doses.logged.clone(),
        }
    }
}

/// The watches in the records table.
#[derive(Clone)]
pub struct Watches {
    table: Table,
}

impl Watches {
    /// The table that `RECORDS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "RECORDS_TABLE")? })
    }

    /// Reads a coach's watch; an empty one if there is none yet.
    pub async fn coach(&self, coach: &CoachId) -> Result<CoachWatch, StoreError> {
        let found = self.table.item(coach::key(coach)).await?;
        found.map_or_else(|| Ok(CoachWatch::new(coach)), CoachWatch::from_item)
    }

    /// Reads a client's watch with its doses from the month of `from` on, or without doses if `from` is `None`. The
    /// doses are at least as new as the watch.
    pub async fn client(&self, client: &ClientId, from: Option<NaiveDate>) -> Result<Option<Observed>, StoreError> {
        let Some(from) = from else {
            let watch = self.table.item(client::key(client)).await?.map(Watch::from_item).transpose()?;
            return Ok(watch.map(|watch| Observed { watch, doses: Doses::default() }));
        };
        let first = month_sk(Month::of(from));
        for round in 0..MAX_READS {
            backoff(round).await;
            let mut items = self.partition_from(client, &first).await?;
            let Some(place) = items.iter().position(|item| sk_of(item) == client::SORT_KEY) else { return Ok(None) };
            let watch = Watch::from_item(items.swap_remove(place))?;
            // A query may see one item of a transaction as it was before, and another as it is after.
            if watch.is_covered_by(&first, &versions_of(&items)) {
                let mut doses = Doses::default();
                items.into_iter().try_for_each(|item| doses.add(item))?;
                return Ok(Some(Observed { watch, doses }));
            }
        }
        Err(StoreError::contention("the client's doses"))
    }

    async fn partition_from(&self, client: &ClientId, first: &str) -> Result<Vec<Item>, StoreError> {
        // In descending order: the watch is read before the doses, so the doses are seldom older.
        let values = [(":pk", s(client::pk(client))), (":first", s(first)), (":last", s(client::SORT_KEY))];
        let query = self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values);
        query_all(query.consistent_read(true).scan_index_forward(false)).await
    }

    /// Part of a transaction: creates the watch of a new client. The client's own write has the condition that the
    /// client is new.
    pub fn create(&self, client: &Client, now: Timestamp) -> Write {
        self.table.write(to_item(&Watch::new(client, now))).put(Part::Watch)
    }

    /// Part of a transaction: creates the missing watch of a client.
    pub(crate) fn create_missing(&self, client: &Client, now: Timestamp) -> Write {
        let mut watch = Watch::new(client, now);
        watch.daily_log_deleted = true;
        self.table.write(to_item(&watch)).when_absent().put(Part::Watch)
    }

    /// Part of a transaction: updates a client's watch and makes the client due. Refused if the client was erased.
    pub fn change(&self, client: &ClientId, change: WatchUpdate, mark: DueMark) -> Write {
        change.write(&self.table, client, mark).update(Part::Watch)
    }

    /// Updates a client's watch and makes the client due, without a transaction.
    pub async fn change_alone(
        &self,
        client: &ClientId,
        change: WatchUpdate,
        mark: DueMark,
    ) -> Result<WatchWrite, StoreError> {
        Ok(match change.write(&self.table, client, mark).update_now().await? {
            Written::Done(_) => WatchWrite::Done,
            Written::Refused(Some(_)) => WatchWrite::Unneeded,
            Written::Refused(None) => WatchWrite::Missing,
        })
    }

    /// Part of a transaction: deletes the watch of an erased client.
    pub(crate) fn delete(&self, client: &ClientId) -> Write {
        self.table.write(client::key(client)).delete(Part::Watch)
    }

    /// Makes a client due, also one that is in no index because its coach had no rules.
    pub async fn mark_due(&self, client: &ClientId, now: Timestamp) -> Result<(), StoreError> {
        self.change_alone(client, WatchUpdate::indexed(client), DueMark { now, silent: false }).await?;
        Ok(())
    }

    /// Part of a transaction: the rules of a coach change, which makes all clients of the coach due.
    pub fn change_rules(&self, coach: &CoachId, mark: DueMark) -> Write {
        coach::change_rules(&self.table, coach, None, mark).update(Part::CoachWatch)
    }

    /// Part of a transaction: the time zone of a coach changes, which moves the days of all clients, so all of them are
    /// due.
    pub fn change_zone(&self, coach: &CoachId, zone: &ZoneName, mark: DueMark) -> Write {
        coach::change_rules(&self.table, coach, Some(zone), mark).update(Part::CoachWatch)
    }

    /// Part of a transaction: stores the evaluation of a client, if the watch is as it was read. `rules_version` is the
    /// version of the rules; `is_watched`: the coach has active automations on computed events.
    pub fn put_evaluated(&self, watch: Watch, states: States, rules_version: u64, is_watched: bool) -> Write {
        let version = watch.version;
        let next = watch.evaluated(states, rules_version, is_watched);
        self.table.write(to_item(&next)).when_version(Some(version)).put(Part::Watch)
    }

    /// Stores the progress of a pass. Returns `None` if the rules have changed since the watch was read: the pass
    /// begins anew.
    pub async fn save_pass(&self, watch: CoachWatch) -> Result<Option<CoachWatch>, StoreError> {
        let found = watch.version;
        let mut next = watch;
        next.version += 1;
        let put = self.table.write(to_item(&next)).when_version(Some(found));
        Ok(put.put_now().await?.is_done().then_some(next))
    }

    /// Reads at most `limit` of a shard's entries that are due by an instant, after an earlier page.
    pub async fn due(
        &self,
        shard: u8,
        by: Timestamp,
        limit: i32,
        start: Option<DueStart>,
    ) -> Result<DuePage, StoreError> {
        let query = self.due_query(shard, by).limit(limit).set_exclusive_start_key(start.map(|start| start.0));
        let page = query_page(query).await?;
        Ok(DuePage { due: page.items.iter().map(read_due).collect(), next: page.next.map(DueStart) })
    }

    /// The earliest due time in a shard; `None` if no entry is due by the instant.
    pub async fn oldest_due(&self, shard: u8, by: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let page = query_page(self.due_query(shard, by).limit(1)).await?;
        Ok(page.items.first().and_then(|item| number(item, "sweep_due_at")).map(Timestamp::from_ms))
    }

    fn due_query(&self, shard: u8, by: Timestamp) -> QueryFluentBuilder {
        let values = [(":shard", s(shard.to_string())), (":by", n(by.ms()))];
        self.table.query("sweep_shard = :shard AND sweep_due_at <= :by", values).index_name("due")
    }
}

/// The result of a [`WatchUpdate`] without a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchWrite {
    Done,
    /// The update's own condition does not hold.
    Unneeded,
    /// The client was erased, or its watch is missing.
    Missing,
}

/// The versions of a client's dose items, by sort key.
fn versions_of(items: &[Item]) -> BTreeMap<&str, u64> {
    let doses = items.iter().filter(|item| sk_of(item).starts_with(DOSES_PREFIX));
    doses.filter_map(|item| Some((sk_of(item), number(item, "version")?))).collect()
}

fn read_due(item: &Item) -> Due {
    let (pk, coach) = (text(item, "pk"), CoachId::parse(text(item, "coach_id")));
    let client = pk.strip_prefix(client::PREFIX).map(ClientId::parse);
    match (client, coach) {
        (Some(Ok(id)), Ok(coach_id)) => Due::Client { id, coach_id },
        (None, Ok(coach)) if pk.starts_with(coach::PREFIX) => Due::Coach(coach),
        _ => Due::Unreadable(pk.to_owned()),
    }
}
