//! Table `facts`: ids of the application's facts that have been stored. pk `FACT#<fact_id>`. A fact that arrives twice
//! has one effect, even if another fact of the same time arrives in between.
//!
//! 1. `mark_once` Part of the transaction that stores a fact, so the fact is stored once.
//! 2. `mark` PutItem: a fact that had nothing to write, or that no transaction stores. Two functions that store the
//!    same fact at once both mark it.
//! 3. `is_seen` BatchGetItem, consistent: a fact that no transaction stores.
//! 4. `begin_round` PutItem at pk `ROUND#<fact_id>#<since when it waits>#<round>`, unless it exists: a waiting fact is
//!    enqueued again once, however many copies of its message there are.

use chrono::TimeDelta;
use domain::id::FactId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment, random_bytes};
use serde::Serialize;

use crate::db::{self, Db, Item, ItemWrite, Part, StoreError, Table, Write, n, number, s, to_item};

/// Retention of the mark of a fact.
const RETENTION: TimeDelta = TimeDelta::days(14);

/// Retention of the mark of a round: longer than the fact waits.
const ROUND_RETENTION: TimeDelta = TimeDelta::hours(1);

#[derive(Serialize)]
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
    pub async fn is_seen(&self, fact: &FactId, now: Timestamp) -> Result<bool, StoreError> {
        let mark = self.table.read(vec![db::pk(pk(fact))]).await?.pop();
        // TTL deletes late.
        Ok(mark.and_then(|mark| number(&mark, "expires_at")).is_some_and(|expires_at: i64| expires_at > now.unix_s()))
    }

    /// Part of a transaction: marks a fact as stored. Refused if the fact is marked already.
    pub(crate) fn mark_once(&self, fact: &FactId, now: Timestamp) -> Write {
        unless_alive(self.table.write(mark_item(fact, now)), now).put(Part::Fact)
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
    format!("FACT#{fact}")
}
