//! `GET /v1/clients`: a coach's clients, newest first.
//!
//! A filter by `email` looks up the address itself, so a new client is found at once. `next_cursor` and `cursor` lead
//! through rosters of more than one page.

use axum::extract::State;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::client::{Client, ClientList, ClientListItem, MAX_CLIENT_EMAIL_CHARS};
use domain::email::Email;
use domain::fields::Invalid;
use domain::list::CLIENT_PAGE;
use edge::{Inbound, Partner, Problem, Reply};
use store::StoreError;
use store::client::list_position;

use crate::App;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let email = inbound.query("email");
    let read = async {
        match email.as_deref().filter(|email| email.chars().count() <= MAX_CLIENT_EMAIL_CHARS) {
            Some(email) => clients_with_email(&app, email).await,
            None => Ok(Vec::new()),
        }
    };
    let work = async |partner: Partner, found: Result<Vec<Client>, StoreError>| {
        let after = inbound.cursor().map(|cursor| read_cursor(&cursor)).transpose()?;
        match &email {
            Some(email) => with_email(&inbound, &partner, email, after.as_deref(), found?),
            None => page(&app, &inbound, &partner, after).await,
        }
    };
    app.gate.partner(&inbound, read, work).await
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

fn with_email(
    inbound: &Inbound,
    partner: &Partner,
    email: &str,
    after: Option<&str>,
    found: Vec<Client>,
) -> Result<Reply, Problem> {
    if email.chars().count() > MAX_CLIENT_EMAIL_CHARS {
        let rule = format!("must be at most {MAX_CLIENT_EMAIL_CHARS} characters");
        return Err(Invalid::field("email", rule).into());
    }
    let limit = limit(inbound) as usize;
    let own = found.iter().filter(|client| client.coach_id == partner.coach);
    let wanted = own.filter(|client| client.is_active || !active_only(inbound));
    let mut rest = wanted.filter(|client| after.is_none_or(|after| list_position(client).as_str() < after));
    let page: Vec<&Client> = rest.by_ref().take(limit).collect();
    let last = page.last().filter(|_| rest.next().is_some());
    let next_cursor = last.map(|client| URL_SAFE_NO_PAD.encode(list_position(client)));
    let clients: Vec<ClientListItem> = page.into_iter().map(Client::list_item).collect();
    Reply::ok(&ClientList { count: clients.len(), clients, next_cursor })
}

async fn page(app: &App, inbound: &Inbound, partner: &Partner, after: Option<String>) -> Result<Reply, Problem> {
    let page = app.clients.page(&partner.coach, active_only(inbound), after.as_deref(), limit(inbound)).await?;
    let next_cursor = page.next.map(|listed_at| URL_SAFE_NO_PAD.encode(listed_at));
    Reply::ok(&ClientList { count: page.items.len(), clients: page.items, next_cursor })
}

fn limit(inbound: &Inbound) -> u32 {
    CLIENT_PAGE.parse(inbound.query("limit").as_deref())
}

fn active_only(inbound: &Inbound) -> bool {
    inbound.query("active").as_deref() == Some("true")
}

/// Parses a cursor: the sort key of the last item of a page, encoded so that callers treat it as opaque.
fn read_cursor(cursor: &str) -> Result<String, Problem> {
    const LONGEST: usize = 256;
    let invalid = || Problem::from(Invalid::field("cursor", "must be the next_cursor of an earlier answer"));
    let decoded = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| invalid())?;
    let listed_at = String::from_utf8(decoded).map_err(|_| invalid())?;
    let formed = listed_at.len() <= LONGEST
        && listed_at.split_once('#').is_some_and(|(at, id)| {
            domain::time::Timestamp::parse(at).is_some() && domain::id::ClientId::parse(id).is_ok()
        });
    if formed { Ok(listed_at) } else { Err(invalid()) }
}
