//! Table `records`: what happens in a client's life. pk `CLIENT#<client_id>`:
//! sk `CHECKIN#<id>`: a check-in. LSI `by_time`: `listed_at` (`<submitted_at>#<id>`), absent while unknown and once
//! deleted.
//! sk `GRADES`: the latest grade of each wellness system, sealed.
//! sk `LOGS#<yyyy>`: the daily log's dates of a year, in the set `logged` as month * 100 + day, and `d<mmdd>` for each
//! date of a fact: the time of the fact in ms, negative for a deletion.
//! sk `DOSES#<yyyy-mm>`, `DOSES#SCHEDULE`: module `doses`. sk `DOSES_WATCH`: module `watch`.
//! sk `DOSELOG#<id>`: one log of a dose, or that it was deleted: either for good.
//! sk `SEEN#<event_id>`, `SEEN#MESSAGE#<message_id>`: a mark of what was emitted. Kept for 14 days.
//!
//! 1. `check_ins`, `logged_dates`, `doses`  Query, newest first.
//! 2. `submit_check_in`, `log_dose`, `advance_phase` and the like  Reads, then a transaction on the versions read.
//! 3. `save_daily_log`, `delete_daily_log`  UpdateItem, unless something later was said of the date.
//! 4. `erase`       Query and BatchWriteItem of the partition, a thousand items at a time.

mod check_in;
mod daily_log;
mod dose;
mod emitted;

use aws_sdk_dynamodb::types::{DeleteRequest, WriteRequest};
use chrono::TimeDelta;
use domain::id::ClientId;
use domain::time::Timestamp;
use futures::future::try_join;
use runtime::{BoxError, Environment};

use crate::client::{ClientState, Clients, StoredClient};
use crate::db::{
    self, Db, Item, MAX_ROUNDS, MeteredRequest, Part, StoreError, Table, Transacted, Write, backoff, failed, n,
    query_page, retry, s, sk_of,
};
pub use crate::doses::Doses;
use crate::fact::{FactContext, SeenFacts, unless_alive};
use crate::outbox::Outbox;
use crate::vault::Vault;
use crate::watch::Watches;

/// How long it is remembered that something was emitted.
const SEEN_RETENTION: TimeDelta = TimeDelta::days(14);
/// Items that one call erases.
const MAX_ERASED: i32 = 1_000;
/// Items that one BatchWriteItem takes.
const MAX_BATCH_WRITES: usize = 25;

/// The result of applying a fact about a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The record is stored, and its fact is marked.
    Applied,
    /// The stored record is newer or the same, or the client has been erased.
    Unchanged,
    /// The client has not been seen yet.
    UnknownClient,
}

/// The records table, and what a record touches beside it.
#[derive(Clone)]
pub struct Records {
    table: Table,
    vault: Vault,
    clients: Clients,
    watches: Watches,
    facts: SeenFacts,
    outbox: Outbox,
}

/// The records table for those who only read.
#[derive(Clone)]
pub struct RecordReader {
    table: Table,
}

impl RecordReader {
    /// The table that `RECORDS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "RECORDS_TABLE")? })
    }
}

impl Records {
    /// The table that `RECORDS_TABLE` names.
    pub fn new(
        env: &Environment,
        db: &Db,
        vault: &Vault,
        clients: &Clients,
        outbox: &Outbox,
    ) -> Result<Self, BoxError> {
        Ok(Self {
            table: Table::new(env, db, "RECORDS_TABLE")?,
            vault: vault.clone(),
            clients: clients.clone(),
            watches: Watches::new(env, db)?,
            facts: SeenFacts::new(env, db)?,
            outbox: outbox.clone(),
        })
    }

    /// Part of a transaction: a mark that something was emitted, which happens once.
    fn mark(&self, client: &ClientId, what: &str, now: Timestamp) -> Write {
        let mut item = key(client, &format!("SEEN#{what}"));
        item.insert("expires_at".to_owned(), n((now + SEEN_RETENTION).unix_s()));
        unless_alive(self.table.write(item), now).put(Part::EmittedMark)
    }

