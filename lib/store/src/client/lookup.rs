//! Reads and checks of clients, for callers that change no client.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::id::{ClientId, CoachId};
use domain::login_link::LoginGrant;
use runtime::{BoxError, Environment};

use super::item::{ClientState, StoredClient, client_id_of, client_pk, listed_at, page_start};
use crate::db::{self, Db, Item, Part, StoreError, Table, Write, from_item, n, query_all, query_page, s};

/// A page of a list of clients.
#[derive(Debug)]
pub struct ClientPage<T> {
    pub items: Vec<T>,
    /// The position after the page; `None` at the end.
    pub next: Option<String>,
}

/// The clients table, for reading only.
#[derive(Clone)]
pub struct ClientLookup {
    table: Table,
}

impl ClientLookup {
    /// The table that `CLIENTS_TABLE` names.
    pub fn new(env: &Environment, db: &Db) -> Result<Self, BoxError> {
        Ok(Self { table: Table::new(env, db, "CLIENTS_TABLE")? })
    }

    /// Reads the client with that id, of any coach; `None` if the client was erased.
    pub async fn get(&self, id: &ClientId) -> Result<Option<StoredClient>, StoreError> {
        Ok(match self.state(id).await? {
            ClientState::Known(client) => Some(*client),
            ClientState::Unknown | ClientState::Erased => None,
        })
    }

    /// Reads the state of a client.
    pub async fn state(&self, id: &ClientId) -> Result<ClientState, StoreError> {
        match self.table.item(db::pk(client_pk(id))).await? {
            None => Ok(ClientState::Unknown),
            Some(item) if is_tombstone(&item) => Ok(ClientState::Erased),
            Some(item) => Ok(ClientState::Known(Box::new(from_item("client", item)?))),
        }
    }

    /// Reads which of these clients were erased.
    pub async fn erased_among(&self, ids: &BTreeSet<ClientId>) -> Result<BTreeSet<ClientId>, StoreError> {
        let found = self.table.read(ids.iter().map(|id| db::pk(client_pk(id))).collect()).await?;
        found.iter().filter(|item| is_tombstone(item)).map(client_id_of).collect()
    }

    /// Reads a page of a coach's active clients in the order of the index. The index may lag behind.
    pub async fn active_page(
        &self,
        coach: &CoachId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<ClientPage<ClientId>, StoreError> {
        let query = self.table.query("active_owner = :coach", [(":coach", s(coach.as_str()))]).index_name("active");
        let query = query
            .projection_expression("pk, listed_at")
            .limit(i32::try_from(limit).unwrap_or(i32::MAX))
            .set_exclusive_start_key(after.map(|listed_at| page_start(coach, "active_owner", listed_at)));
        let page = query_page(query).await?;
        let next = page.items.last().filter(|_| page.next.is_some()).map(listed_at);
        Ok(ClientPage { items: page.items.iter().map(client_id_of).collect::<Result<_, _>>()?, next })
    }

    /// Counts the clients of a coach, and the active ones, by the index. The index may lag behind.
    pub async fn count(&self, coach: &CoachId) -> Result<(u32, u32), StoreError> {
        let query = self.table.query("#owner = :coach", [(":coach", s(coach.as_str()))]).index_name("by_owner");
        let items = query_all(query.projection_expression("is_active")).await?;
        let active = items.iter().filter(|item| item.get("is_active") == Some(&AttributeValue::Bool(true))).count();
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Ok((number(items.len()), number(active)))
    }

    /// Part of a transaction: checks that the client is not erased.
    pub(crate) fn check_not_erased(&self, id: &ClientId) -> Write {
        self.table.write(db::pk(client_pk(id))).when("attribute_exists(#owner)", []).check(Part::Client)
    }

    /// Part of a transaction: checks that the client is active, has the same coach, and is in the login epoch of the
    /// link.
    pub(crate) fn check_grant(&self, grant: &LoginGrant) -> Write {
        let values = [
            (":true", AttributeValue::Bool(true)),
            (":coach", s(grant.coach_id.as_str())),
            (":epoch", n(grant.login_epoch)),
        ];
        let client = self.table.write(db::pk(client_pk(&grant.client_id)));
        client.when("is_active = :true AND #owner = :coach AND login_epoch = :epoch", values).check(Part::Client)
    }
}

pub(super) fn is_tombstone(item: &Item) -> bool {
    item.contains_key("erased_at")
}
