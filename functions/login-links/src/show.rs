//! `GET` and `HEAD /login/{token}`: a page with a button. Opening the page changes nothing: mail scanners and previews
//! open links before people do.

use axum::extract::State;
use axum::response::Response;
use domain::html::escape;
use domain::workspace::Workspace;
use edge::inbound::arrival;
use edge::{Inbound, Page, Problem};
use http::StatusCode;

use crate::App;
use crate::open::dead_link;

pub(crate) async fn show(State(app): State<App>, inbound: Inbound) -> Response {
    let page = page(&app, inbound.parameter(0)).await;
    page.unwrap_or_else(|problem| Page::problem(&problem)).into_response_for(&inbound)
}

async fn page(app: &App, token: &str) -> Result<Page, Problem> {
    let opened = app.open(token, arrival(&*app.clock)).await?;
    Ok(opened.map_or_else(dead_link, |opened| button(&opened.workspace)))
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
