//! Table `records`, what the sweep watches.
//! pk `CLIENT#<client_id>`, sk `DOSES_WATCH`: what the rules of computed events ask of a client beside its doses, how its coach's
//! automations stand with it, and when it is due. The key sorts right behind the doses: one query reads both.
//! pk `COACH#<coach_id>`, sk `WATCH`: when the coach's rules last changed, and how far the pass over its clients has come.
//! GSI `due`: `sweep_shard`, `sweep_due_at` (ms). Who cannot come to match anything is not in it.
//!
//! 1. `get`, `coach`      GetItem, consistent.
//! 2. `with_doses`        Query, consistent: a client's watch, and its doses from a month on.
//! 3. `put`, `put_coach`  Parts of transactions, on the version read; `save`, `save_coach`: the same alone.
//! 4. `wake`, `raise_daily_log`  UpdateItem, whatever else the watch is.
//! 5. `due`, `oldest_due` Query `due` of one shard, who has waited longest first.

mod client;
mod coach;

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::query::QueryOutput;
use aws_sdk_dynamodb::types::{ConditionCheck, TransactWriteItem};
use chrono::NaiveDate;
use domain::dose::Month;
use domain::id::{ClientId, CoachId};
use domain::time::Timestamp;
use runtime::{BoxError, Environment};
use serde::Serialize;

pub(crate) use client::{Said, Watch};
pub use coach::CoachWatch;
pub(crate) use coach::{Before, Changed};

use crate::db::{
    Ask, Db, Item, StoreError, Transacted, Written, checking, failed, n, putting_over, query_all, s, sk_of, stand_back,
    to_item, write,
};
use crate::record::{DOSES_PREFIX, Doses};

/// Partitions of the `due` index.
pub const SHARDS: u8 = 4;

const INDEX: &str = "due";
const CLIENT_PREFIX: &str = "CLIENT#";
const COACH_PREFIX: &str = "COACH#";
/// How often a client's partition is read anew when its doses are not yet as its watch says they are.
const MAX_READS: u32 = 6;

/// Who is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    Client(ClientId, CoachId),
    /// All clients of the coach, whose rules have changed.
    Coach(CoachId),
    /// An entry of another form, by its key. It keeps nobody else from being judged.
    Unreadable(String),
}

/// Where a page of those who are due ended.
#[derive(Debug, Clone)]
pub struct DueStart(Item);

/// What an evaluation reads of a client.
pub(crate) struct Observed {
    pub(crate) watch: Watch,
    pub(crate) doses: Doses,
}

/// The watched items of the records table.
#[derive(Clone)]
pub(crate) struct Watches {
    db: Db,
    table: String,
}

