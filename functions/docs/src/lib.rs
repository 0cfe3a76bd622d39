//! The function `docs`: `/openapi.json`, the reference page at `/docs`, and the integrators' guides.
//!
//! The resources are the same for every caller. The routes need no key, no table and no other host.

pub mod document;
mod guides;
mod layout;
mod site;
mod viewer;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use edge::{Inbound, Problem, Reply, Resource};
use runtime::{BoxError, Environment};

#[derive(Clone)]
struct App(Arc<Library>);

/// All resources. Each is rendered at its first request.
struct Library {
    document: Resource,
    reference: Resource,
    files: BTreeMap<&'static str, Resource>,
    guides: BTreeMap<&'static str, Resource>,
}

/// `Content-Security-Policy` of the document: JSON loads and runs nothing.
const JSON_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// Builds the function's routes.
pub async fn router(_: &Environment) -> Result<Router, BoxError> {
    let library = Library {
        document: Resource::new(|| document::document().to_string(), edge::reply::JSON, JSON_POLICY),
        reference: viewer::page(),
        files: viewer::files(),
        guides: guides::pages(),
    };
    let router = Router::new()
        .route("/openapi.json", get(async |State(app): State<App>, inbound: Inbound| app.0.document.answer(&inbound)))
        .route("/docs", get(async |State(app): State<App>, inbound: Inbound| app.0.reference.answer(&inbound)))
        .route(
            "/docs/{file}",
            get(async |State(app): State<App>, inbound: Inbound| find_and_answer(&app.0.files, "file", &inbound)),
        )
        .route(
            "/docs/guides/{page}",
            get(async |State(app): State<App>, inbound: Inbound| find_and_answer(&app.0.guides, "guide", &inbound)),
        );
    Ok(router.with_state(App(Arc::new(library))))
}

fn find_and_answer(resources: &BTreeMap<&str, Resource>, noun: &'static str, inbound: &Inbound) -> Response {
    match resources.get(inbound.parameter(0)) {
        Some(resource) => resource.answer(inbound),
        None => Reply::problem(&Problem::NotFound(noun), inbound).into_response_for(inbound),
    }
}
