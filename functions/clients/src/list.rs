//! `GET /v1/clients`: a coach's clients, newest first, or in the order of their updates (`updated_since`).
//!
//! A filter by `email` or `external_id` reads the client itself, so a new client is found at once. A filter by `name`
//! reads the list. `next_cursor` and `cursor` lead through rosters of more than one page.

use domain::client::{Client, ClientList, ClientListItem, MAX_CLIENT_EMAIL_CHARS};
use domain::cursor::CursorList;
use domain::email::Email;
use domain::external_id::ExternalId;
use domain::fields::Invalid;
use domain::id::ClientId;
use domain::list::CLIENT_PAGE;
use domain::name_filter::NameFilter;
use domain::query::{parsed, time};
use domain::time::Timestamp;
use edge::{Inbound, Partner, Problem, Reply};
use store::StoreError;
use store::client::{ClientPageRequest, ListOrder};

use crate::App;

const EMAIL: &str = "email";
const EXTERNAL_ID: &str = "external_id";

/// The clients with the address of the query, of any coach.
pub(crate) async fn find(app: App, inbound: Inbound) -> Result<Vec<Client>, StoreError> {
    match inbound.query(EMAIL).filter(|email| email.chars().count() <= MAX_CLIENT_EMAIL_CHARS) {
        Some(email) => clients_with_email(&app, &email).await,
        None => Ok(Vec::new()),
    }
}

pub(crate) async fn list(
    app: App,
    partner: Partner,
    inbound: Inbound,
    with_email: Result<Vec<Client>, StoreError>,
) -> Result<Reply, Problem> {
    let page = PageQuery::parse(&inbound, &partner)?;
    let external_id = external_id(&inbound)?;
    let found = match (inbound.query(EMAIL), &external_id) {
        (Some(email), _) => {
            check_length(&email)?;
            with_email?
        }
        (None, Some(id)) => app.clients.with_external_id(&partner.coach, id).await?.into_iter().collect(),
        (None, None) => return page.read(&app, &partner).await,
    };
    let is_wanted = |client: &Client| {
        let has_id = external_id.is_none() || client.profile.external_id == external_id;
        client.coach_id == partner.coach && has_id
    };
    page.of(found.into_iter().filter(is_wanted).collect())
}

/// The clients with an address. The address may be one that only the application accepts. A `+` that was not encoded
/// arrives as a blank.
async fn clients_with_email(app: &App, email: &str) -> Result<Vec<Client>, StoreError> {
    let mut found = app.clients.with_email(&Email::unchecked(email)).await?;
    if email.contains(' ') {
        found.extend(app.clients.with_email(&Email::unchecked(&email.replace(' ', "+"))).await?);
    }
    Ok(found)
}

fn check_length(email: &str) -> Result<(), Problem> {
    if email.chars().count() > MAX_CLIENT_EMAIL_CHARS {
        let rule = format!("must be at most {MAX_CLIENT_EMAIL_CHARS} characters");
        return Err(Invalid::field(EMAIL, rule).into());
    }
    Ok(())
}

fn external_id(inbound: &Inbound) -> Result<Option<ExternalId>, Invalid> {
    inbound.query(EXTERNAL_ID).map(|text| ExternalId::filter(EXTERNAL_ID, &text)).transpose()
}

/// The page that a caller asks for.
struct PageQuery<'a> {
    list: CursorList<'a>,
    order: ListOrder,
    /// The position after which the page begins.
    after: Option<String>,
    active_only: bool,
    /// `None` with a filter that reads the client itself.
    name: Option<NameFilter>,
    limit: u32,
}

impl<'a> PageQuery<'a> {
    fn parse(inbound: &Inbound, partner: &'a Partner) -> Result<Self, Problem> {
        let since = parsed(|name| inbound.query(name), "updated_since", time)?;
        let order = since.map_or(ListOrder::Newest, ListOrder::UpdatedSince);
        let list = CursorList { name: name_of(order), coach: &partner.coach };
        Ok(Self {
            list,
            order,
            after: list.parse(inbound.query("cursor").as_deref(), parse_position)?,
            active_only: inbound.query("active").as_deref() == Some("true"),
            name: NameFilter::from_query(|name| inbound.query(name), &[EMAIL, EXTERNAL_ID])?,
            limit: CLIENT_PAGE.parse(inbound.query("limit").as_deref()),
        })
    }

    /// Reads the page from an index.
    async fn read(&self, app: &App, partner: &Partner) -> Result<Reply, Problem> {
        let Self { order, active_only, limit, .. } = *self;
        let (name, after) = (self.name.as_ref(), self.after.as_deref());
        let request = ClientPageRequest { order, active_only, name, after, limit };
        let page = app.clients.page(&partner.coach, request).await?;
        self.reply(page.items, page.next.as_deref())
    }

    /// The page of these clients.
    fn of(&self, mut found: Vec<Client>) -> Result<Reply, Problem> {
        let after = self.after.as_deref();
        found.retain(|client| self.order.shows(client, after) && (client.is_active || !self.active_only));
        found.sort_by_cached_key(|client| self.order.position(client));
        if matches!(self.order, ListOrder::Newest) {
            found.reverse();
        }
        let limit = self.limit as usize;
        let last = found[..found.len().min(limit)].last().filter(|_| found.len() > limit);
        let next = last.map(|client| self.order.position(client));
        self.reply(found.iter().take(limit).map(Client::list_item).collect(), next.as_deref())
    }

    fn reply(&self, clients: Vec<ClientListItem>, next: Option<&str>) -> Result<Reply, Problem> {
        let next_cursor = next.map(|position| self.list.cursor(position));
        Reply::ok(&ClientList { count: clients.len(), clients, next_cursor })
    }
}

/// The name of a list, which tells the cursors of the two orders apart.
fn name_of(order: ListOrder) -> &'static str {
    match order {
        ListOrder::Newest => "clients",
        ListOrder::UpdatedSince(_) => "clients by update",
    }
}

/// Parses the position of the last client of a page.
fn parse_position(text: &str) -> Option<String> {
    let (at, id) = text.split_once('#')?;
    let is_position = Timestamp::parse(at).is_some_and(|time| time.to_string() == at) && ClientId::parse(id).is_ok();
    is_position.then(|| text.to_owned())
}
