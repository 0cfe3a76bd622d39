//! `POST /login/{token}`: uses up the link and redirects the browser to the application, with an assertion of who
//! signed in. A sandbox makes no assertion, and redirects the browser to the link's own address.

use axum::extract::State;
use axum::response::Response;
use domain::assertion::Assertion;
use domain::id::new_uuid;
use domain::time::Timestamp;
use edge::inbound::arrival;
use edge::page::redirect;
use edge::{Inbound, Page, Problem};
use http::StatusCode;
use runtime::random_bytes;

use crate::App;
use crate::open::{Opened, dead_link};

pub(crate) async fn verify(State(app): State<App>, inbound: Inbound) -> Response {
    let outcome = next_url(&app, inbound.parameter(0), &inbound).await.and_then(|url| match url {
        Some(url) => redirect(StatusCode::SEE_OTHER, &url, &inbound),
        None => Ok(dead_link().into_response_for(&inbound)),
    });
    outcome.unwrap_or_else(|problem| Page::problem(&problem).into_response_for(&inbound))
}

/// The URL that the browser goes on to. Every step that can fail comes before the link is used up.
async fn next_url(app: &App, token: &str, inbound: &Inbound) -> Result<Option<String>, Problem> {
    inbound.check_size()?;
    let now = arrival(&*app.clock);
    let opened = app.open(token, now).await?.filter(|opened| !opened.is_used);
    let Some(opened) = opened else { return Ok(None) };
    let url = if app.is_sandbox { opened.token.path() } else { session_url(app, &opened, now) };
    let used = app.links.use_up(&opened.token, &opened.grant, now).await?;
    Ok(used.then_some(url))
}

/// The application's URL with the assertion.
fn session_url(app: &App, opened: &Opened, now: Timestamp) -> String {
    let host = &opened.workspace.canonical_host;
    let assertion = app.signer.sign(&Assertion {
        issuer: &app.issuer,
        audience: host,
        client: &opened.grant.client_id,
        coach: &opened.grant.coach_id,
        issued_at: now,
        id: new_uuid(now.ms(), random_bytes()),
    });
    assertion.session_url(host)
}
