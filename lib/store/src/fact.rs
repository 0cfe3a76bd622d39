//! Table `facts`: ids of the application's facts that have been stored. pk `FACT#<fact_id>`. A fact that arrives twice
//! has one effect, even if another fact of the same time arrives in between.
//!
//! 1. `seen` BatchGetItem, consistent: the facts of a batch.
//! 2. `mark` PutItem. Two functions that store the same fact at once both mark it.
//! 3. `mark_once` Part of the transaction that applies a fact about a client, so the fact is applied once. The mark
//!    costs one write unit and saves two calls. The daily log is the exception: a year of dates is too large for a
//!    transaction with every date, so its facts are looked up first.
//! 4. `begin_round` PutItem at pk `ROUND#<fact_id>#<since when it waits>#<round>`, unless it exists: a waiting fact is
//!    enqueued again once, however many copies of its message there are.

use std::collections::HashSet;

use chrono::TimeDelta;
use domain::event::Event;
use domain::fact_time::FactTime;
use domain::id::FactId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment, random_bytes};
use serde::{Deserialize, Serialize};

use crate::db::{self, Db, Item, ItemWrite, Part, StoreError, Table, Write, from_item, n, s, to_item};
use crate::watch::DueMark;

/// Retention of the mark of a fact.
const RETENTION: TimeDelta = TimeDelta::days(14);

/// Retention of the mark of a round: longer than the fact waits.
const ROUND_RETENTION: TimeDelta = TimeDelta::hours(1);

const PREFIX: &str = "FACT#";

/// The id and time of a fact, and the time at which it is applied.
#[derive(Debug, Clone, Copy)]
pub struct FactContext<'a> {
    pub id: &'a FactId,
    pub occurred_at: FactTime,
    /// The fact is stored without events.
    pub backfill: bool,
    /// True if the workspace has the CRM: only then do its receivers get events of the CRM.
    pub has_crm: bool,
    pub now: Timestamp,
}

impl FactContext<'_> {
    /// The mark with which the fact makes a client, or all clients of a coach, due.
    pub(crate) fn due_mark(self) -> DueMark {
        DueMark { now: self.now, silent: self.backfill }
    }

    /// Returns true if the fact emits events of the CRM.
    pub(crate) fn emits_crm_events(self) -> bool {
        self.has_crm && !self.backfill
    }

    /// Returns an event of the CRM if the fact emits one.
    pub(crate) fn crm_event(self, event: impl FnOnce() -> Option<Event>) -> Option<Event> {
        if self.emits_crm_events() { event() } else { None }
    }
}

/// The reason why a fact ends without a commit.
#[derive(Debug)]
pub enum Halt {
    /// Nothing is left to commit: what is stored is newer or the same, is erased for good, or is written by now.
    Done,
    /// The fact was applied before.
    Repeated,
    /// The record that this field names is not stored yet.
    Unknown(&'static str),
    Failed(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

#[derive(Serialize, Deserialize)]
struct FactMark {
    pk: String,
    /// The token of the function that began a round.
    owner: Option<String>,
    /// Seconds: the TTL attribute.
    expires_at: i64,
}

/// The marks of facts that have been stored.
#[derive(Clone)]
pub struct SeenFacts {
    table: Table,
}

impl SeenFacts {
    /// The table that `FACTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "FACTS_TABLE")? })
    }

    /// Reads which of these facts have been stored.
    pub async fn seen(&self, facts: &HashSet<FactId>, now: Timestamp) -> Result<HashSet<FactId>, StoreError> {
        let keys = facts.iter().map(|id| db::pk(pk(id))).collect();
        let mut seen = HashSet::new();
        for item in self.table.read(keys).await? {
            let mark: FactMark = from_item("fact", item)?;
            let id = mark.pk.strip_prefix(PREFIX).and_then(|id| FactId::parse(id).ok());
            // TTL deletes late.
            seen.extend(id.filter(|_| mark.expires_at > now.unix_s()));
        }
        Ok(seen)
    }

    /// Begins a round of a fact that has waited since then. Returns true if no other copy of the message has begun the
    /// round.
    pub async fn begin_round(
        &self,
        fact: &FactId,
        since: Timestamp,
        round: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let expires_at = (now + ROUND_RETENTION).unix_s();
        let owner = hex::encode(random_bytes::<16>());
        let pk = format!("ROUND#{fact}#{}#{round}", since.ms());
        let put = self.table.write(to_item(&FactMark { pk, owner: Some(owner.clone()), expires_at }));
        // The SDK repeats a put whose answer was lost. The repeated put finds its own token.
        let put = put.when("attribute_not_exists(pk) OR #owner = :owner", [(":owner", s(owner))]);
        Ok(put.put_now().await?.is_done())
    }

    /// Returns true if a fact has been stored.
    pub async fn is_seen(&self, fact: FactContext<'_>) -> Result<bool, StoreError> {
        Ok(!self.seen(&HashSet::from([fact.id.clone()]), fact.now).await?.is_empty())
    }

    /// Part of a transaction: marks a fact as applied. Refused if the fact is marked already.
    pub(crate) fn mark_once(&self, fact: FactContext<'_>) -> Write {
        unless_alive(self.table.write(mark_item(fact.id, fact.now)), fact.now).put(Part::Fact)
    }

    /// Marks a fact as stored.
    pub async fn mark(&self, fact: &FactId, now: Timestamp) -> Result<(), StoreError> {
        self.table.write(mark_item(fact, now)).put_now().await?;
        Ok(())
    }
}

/// Adds the condition that a mark is absent or expired. TTL deletes late.
pub(crate) fn unless_alive(write: ItemWrite<'_>, now: Timestamp) -> ItemWrite<'_> {
    write.when("attribute_not_exists(pk) OR expires_at <= :now", [(":now", n(now.unix_s()))])
}

fn mark_item(fact: &FactId, now: Timestamp) -> Item {
    to_item(&FactMark { pk: pk(fact), owner: None, expires_at: (now + RETENTION).unix_s() })
}

fn pk(fact: &FactId) -> String {
    format!("{PREFIX}{fact}")
}
