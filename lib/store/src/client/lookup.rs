//! A client for those who change nothing of it: looked up by id, and held to what it was.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck};
use domain::id::{ClientId, CoachId};
use domain::login_link::LoginGrant;
use runtime::{BoxError, Environment};

use super::standing::{client_id_of, client_pk};
use super::{Page, Record, Standing, StoredClient, key, listed_at, page_start};
use crate::db::{Ask, Db, Item, Part, StoreError, Write, failed, from_item, n, s};

/// The clients table, to read in.
#[derive(Clone)]
pub struct ClientLookup {
    db: Db,
    table: String,
}

impl ClientLookup {
    /// The table that `CLIENTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { db: db.clone(), table: env.config().get("CLIENTS_TABLE")?.to_owned() })
    }

    /// The client with that id, whoever owns it. One that was erased is none.
    pub async fn get(&self, id: &ClientId) -> Result<Option<StoredClient>, StoreError> {
        Ok(match self.standing(id).await? {
            Standing::Known(client) => Some(client),
            Standing::Unknown | Standing::Erased => None,
        })
    }

    /// Where the client stands.
    pub(crate) async fn standing(&self, id: &ClientId) -> Result<Standing, StoreError> {
        Ok(match self.find(id).await? {
            Standing::Unknown => Standing::Unknown,
            Standing::Erased => Standing::Erased,
            Standing::Known(record) => Standing::Known(StoredClient::new(*record)),
        })
    }

    /// Those of these clients that were erased.
    pub async fn erased_among(&self, ids: &BTreeSet<ClientId>) -> Result<BTreeSet<ClientId>, StoreError> {
        let keys = ids.iter().map(|id| key(&client_pk(id))).collect();
        let found = self.db.read(&self.table, keys).await?;
        let erased = found.iter().filter(|item| is_tombstone(item)).map(client_id_of);
        erased.collect()
    }

    pub(super) async fn find(&self, id: &ClientId) -> Result<Standing<Box<Record>>, StoreError> {
        match self.item(&client_pk(id)).await? {
            None => Ok(Standing::Unknown),
            Some(item) if is_tombstone(&item) => Ok(Standing::Erased),
            Some(item) => Ok(Standing::Known(Box::new(from_item("client", item)?))),
        }
    }

    pub(super) async fn item(&self, pk: &str) -> Result<Option<Item>, StoreError> {
        self.db.get(&self.table, key(pk)).await
    }

    /// A page of a coach's active clients in the order of the index. The index may lag behind.
    pub async fn active_page(
        &self,
        coach: &CoachId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<ClientId>, StoreError> {
        const PARTITION: &str = "active_owner";
        let query = self.db.client().query().table_name(&self.table).index_name("active");
        let page = query
            .key_condition_expression("#owner = :coach")
            .expression_attribute_names("#owner", PARTITION)
            .expression_attribute_values(":coach", s(coach.as_str()))
            .projection_expression("pk, listed_at")
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(after.map(|listed_at| page_start(coach, PARTITION, listed_at)))
            .ask()
            .await
            .map_err(|error| failed("Query", error))?;
        let more = page.last_evaluated_key.is_some();
        let items = page.items.unwrap_or_default();
        let next = if more { items.last().and_then(listed_at) } else { None };
        Ok(Page { items: items.iter().map(client_id_of).collect::<Result<_, _>>()?, next })
    }

    /// Part of a transaction: the client has not been erased.
    pub(crate) fn still_there(&self, id: &ClientId) -> Write {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(key(&client_pk(id))))
            .condition_expression("attribute_exists(#owner)")
            .expression_attribute_names("#owner", "owner");
        Part::Client.check(check)
    }

    /// Part of a transaction: the client is active, the same coach's, and in the epoch in which the link was made.
    pub(crate) fn still_grants(&self, grant: &LoginGrant) -> Write {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(key(&client_pk(&grant.client_id))))
            .condition_expression("is_active = :true AND #owner = :coach AND login_epoch = :epoch")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":true", AttributeValue::Bool(true))
            .expression_attribute_values(":coach", s(grant.coach_id.as_str()))
            .expression_attribute_values(":epoch", n(grant.login_epoch));
        Part::Client.check(check)
    }
}

pub(super) fn is_tombstone(item: &Item) -> bool {
    item.contains_key("erased_at")
}
