//! Table `records`, what the sweep watches.
//! pk `CLIENT#<client_id>`, sk `DOSES_WATCH`: what the rules of computed events ask of a client beside its doses, the
//! client's states, and when it is due. The key sorts right behind the doses: one query reads both.
//! pk `COACH#<coach_id>`, sk `WATCH`: how often the coach's rules changed, and the progress of the pass over its
//! clients.
//! GSI `due`: `sweep_shard`, `sweep_due_at` (ms). An inactive client, or one whose coach has no automation on computed
//! events, has no `sweep_shard` and is in no shard: a fact marks its client as due whatever the coach's rules are.
//!
//! 1. `client`, `coach`   Query of a client's watch with its doses from a month on; GetItem of a coach's.
//! 2. `create`, `change`, `delete`  Parts of transactions. A `change` is refused where the client was erased.
//! 3. `change_alone`      UpdateItem: the same change without a transaction.
//! 4. `change_rules`, `change_zone`  Part of the transaction that changes an automation, a programme or the time zone.
//! 5. `commit`            Transaction on the version read: the states of an evaluation, and its events.
//! 6. `save_pass`         PutItem on the version read.
//! 7. `due`, `oldest_due` Query `due` of one shard, longest waiting first.

mod client;
mod coach;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use chrono::NaiveDate;
use domain::client::Client;
use domain::dose::Month;
use domain::event::Event;
use domain::id::{ClientId, CoachId};
use domain::sweep::{Facts, States};
use domain::time::Timestamp;
use domain::tz::{Tz, ZoneName};
use runtime::{BoxError, Environment};

pub use client::Watch;
pub(crate) use client::WatchUpdate;
pub use coach::CoachWatch;

use crate::db::{
    Db, Item, Part, StoreError, Table, Write, Written, backoff, n, number, query_all, query_page, s, sk_of, text,
    to_item,
};
use crate::doses::{DOSES_PREFIX, Doses, month_sk};
use crate::outbox::Outbox;

/// Partitions of the `due` index.
pub const SHARDS: u8 = 4;

const CLIENT_PREFIX: &str = "CLIENT#";
const COACH_PREFIX: &str = "COACH#";
/// How often a client's partition is read again when its doses are older than its watch.
const MAX_READS: u32 = 6;

/// Who is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    Client {
        id: ClientId,
        coach_id: CoachId,
    },
    /// All clients of the coach, whose rules have changed.
    Coach(CoachId),
    /// An entry of another form, by its key. Other entries are evaluated all the same.
    Unreadable(String),
}

/// How a client, or all of a coach's, are mark as due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueMark {
    pub(crate) now: Timestamp,
    /// The next evaluation emits nothing.
    pub(crate) silent: bool,
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
    /// All that the rules ask of the client, but for its programme's phases.
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

/// The watched items of the records table.
#[derive(Clone)]
pub struct Watches {
    table: Table,
}

