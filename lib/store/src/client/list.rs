//! Lists of a coach's clients on the global indexes, by creation or by update. The indexes project the names, so a
//! filter by name reads a list in its order and drops what it does not show.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use domain::client::{Client, ClientListItem};
use domain::id::CoachId;
use domain::name_filter::{MAX_READ_FOR_NAME, NameFilter};
use domain::time::Timestamp;

use super::item::{list_item, list_position, listed_at, page_start, update_position};
use super::{ClientPage, Clients};
use crate::db::{Item, StoreError, query_up_to, s, text};
use crate::page::{Found, Listed, find_shown};

/// The order of a list of clients.
#[derive(Debug, Clone, Copy)]
pub enum ListOrder {
    /// By creation, newest first.
    Newest,
    /// By update, oldest first, from this time on.
    UpdatedSince(Timestamp),
}

/// The page of a list that a caller asks for.
#[derive(Debug, Clone, Copy)]
pub struct ClientPageRequest<'a> {
    pub order: ListOrder,
    pub active_only: bool,
    /// A part of the names of all clients of the page.
    pub name: Option<&'a NameFilter>,
    /// An earlier page's `next`.
    pub after: Option<&'a str>,
    /// The most clients of the page.
    pub limit: u32,
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
    /// Reads a page of a coach's clients.
    pub async fn page(
        &self,
        coach: &CoachId,
        request: ClientPageRequest<'_>,
    ) -> Result<ClientPage<ClientListItem>, StoreError> {
        match request.order {
            ListOrder::Newest => self.newest(coach, request).await,
            ListOrder::UpdatedSince(since) => self.updated(coach, since, request).await,
        }
    }

    async fn newest(
        &self,
        coach: &CoachId,
        request: ClientPageRequest<'_>,
    ) -> Result<ClientPage<ClientListItem>, StoreError> {
        let (index, partition) = if request.active_only { ("active", "active_owner") } else { ("by_owner", "owner") };
        let query = self.table.query(&format!("#{partition} = :coach"), [(":coach", s(coach.as_str()))]);
        let query = query
            .index_name(index)
            .scan_index_forward(false)
            .set_exclusive_start_key(request.after.map(|listed_at| page_start(coach, partition, listed_at)));
        read_page(query, request, listed_at).await
    }

    /// Filters by activity after the read, so that a page costs the same whatever it shows. It may show fewer clients
    /// than asked for although more follow.
    async fn updated(
        &self,
        coach: &CoachId,
        since: Timestamp,
        request: ClientPageRequest<'_>,
    ) -> Result<ClientPage<ClientListItem>, StoreError> {
        // A time is smaller than all positions of that time.
        let since = since.to_string();
        let from = request.after.map_or(since.as_str(), |after| after.max(since.as_str()));
        let values = [(":coach", s(coach.as_str())), (":from", s(from))];
        let query = self.table.query("#owner = :coach AND #update_position > :from", values).index_name("by_update");
        let mut page = read_page(query, request, |item| text(item, "update_position").to_owned()).await?;
        page.items.retain(|client| client.is_active || !request.active_only);
        Ok(page)
    }
}

/// Reads a page. `next` follows what was read, also what a filter drops.
async fn read_page(
    query: QueryFluentBuilder,
    request: ClientPageRequest<'_>,
    position: impl Fn(&Item) -> String,
) -> Result<ClientPage<ClientListItem>, StoreError> {
    let limit = request.limit;
    let Found { items, read_to } = match request.name {
        Some(name) => find_shown(query, MAX_READ_FOR_NAME, limit, |item| name.matches(text(item, "full_name"))).await?,
        None => {
            // One item more than asked for shows whether there is a next page.
            let wanted = limit + 1;
            let query = query.limit(i32::try_from(wanted).unwrap_or(i32::MAX));
            Found { items: query_up_to(query, wanted as usize).await?, read_to: None }
        }
    };
    let Listed { records, more } = Listed::new(items, limit);
    let next = if more { records.last() } else { read_to.as_ref() }.map(position);
    Ok(ClientPage { items: records.into_iter().map(list_item).collect::<Result<_, _>>()?, next })
}
