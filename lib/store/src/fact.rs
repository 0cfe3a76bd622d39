//! Table `facts`: which of the application's facts have been stored. pk `FACT#<fact_id>`. A fact that is seen twice has one effect, also
//! where another of the same moment came between.
//!
//! 1. `seen` BatchGetItem, consistent: those of a batch.
//! 2. `mark` PutItem. Two that store the same fact at once mark it twice.
//! 3. `mark_once` Part of the transaction that applies a fact about a client: it is applied once, also where nobody
//!    looked whether it was.
//! 4. `begin_round` PutItem at pk `ROUND#<fact_id>#<since when it waits>#<round>`, unless it exists: a fact that waits
//!    goes round once, however many copies of its message there are.

use std::collections::HashSet;

use aws_sdk_dynamodb::types::Put;
use chrono::TimeDelta;
use domain::fact_time::FactTime;
use domain::id::FactId;
use domain::time::Timestamp;
use runtime::{BoxError, Environment, random_bytes};
use serde::{Deserialize, Serialize};

use crate::db::{Ask, Db, Item, Part, StoreError, Write, Written, from_item, n, s, to_item, write};
use crate::watch::Marked;

/// How long a fact is remembered.
const RETENTION: TimeDelta = TimeDelta::days(14);

/// .. and a round of one that waits: longer than it waits.
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
    pub(crate) fn marked(self) -> Marked {
        Marked { now: self.now, silent: self.backfill }
    }
}

#[derive(Serialize, Deserialize)]
struct Mark {
    pk: String,
    /// Of a round: whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Seconds: the TTL attribute.
    expires_at: i64,
}

/// The facts that have been stored.
#[derive(Clone)]
pub struct SeenFacts {
    db: Db,
    table: String,
}

impl SeenFacts {
    /// The table that `FACTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("FACTS_TABLE")?.to_owned() })
    }

    /// Which of these have been stored.
    pub async fn seen(&self, facts: &HashSet<FactId>, now: Timestamp) -> Result<HashSet<FactId>, StoreError> {
        let keys = facts.iter().map(|id| Item::from([("pk".to_owned(), s(pk(id)))])).collect();
        let mut seen = HashSet::new();
        for item in self.db.read(&self.table, keys).await? {
            let mark: Mark = from_item("fact", item)?;
            let id = mark.pk.strip_prefix(PREFIX).and_then(|id| FactId::parse(id).ok());
            // TTL deletes late.
            seen.extend(id.filter(|_| mark.expires_at > now.unix_s()));
        }
        Ok(seen)
    }

    /// Notes that a fact which waits since then goes round; whether nobody has noted that before.
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
        let item = to_item(&Mark { pk, owner: Some(owner.clone()), expires_at });
        let written = write("PutItem", || {
            let put = self.db.client().put_item().table_name(&self.table).set_item(Some(item.clone()));
            // A put whose answer was lost is repeated by the SDK and finds its own token.
            put.condition_expression("attribute_not_exists(pk) OR #owner = :owner")
                .expression_attribute_names("#owner", "owner")
                .expression_attribute_values(":owner", s(&owner))
                .ask()
        });
        Ok(matches!(written.await?, Written::Done(_)))
    }

    /// Returns true if a fact has been stored.
    pub(crate) async fn is_seen(&self, fact: FactContext<'_>) -> Result<bool, StoreError> {
        Ok(!self.seen(&HashSet::from([fact.id.clone()]), fact.now).await?.is_empty())
    }

    /// Part of a transaction: a fact that is applied, which no fact is twice.
    pub(crate) fn mark_once(&self, fact: FactContext<'_>) -> Write {
        let put = Put::builder().table_name(&self.table).set_item(Some(marked(fact.id, fact.now)));
        // TTL deletes late.
        let put = put
            .condition_expression("attribute_not_exists(pk) OR expires_at <= :now")
            .expression_attribute_values(":now", n(fact.now.unix_s()));
        Part::Fact.put(put)
    }

    /// Notes that a fact has been stored.
    pub async fn mark(&self, fact: &FactId, now: Timestamp) -> Result<(), StoreError> {
        let item = marked(fact, now);
        write("PutItem", || {
            let put = self.db.client().put_item().table_name(&self.table).set_item(Some(item.clone()));
            put.ask()
        })
        .await?;
        Ok(())
    }
}

fn marked(fact: &FactId, now: Timestamp) -> Item {
    to_item(&Mark { pk: pk(fact), owner: None, expires_at: (now + RETENTION).unix_s() })
}

fn pk(fact: &FactId) -> String {
    format!("{PREFIX}{fact}")
}
