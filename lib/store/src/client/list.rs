//! Lists of a coach's clients on the global indexes, by creation or by update.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::client::{Client, ClientListItem};
use domain::id::CoachId;
use domain::time::Timestamp;

use super::item::{list_item, list_position, listed_at, page_start, update_position};
use super::{ClientPage, Clients};
use crate::db::{Item, StoreError, query_up_to, s, text};
use crate::page::Listed;

/// The order of a list of clients.
#[derive(Debug, Clone, Copy)]
pub enum ListOrder {
    /// By creation, newest first.
    Newest,
    /// By update, oldest first, from this time on.
    UpdatedSince(Timestamp),
}

impl ListOrder {
    /// A client's position in the list, which a cursor holds.
    pub fn position(self, client: &Client) -> String {
        match self {
            Self::Newest => list_position(client),
            Self::UpdatedSince(_) => update_position(client),
        }
    }

    /// Returns true if the list has the client, and a page after that position shows it.
    pub fn shows(self, client: &Client, after: Option<&str>) -> bool {
        let position = self.position(client);
        match self {
            Self::Newest => after.is_none_or(|after| position.as_str() < after),
            Self::UpdatedSince(since) => {
                client.updated_at >= since && after.is_none_or(|after| position.as_str() > after)
            }
        }
    }
}

impl Clients {
    /// Reads a page of a coach's clients. `after` is an earlier page's `next`.
    pub async fn page(
        &self,
        coach: &CoachId,
        order: ListOrder,
        active_only: bool,
        after: Option<&str>,
        limit: u32,
    ) -> Result<ClientPage<ClientListItem>, StoreError> {
        match order {
            ListOrder::Newest => self.newest(coach, active_only, after, limit).await,
            ListOrder::UpdatedSince(since) => self.updated(coach, since, active_only, after, limit).await,
        }
    }

    async fn newest(
        &self,
        coach: &CoachId,
        active_only: bool,
        after: Option<&str>,
        limit: u32,
    ) -> Result<ClientPage<ClientListItem>, StoreError> {
        let (index, partition) = if active_only { ("active", "active_owner") } else { ("by_owner", "owner") };
        let query = self.table.query(&format!("#{partition} = :coach"), [(":coach", s(coach.as_str()))]);
        let query = query
            .index_name(index)
            .scan_index_forward(false)
            .set_exclusive_start_key(after.map(|listed_at| page_start(coach, partition, listed_at)));
        read_page(query, limit, listed_at, |_| true).await
    }

    /// Filters by activity after the read, so that a page costs the same whatever it shows. It may show fewer clients
    /// than asked for although more follow.
    async fn updated(
        &self,
        coach: &CoachId,
        since: Timestamp,
        active_only: bool,
        after: Option<&str>,
        limit: u32,
    ) -> Result<ClientPage<ClientListItem>, StoreError> {
        // A time is smaller than all positions of that time.
        let since = since.to_string();
        let from = after.map_or(since.as_str(), |after| after.max(since.as_str()));
        let values = [(":coach", s(coach.as_str())), (":from", s(from))];
        let query = self.table.query("#owner = :coach AND #update_position > :from", values);
        let position = |item: &Item| text(item, "update_position").to_owned();
        read_page(query.index_name("by_update"), limit, position, |client| client.is_active || !active_only).await
    }
}

/// Reads a page. `next` follows what was read, also what a filter drops.
async fn read_page(
    query: QueryFluentBuilder,
    limit: u32,
    position: impl Fn(&Item) -> String,
    is_shown: impl Fn(&ClientListItem) -> bool,
) -> Result<ClientPage<ClientListItem>, StoreError> {
    // One item more than asked for shows whether there is a next page.
    let wanted = limit + 1;
    let query = query.limit(i32::try_from(wanted).unwrap_or(i32::MAX));
    let Listed { records, more } = Listed::new(query_up_to(query, wanted as usize).await?, limit);
    let next = records.last().filter(|_| more).map(position);
    let items = records.into_iter().map(list_item).collect::<Result<Vec<_>, _>>()?;
    Ok(ClientPage { items: items.into_iter().filter(is_shown).collect(), next })
}
