//! Table `facts`: which of the application's facts have been stored. pk `FACT#<fact_id>`. A fact that is seen twice has
//! one effect, also where another of the same moment came between.
//!
//! 1. `seen` BatchGetItem, consistent: those of a batch.
//! 2. `mark` PutItem. Two that store the same fact at once mark it twice.
//! 3. `mark_once` Part of the transaction that applies a fact about a client: it is applied once, also where nobody
//!    looked whether it was.
//! 4. `begin_round` PutItem at pk `ROUND#<fact_id>#<since when it waits>#<round>`, unless it exists: a fact that waits
//!    goes round once, however many copies of its message there are.

use std::collections::HashSet;

use chrono::TimeDelta;
use domain::fact_time::FactTime;
use domain::id::FactId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment, random_bytes};
use serde::{Deserialize, Serialize};

use crate::db::{self, Db, Item, ItemWrite, Part, StoreError, Table, Write, from_item, n, s, to_item};
use crate::watch::DueMark;

/// How long a fact is remembered.
const RETENTION: TimeDelta = TimeDelta::days(14);

/// How long the round of a fact that waits is remembered: longer than the fact waits.
const ROUND_RETENTION: TimeDelta = TimeDelta::hours(1);

const PREFIX: &str = "FACT#";

/// The circumstances of a fact that is applied.
#[derive(Debug, Clone, Copy)]
pub struct FactContext<'a> {
    pub id: &'a FactId,
    pub occurred_at: FactTime,
    /// Part of a first synchronisation, of which no event is emitted.
    pub backfill: bool,
    pub now: Timestamp,
}

impl FactContext<'_> {
    /// How the fact marks a client, or all of a coach's, as due.
    pub(crate) fn due_mark(self) -> DueMark {
        DueMark { now: self.now, silent: self.backfill }
    }
}

#[derive(Serialize, Deserialize)]
struct FactMark {
    pk: String,
    /// The owner of a round.
    owner: Option<String>,
    /// Seconds: the TTL attribute.
    expires_at: i64,
}

/// The facts that have been stored.
#[derive(Clone)]
pub struct SeenFacts {
    table: Table,
}

impl SeenFacts {
    /// The table that `FACTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "FACTS_TABLE")? })
    }

    /// The facts of these that have been stored.
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

    /// Notes that a fact which waits since then goes round. Returns true if nobody has noted that before.
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
        // A put whose answer was lost is repeated by the SDK and finds its own token.
        let put = put.when("attribute_not_exists(pk) OR #owner = :owner", [(":owner", s(owner))]);
        Ok(put.put_now().await?.is_done())
    }

    /// Returns true if a fact has been stored.
    pub(crate) async fn is_seen(&self, fact: FactContext<'_>) -> Result<bool, StoreError> {
        Ok(!self.seen(&HashSet::from([fact.id.clone()]), fact.now).await?.is_empty())
    }

    /// Part of a transaction: a fact that is applied, which no fact is twice.
    pub(crate) fn mark_once(&self, fact: FactContext<'_>) -> Write {
        unless_alive(self.table.write(mark_item(fact.id, fact.now)), fact.now).put(Part::Fact)
    }

    /// Notes that a fact has been stored.
    pub async fn mark(&self, fact: &FactId, now: Timestamp) -> Result<(), StoreError> {
        self.table.write(mark_item(fact, now)).put_now().await?;
        Ok(())
    }
}

/// The write of a mark that is there no more. TTL deletes late.
pub(crate) fn unless_alive(write: ItemWrite<'_>, now: Timestamp) -> ItemWrite<'_> {
    write.when("attribute_not_exists(pk) OR expires_at <= :now", [(":now", n(now.unix_s()))])
}

fn mark_item(fact: &FactId, now: Timestamp) -> Item {
    to_item(&FactMark { pk: pk(fact), owner: None, expires_at: (now + RETENTION).unix_s() })
}

fn pk(fact: &FactId) -> String {
    format!("{PREFIX}{fact}")
}
