//! `GET` and `HEAD /login/{token}`: a page with a button. Opening the page changes nothing: mail scanners and previews
//! open links before people do. In a sandbox, the page of a used link says whom the link would have signed in.

use axum::extract::State;
use axum::response::Response;
use domain::assertion::session_address;
use domain::html::escape;
use domain::workspace::Workspace;
use edge::inbound::arrival;
use edge::{Inbound, Page, Problem};
use http::StatusCode;

use crate::App;
use crate::open::{Opened, dead_link};

pub(crate) async fn show(State(app): State<App>, inbound: Inbound) -> Response {
    let page = page(&app, inbound.parameter(0)).await;
    page.unwrap_or_else(|problem| Page::problem(&problem)).into_response_for(&inbound)
}

async fn page(app: &App, token: &str) -> Result<Page, Problem> {
    Ok(match app.open(token, arrival(&*app.clock)).await? {
        None => dead_link(),
        Some(opened) if opened.is_used => used_link(&opened),
        Some(opened) => button(&opened.workspace),
    })
}

fn button(workspace: &Workspace) -> Page {
    let coach = escape(&workspace.name);
    let main = format!(
        "<h1>Sign in to your account with <bdi>{coach}</bdi></h1>\n<p>This link works once.</p>\n\
         <form method=\"post\"><button type=\"submit\">Sign in</button></form>"
    );
    let title = format!("Sign in to your account with {}", workspace.name);
    Page::new(StatusCode::OK, &title, main).with_forms_to(workspace.canonical_host.as_str())
}

/// The page of a sandbox in the place of the application's.
fn used_link(opened: &Opened) -> Page {
    let Opened { client, workspace, .. } = opened;
    // The application's own records may have an empty name.
    let name = match client.profile.full_name.trim() {
        "" => client.id.as_str(),
        name => name,
    };
    let (shown, coach) = (escape(name), escape(&workspace.name));
    let address = escape(&session_address(&workspace.canonical_host));
    let main = format!(
        "<h1>You would be signed in as <bdi>{shown}</bdi></h1>\n\
         <p>This is a sandbox: nothing here is real, and nobody was signed in.</p>\n\
         <p>The live service would lead you to <code>{address}</code>, the application of <bdi>{coach}</bdi>, with an \
         assertion of who you are. The link is used up, as it would be there.</p>"
    );
    Page::new(StatusCode::OK, &format!("You would be signed in as {name}"), main)
}
