//! Table `outbox`, as operators see it: how many entries wait, and since when. The index has ids and times alone, so
//! this needs no vault. An index lags behind its table by some milliseconds.
//!
//! 1. `unsent` Query of each shard of `unsent`, to its end.

use domain::time::Timestamp;
use futures::future::try_join_all;
use runtime::{BoxError, Environment};

use crate::db::{Db, StoreError, Table, number, query_page, s};
use crate::shard::SHARDS;

/// The entries of the outbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unsent {
    /// All entries, those included that are held until a later time.
    pub entries: u64,
    /// The time at which the oldest entry was to be sent. `None`: no entry is due.
    pub oldest_due_at: Option<Timestamp>,
}

/// The index of unsent entries, for reading only.
#[derive(Clone)]
pub struct UnsentEntries {
    table: Table,
}

impl Unsent {
    fn and(self, other: Self) -> Self {
        let oldest = [self.oldest_due_at, other.oldest_due_at].into_iter().flatten().min();
        Self { entries: self.entries + other.entries, oldest_due_at: oldest }
    }
}

impl UnsentEntries {
    /// The index of the table that `OUTBOX_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "OUTBOX_TABLE")? })
    }

    /// Counts the entries, and finds the oldest that is due.
    pub async fn unsent(&self, now: Timestamp) -> Result<Unsent, StoreError> {
        let shards = try_join_all((0..SHARDS).map(|shard| self.in_shard(shard, now))).await?;
        Ok(shards.into_iter().fold(Unsent::default(), Unsent::and))
    }

    async fn in_shard(&self, shard: u8, now: Timestamp) -> Result<Unsent, StoreError> {
        let query = self.table.query("unsent_shard = :shard", [(":shard", s(shard.to_string()))]).index_name("unsent");
        let query = query.projection_expression("send_after");
        let (mut unsent, mut start) = (Unsent::default(), None);
        loop {
            let page = query_page(query.clone().set_exclusive_start_key(start)).await?;
            let times = page.items.iter().filter_map(|item| number(item, "send_after")).map(Timestamp::from_ms);
            let oldest_due_at = times.min().filter(|at| *at <= now);
            let entries = u64::try_from(page.items.len()).unwrap_or(u64::MAX);
            unsent = unsent.and(Unsent { entries, oldest_due_at });
            start = page.next;
            if start.is_none() {
                return Ok(unsent);
            }
        }
    }
}