impl Watches {
    /// The table that `RECORDS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "RECORDS_TABLE")? })
    }

    /// A coach's watch; an empty one where there is none yet.
    pub async fn coach(&self, coach: &CoachId) -> Result<CoachWatch, StoreError> {
        let found = self.table.item(coach::key(coach)).await?;
        found.map_or_else(|| Ok(CoachWatch::new(coach)), CoachWatch::from_item)
    }

    /// A client's watch with its doses from the month of a date on, no older than the watch; without doses where no
    /// date is given.
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
            // A query may see one item of a transaction as it is after it, and another as it was before.
            if watch.is_covered_by(&first, &versions_of(&items)) {
                let mut doses = Doses::default();
                items.into_iter().try_for_each(|item| doses.add(item))?;
                return Ok(Some(Observed { watch, doses }));
            }
        }
        Err(StoreError::contention("the client's doses"))
    }

    async fn partition_from(&self, client: &ClientId, first: &str) -> Result<Vec<Item>, StoreError> {
        // Backwards: the watch first, so that doses are seldom older than the watch.
        let values =
            [(":pk", s(format!("{CLIENT_PREFIX}{client}"))), (":first", s(first)), (":last", s(client::SORT_KEY))];
        let query = self.table.query("pk = :pk AND sk BETWEEN :first AND :last", values);
        query_all(query.consistent_read(true).scan_index_forward(false)).await
    }

    /// Part of a transaction: the watch of a new client. The condition is the client's own: it is new.
    pub(crate) fn create(&self, client: &Client, now: Timestamp) -> Write {
        self.table.write(to_item(&Watch::new(client, now))).put(Part::Watch)
    }

    /// Part of a transaction: the watch of a client that was found without one.
    pub(crate) fn create_missing(&self, client: &Client, now: Timestamp) -> Write {
        let mut watch = Watch::new(client, now);
        watch.daily_log_deleted = true;
        self.table.write(to_item(&watch)).when_absent().put(Part::Watch)
    }

    /// Part of a transaction: what is known of a client changes, and the client is due. Refused where the client was
    /// erased.
    pub(crate) fn change(&self, client: &ClientId, change: WatchUpdate, mark: DueMark) -> Write {
        change.write(&self.table, client, mark).update(Part::Watch)
    }

    /// The same without a transaction.
    pub(crate) async fn change_alone(
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

    /// Part of a transaction: the watch of an erased client goes.
    pub(crate) fn delete(&self, client: &ClientId) -> Write {
        self.table.write(client::key(client)).delete(Part::Watch)
    }

    /// Makes a client due.
    pub async fn mark_due(&self, client: &ClientId, now: Timestamp) -> Result<(), StoreError> {
        self.change_alone(client, WatchUpdate::default(), DueMark { now, silent: false }).await?;
        Ok(())
    }

    /// Part of a transaction: what a coach's clients are evaluated by changes, and all of them are to be evaluated
    /// again.
    pub(crate) fn change_rules(&self, coach: &CoachId, mark: DueMark) -> Write {
        coach::change_rules(&self.table, coach, None, mark).update(Part::CoachWatch)
    }

    /// The same where a workspace is new or its time zone, by which the days of all clients begin, is another.
    pub(crate) fn change_zone(&self, coach: &CoachId, zone: &ZoneName, mark: DueMark) -> Write {
        coach::change_rules(&self.table, coach, Some(zone), mark).update(Part::CoachWatch)
    }

    /// Commits an evaluation of a client under the rules of a version, with its events. False: the watch has changed
    /// since it was read.
    pub async fn commit(&self, evaluated: Evaluated, outbox: &Outbox, now: Timestamp) -> Result<bool, StoreError> {
        let Evaluated { watch, states, rules_version, is_watched, events } = evaluated;
        let version = watch.version;
        let next = watch.evaluated(states, rules_version, is_watched);
        let mut writes = vec![self.table.write(to_item(&next)).when_version(Some(version)).put(Part::Watch)];
        writes.extend(outbox.put_events(events, now));
        Ok(self.table.db.transact(&writes).await?.is_done())
    }

    /// Stores the progress of a pass. `None`: the rules have changed since the watch was read, and the pass begins
    /// anew.
    pub async fn save_pass(&self, watch: CoachWatch) -> Result<Option<CoachWatch>, StoreError> {
        let found = watch.version;
        let mut next = watch;
        next.version += 1;
        let put = self.table.write(to_item(&next)).when_version(Some(found));
        Ok(put.put_now().await?.is_done().then_some(next))
    }

    /// A page of one shard's entries that are due by an instant, at most `limit`, from the end of an earlier page on.
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

    /// Since when the client or coach that has waited longest in a shard has been due; `None` where nobody is due.
    pub async fn oldest_due(&self, shard: u8, by: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let page = query_page(self.due_query(shard, by).limit(1)).await?;
        Ok(page.items.first().and_then(|item| number(item, "sweep_due_at")).map(Timestamp::from_ms))
    }

    fn due_query(&self, shard: u8, by: Timestamp) -> QueryFluentBuilder {
        let values = [(":shard", s(shard.to_string())), (":by", n(by.ms()))];
        self.table.query("sweep_shard = :shard AND sweep_due_at <= :by", values).index_name("due")
    }
}

/// An evaluation of a client, to be committed.
pub struct Evaluated {
    /// As it was read.
    pub watch: Watch,
    pub states: States,
    /// The version of the rules.
    pub rules_version: u64,
    /// The coach has active automations on computed events.
    pub is_watched: bool,
    pub events: Vec<Event>,
}

/// The result of a change without a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchWrite {
    Done,
    /// The change's own condition does not hold.
    Unneeded,
    /// The client was erased, or its watch is missing.
    Missing,
}

/// The versions of a client's doses, by their sort keys.
fn versions_of(items: &[Item]) -> BTreeMap<&str, u64> {
    let doses = items.iter().filter(|item| sk_of(item).starts_with(DOSES_PREFIX));
    doses.filter_map(|item| Some((sk_of(item), number(item, "version")?))).collect()
}

fn read_due(item: &Item) -> Due {
    let (pk, coach) = (text(item, "pk"), CoachId::parse(text(item, "coach_id")));
    let client = pk.strip_prefix(CLIENT_PREFIX).map(ClientId::parse);
    match (client, coach) {
        (Some(Ok(id)), Ok(coach_id)) => Due::Client { id, coach_id },
        (None, Ok(coach)) if pk.starts_with(COACH_PREFIX) => Due::Coach(coach),
        _ => Due::Unreadable(pk.to_owned()),
    }
}

fn shard_of(pk: &str) -> String {
    let sum: u32 = pk.bytes().map(u32::from).sum();
    (sum % u32::from(SHARDS)).to_string()
}
