//! The function `docs`: the OpenAPI document, the reference page at `/docs`, the integrators' guides and kits.
//!
//! The resources are the same for every caller. The routes need no key, no table and no other host.

pub mod document;
mod guides;
mod kits;
mod layout;
mod site;
mod viewer;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use edge::{Inbound, Page, Problem, Reply, Resource};
use http::StatusCode;
use http::header::ACCEPT;
use runtime::{BoxError, Environment};

use crate::site::{GUIDES, REFERENCE};

/// All resources by path. Each is rendered at its first request.
type Library = Arc<BTreeMap<String, Resource>>;

/// `Content-Security-Policy` of the document: JSON loads and runs nothing.
const JSON_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// Builds the function's routes.
pub async fn router(_: &Environment) -> Result<Router, BoxError> {
    let document = Resource::new(|| document::document().to_string(), edge::reply::JSON, JSON_POLICY);
    let for_3_0 = Resource::new(|| document::document_3_0().to_string(), edge::reply::JSON, JSON_POLICY);
    let document = [("/openapi.json", document), ("/openapi-3.0.json", for_3_0)];
    let document = document.into_iter().map(|(path, resource)| (path.to_owned(), resource));
    let library = document.chain(viewer::resources()).chain(guides::resources()).chain(kits::resources());
    let router = Router::new()
        .route("/openapi.json", get(answer))
        .route("/openapi-3.0.json", get(answer))
        .route("/docs", get(answer))
        .route("/docs/{file}", get(answer))
        .route("/docs/guides/{page}", get(answer));
    Ok(router.with_state(Arc::new(library.collect())))
}

/// Returns true for a caller who reads pages. `*/*` gets JSON.
fn accepts_html(inbound: &Inbound) -> bool {
    let accepted = inbound.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|one| one.split(';').next().unwrap_or_default().trim() == "text/html")
}

/// The page for an address under `/docs` that leads nowhere.
fn missing_page() -> Page {
    let link = |(path, title): (String, &str)| format!("<li><a href=\"{path}\">{title}</a></li>");
    let pages = [(REFERENCE.to_owned(), "Reference")].into_iter();
    let links: String = pages.chain(GUIDES.iter().map(|guide| (guide.path(), guide.title))).map(link).collect();
    let main = format!("<h1>There is no such page</h1>\n<p>The documentation has these pages:</p>\n<ul>{links}</ul>");
    Page::new(StatusCode::NOT_FOUND, "There is no such page", main)
}

async fn answer(State(library): State<Library>, inbound: Inbound) -> Response {
    match library.get(&inbound.path) {
        Some(resource) => resource.answer(&inbound),
        None if accepts_html(&inbound) => missing_page().into_response_for(&inbound),
        None => {
            let noun = if inbound.path.starts_with("/docs/guides/") { "guide" } else { "file" };
            Reply::problem(&Problem::NotFound(noun), &inbound).into_response_for(&inbound)
        }
    }
}