    /// Applies a fact about a client: all of the writes that `decide` makes of the client and of what `read` finds, and
    /// the fact's mark, or none. `decide` returns no writes where the stored record is newer or the same.
    async fn apply<T, R, D>(
        &self,
        what: &'static str,
        client: &ClientId,
        fact: FactContext<'_>,
        read: impl Fn() -> R,
        decide: impl Fn(StoredClient, T) -> D,
    ) -> Result<RecordOutcome, StoreError>
    where
        R: Future<Output = Result<T, StoreError>>,
        D: Future<Output = Result<Option<Vec<Write>>, StoreError>>,
    {
        retry(what, || async {
            let (standing, found) = try_join(self.clients.lookup.state(client), read()).await?;
            let stored = match known_client(standing) {
                Ok(stored) => stored,
                Err(outcome) => return Ok(Some(outcome)),
            };
            let Some(mut writes) = decide(stored.clone(), found).await? else {
                return Ok(Some(RecordOutcome::Unchanged));
            };
            writes.push(self.facts.mark_once(fact));
            Ok(match self.clients.commit(&stored, &writes, fact.now).await? {
                Transacted::Done => Some(RecordOutcome::Applied),
                // Applied before, or emitted under another fact. Otherwise something has changed since it was read.
                Transacted::Refused(refused) => {
                    (refused.is(Part::Fact) || refused.is(Part::EmittedMark)).then_some(RecordOutcome::Unchanged)
                }
            })
        })
        .await
    }

    /// Removes what there is of a client, a thousand items at most. False: there is more.
    pub async fn erase(&self, client: &ClientId) -> Result<bool, StoreError> {
        let query = self.table.query("pk = :pk", [(":pk", s(partition(client)))]).consistent_read(true);
        let page = query_page(query.projection_expression("pk, sk").limit(MAX_ERASED)).await?;
        for chunk in page.items.chunks(MAX_BATCH_WRITES) {
            self.delete_all(chunk).await?;
        }
        Ok(page.next.is_none())
    }

    async fn delete_all(&self, keys: &[Item]) -> Result<(), StoreError> {
        let delete = |key: &Item| {
            let request = DeleteRequest::builder().set_key(Some(key.clone())).build().expect("a key is given");
            WriteRequest::builder().delete_request(request).build()
        };
        let (mut wanted, mut round): (Vec<WriteRequest>, _) = (keys.iter().map(delete).collect(), 0);
        // Deletions that DynamoDB had no capacity for are tried again.
        while !wanted.is_empty() {
            if round == MAX_ROUNDS {
                let source = format!("{} items are left undeleted", wanted.len()).into();
                return Err(StoreError::Unavailable { operation: "BatchWriteItem", source });
            }
            backoff(round).await;
            round += 1;
            let request = self.table.db.client().batch_write_item().request_items(&self.table.name, wanted);
            let written = request.send_metered().await.map_err(|error| failed("BatchWriteItem", error))?;
            wanted = written.unprocessed_items.unwrap_or_default().remove(&self.table.name).unwrap_or_default();
        }
        Ok(())
    }
}

/// The client, or what there is to say where it is not known.
fn known_client<T>(standing: ClientState<T>) -> Result<T, RecordOutcome> {
    match standing {
        ClientState::Known(stored) => Ok(stored),
        ClientState::Unknown => Err(RecordOutcome::UnknownClient),
        // Whatever later facts say of it, nothing comes back.
        ClientState::Erased => Err(RecordOutcome::Unchanged),
    }
}

fn partition(client: &ClientId) -> String {
    format!("CLIENT#{client}")
}

fn key(client: &ClientId, sk: &str) -> Item {
    db::key(partition(client), sk)
}

/// The item with that sort key among those of one client that were read.
fn take_item(items: &mut Vec<Item>, sk: &str) -> Option<Item> {
    let index = items.iter().position(|item| sk_of(item) == sk);
    index.map(|index| items.swap_remove(index))
}