impl Watches {
    /// The table that `RECORDS_TABLE` names.
    pub(crate) fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("RECORDS_TABLE")?.to_owned() })
    }

    /// A client's watch.
    pub(crate) async fn get(&self, client: &ClientId) -> Result<Option<Watch>, StoreError> {
        self.item(client::key(client)).await?.map(Watch::from_item).transpose()
    }

    /// A coach's watch; an empty one where there is none yet.
    pub(crate) async fn coach(&self, coach: &CoachId) -> Result<CoachWatch, StoreError> {
        let found = self.item(coach::key(coach)).await?;
        found.map_or_else(|| Ok(CoachWatch::new(coach)), CoachWatch::from_item)
    }

    async fn item(&self, key: Item) -> Result<Option<Item>, StoreError> {
        self.db.get(&self.table, key).await
    }

    /// A client's watch with its doses from the month of a date on, no older than the watch; without doses where no date is given.
    pub(crate) async fn with_doses(
        &self,
        client: &ClientId,
        from: Option<NaiveDate>,
    ) -> Result<Option<Observed>, StoreError> {
        let Some(from) = from else {
            return Ok(self.get(client).await?.map(|watch| Observed { watch, doses: Doses::default() }));
        };
        let first = format!("{DOSES_PREFIX}{}", Month::of(from));
        for round in 0..MAX_READS {
            stand_back(round).await;
            let mut items = self.partition_from(client, &first).await?;
            let Some(place) = items.iter().position(|item| sk_of(item) == client::SORT_KEY) else { return Ok(None) };
            let watch = Watch::from_item(items.swap_remove(place))?;
            // A query may see one item of a transaction as it is after it, and another as it was before.
            if watch.is_met_by(&first, &versions_of(&items)) {
                return Ok(Some(Observed { watch, doses: Doses::of(items)? }));
            }
        }
        Err(StoreError::kept_changing("the client's doses"))
    }

    async fn partition_from(&self, client: &ClientId, first: &str) -> Result<Vec<Item>, StoreError> {
        // Backwards: the watch first, so that doses are seldom older than it.
        let query = self.db.client().query().table_name(&self.table).consistent_read(true).scan_index_forward(false);
        let query = query
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":pk", s(format!("{CLIENT_PREFIX}{client}")))
            .expression_attribute_values(":first", s(first))
            .expression_attribute_values(":last", s(client::SORT_KEY));
        query_all(query).await
    }

    /// Part of a transaction: a client's watch in the place of the one that was read.
    pub(crate) fn put(&self, watch: &Watch) -> TransactWriteItem {
        putting_over(&self.table, to_item(&watch.next_version()), watch.found_version())
    }

    /// The same of a coach's.
    pub(crate) fn put_coach(&self, watch: &CoachWatch) -> TransactWriteItem {
        putting_over(&self.table, to_item(&watch.next_version()), watch.found_version())
    }

    /// Part of a transaction: a coach's rules have been the same since an instant.
    pub(crate) fn unchanged_rules(&self, coach: &CoachId, since: Timestamp) -> TransactWriteItem {
        let check = ConditionCheck::builder().table_name(&self.table).set_key(Some(coach::key(coach)));
        let check = check
            .condition_expression("attribute_not_exists(rules_saved_at) OR rules_saved_at < :since")
            .expression_attribute_values(":since", s(coach::saved_before(since).to_string()));
        checking(check)
    }

    /// Stores a client's watch in the place of the one that was read. False: it has changed since.
    pub(crate) async fn save(&self, watch: &Watch) -> Result<bool, StoreError> {
        self.save_item(&watch.next_version(), watch.found_version()).await
    }

    /// Makes a client due, unless it is already. Nothing of its watch but that is read.
    pub(crate) async fn wake(&self, client: &ClientId, at: Timestamp) -> Result<(), StoreError> {
        const NOT_YET: &str = "attribute_exists(pk) AND (attribute_not_exists(sweep_due_at) OR sweep_due_at > :at)";
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(client::key(client)));
            update
                .update_expression("SET sweep_due_at = :at ADD version :one")
                .condition_expression(NOT_YET)
                .expression_attribute_values(":at", n(at.ms()))
                .expression_attribute_values(":one", n(1))
                .ask()
        });
        // Refused: it is due, or gone.
        written.await?;
        Ok(())
    }

    /// A later last date with a daily log, whatever else has changed of a client's watch.
    pub(crate) async fn raise_daily_log(&self, client: &ClientId, last: NaiveDate) -> Result<(), StoreError> {
        const LATER: &str =
            "attribute_exists(pk) AND (attribute_not_exists(last_daily_log_on) OR last_daily_log_on < :last)";
        let written = write("UpdateItem", || {
            let update = self.db.client().update_item().table_name(&self.table).set_key(Some(client::key(client)));
            update
                .update_expression("SET last_daily_log_on = :last ADD version :one")
                .condition_expression(LATER)
                .expression_attribute_values(":last", s(last.to_string()))
                .expression_attribute_values(":one", n(1))
                .ask()
        });
        // Refused: a later one is there, or the client is gone.
        written.await?;
        Ok(())
    }

    /// Puts a coach's watch in the place of the one that was read; whether that was still there.
    pub(crate) async fn save_coach(&self, watch: &CoachWatch) -> Result<bool, StoreError> {
        self.save_item(&watch.next_version(), watch.found_version()).await
    }

    async fn save_item<R: Serialize>(&self, record: &R, version: Option<u64>) -> Result<bool, StoreError> {
        let item = to_item(record);
        let written = write("PutItem", || {
            let put = self.db.client().put_item().table_name(&self.table).set_item(Some(item.clone()));
            let put = match version {
                None => put.condition_expression("attribute_not_exists(pk)"),
                Some(version) => {
                    put.condition_expression("version = :version").expression_attribute_values(":version", n(version))
                }
            };
            put.ask()
        });
        Ok(matches!(written.await?, Written::Done(_)))
    }

    /// Carries out all of the writes or none. False: something has changed since it was read.
    pub(crate) async fn commit(&self, writes: &[TransactWriteItem]) -> Result<bool, StoreError> {
        Ok(matches!(self.db.transact(writes).await?, Transacted::Done))
    }

    /// Those of one shard who are due by an instant, at most `limit`, from where an earlier page ended.
    pub(crate) async fn due(
        &self,
        shard: u8,
        by: Timestamp,
        limit: i32,
        start: Option<DueStart>,
    ) -> Result<(Vec<Due>, Option<DueStart>), StoreError> {
        let page = self.due_page(shard, by, limit, start).await?;
        Ok((page.items().iter().map(read_due).collect(), page.last_evaluated_key.map(DueStart)))
    }

    /// Since when the one who has waited longest in a shard has been due.
    pub(crate) async fn oldest_due(&self, shard: u8, by: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let page = self.due_page(shard, by, 1, None).await?;
        let since = page.items().first().and_then(|item| item.get("sweep_due_at")?.as_n().ok()?.parse().ok());
        Ok(since.map(Timestamp::from_ms))
    }

    async fn due_page(
        &self,
        shard: u8,
        by: Timestamp,
        limit: i32,
        start: Option<DueStart>,
    ) -> Result<QueryOutput, StoreError> {
        let query = self.db.client().query().table_name(&self.table).index_name(INDEX);
        query
            .key_condition_expression("sweep_shard = :shard AND sweep_due_at <= :by")
            .expression_attribute_values(":shard", s(shard.to_string()))
            .expression_attribute_values(":by", n(by.ms()))
            .limit(limit)
            .set_exclusive_start_key(start.map(|start| start.0))
            .ask()
            .await
            .map_err(|error| failed("Query", error))
    }
}

/// The versions of a client's doses, by their sort keys.
fn versions_of(items: &[Item]) -> BTreeMap<&str, u64> {
    let version = |item: &Item| item.get("version")?.as_n().ok()?.parse().ok();
    items.iter().filter_map(|item| Some((sk_of(item), version(item)?))).collect()
}

fn read_due(item: &Item) -> Due {
    let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).map_or("", String::as_str);
    let (pk, coach) = (text("pk"), CoachId::parse(text("coach_id")));
    let client = pk.strip_prefix(CLIENT_PREFIX).map(ClientId::parse);
    match (client, coach) {
        (Some(Ok(client)), Ok(coach)) => Due::Client(client, coach),
        (None, Ok(coach)) if pk.starts_with(COACH_PREFIX) => Due::Coach(coach),
        _ => Due::Unreadable(pk.to_owned()),
    }
}

fn shard_of(pk: &str) -> String {
    let sum: u32 = pk.bytes().map(u32::from).sum();
    (sum % u32::from(SHARDS)).to_string()
}
