//! The function `docs`: the OpenAPI document, the guides, the reference, the kits, and the addresses of webhooks.
//!
//! The resources are the same for every caller. The routes need no key, no table and no other host.

mod deployment;
pub mod document;
mod guides;
mod highlight;
mod layout;
mod markdown;
mod page;
mod pages;
mod parts;
mod reference;
mod site;
mod start;
mod webhook_addresses;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use domain::mode::Mode;
use domain::webhook_addresses::WebhookAddresses;
use edge::page::redirect;
use edge::routes::WEBHOOK_ADDRESSES;
use edge::{Inbound, Problem, Reply, Resource};
use http::{HeaderValue, StatusCode, header};
use runtime::{BoxError, Environment};
use serde_json::Value;

use crate::deployment::Deployment;
use crate::layout::Site;
use crate::site::{ASSETS, HTML, KITS, MARKDOWN, SEARCH, SEARCH_INDEX, START, SUMMARY, TEXT};

/// Variable with the address of the API, which pages show.
const BASE_ADDRESS: &str = "BASE_ADDRESS";

/// `Content-Security-Policy` of a page: its own style sheet and scripts, the search index, and the search form.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                           form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// `Content-Security-Policy` of everything else: a file by itself loads and runs nothing.
const FILE_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// `Vary` of a page, which is there as Markdown, too.
const VARY_BY_FORM: HeaderValue = HeaderValue::from_static("accept-encoding, accept");
/// `Vary` of an error as a page.
const VARY_OF_PAGE_ERROR: HeaderValue = HeaderValue::from_static("accept-encoding, accept");

/// A resource, and the path of the same page as Markdown.
struct Served {
    resource: Resource,
    markdown: Option<String>,
}

/// All resources by path, and the page for any other path.
struct Resources {
    by_path: BTreeMap<String, Served>,
    missing_page: Resource,
}

/// All resources, built at the first request: the function also answers unknown paths, which need none.
type Shared = Arc<LazyLock<Resources, Box<dyn FnOnce() -> Resources + Send>>>;

/// Builds the function's routes.
pub async fn router(env: &Environment) -> Result<Router, BoxError> {
    let config = env.config();
    let (mode, other) = (config.parse(Mode::SETTING)?, config.find(Mode::OTHER_ADDRESS));
    let deployment = Deployment::new(mode, config.get(BASE_ADDRESS)?, other);
    let addresses = config.find(WebhookAddresses::SETTING);
    let addresses = addresses.map(|_| config.parse::<WebhookAddresses>(WebhookAddresses::SETTING)).transpose()?;
    let resources: Shared = Arc::new(LazyLock::new(Box::new(move || all_resources(deployment))));
    let router = Router::new()
        .route("/openapi.json", get(answer))
        .route("/openapi-3.0.json", get(answer))
        .route(SUMMARY, get(answer))
        .route(START, get(answer))
        .route("/docs/{file}", get(answer))
        .route("/docs/guides/{page}", get(answer))
        .route("/docs/reference/{page}", get(answer))
        // `get` leaves out the body of an answer to HEAD.
        .fallback(get(answer).fallback(answer));
    // Without the list, the path is unknown, and no request for it arrives here.
    let router = match addresses.map(Arc::new) {
        Some(addresses) => router.route(
            WEBHOOK_ADDRESSES,
            get(move |inbound: Inbound| async move { webhook_addresses::answer(&addresses, &inbound) }),
        ),
        None => router,
    };
    Ok(router.with_state(resources))
}

/// Builds all resources of a deployment.
fn all_resources(deployment: Deployment) -> Resources {
    let site = Arc::new(Site { pages: pages::all(&deployment), deployment });
    let deployment = &site.deployment;
    let base = deployment.base.as_str();
    let mut by_path = BTreeMap::new();
    let mut add = |path: &str, resource| by_path.insert(path.to_owned(), Served { resource, markdown: None });
    for (path, document) in
        [("/openapi.json", document::document as fn(Mode) -> Value), ("/openapi-3.0.json", document::document_3_0)]
    {
        let own = deployment.clone();
        let text = move || own.fill_in(&document(own.mode).to_string());
        add(path, Resource::new(text, edge::reply::JSON, FILE_POLICY));
    }
    for (at, page) in site.pages.iter().enumerate() {
        let markdown = pages::to_markdown(&site.pages, &page.text, base);
        add(&page.markdown_path(), Resource::new(|| markdown, MARKDOWN, FILE_POLICY));
        let shared = Arc::clone(&site);
        add(&page.path, Resource::new(move || shared.page(at), HTML, PAGE_POLICY));
    }
    for file in ASSETS.iter().chain(&KITS) {
        let text = deployment.fill_in(&file.text());
        add(&file.path(), Resource::new(|| text, file.media_type, FILE_POLICY));
    }
    let (index, summary) = (pages::search_index(&site.pages), pages::summary(&site.pages, base));
    add(&format!("{START}/{SEARCH_INDEX}"), Resource::new(|| index, edge::reply::JSON, FILE_POLICY));
    add(SUMMARY, Resource::new(|| summary, TEXT, FILE_POLICY));
    let shared = Arc::clone(&site);
    add(SEARCH, Resource::new(move || shared.search_page(), HTML, PAGE_POLICY));
    for page in &site.pages {
        by_path.entry(page.path.clone()).and_modify(|served| served.markdown = Some(page.markdown_path()));
    }
    let missing_page = Resource::new(move || site.missing_page(), HTML, PAGE_POLICY).cached("no-store");
    Resources { by_path, missing_page }
}

async fn answer(State(resources): State<Shared>, inbound: Inbound) -> Response {
    let Some(served) = resources.by_path.get(&inbound.path) else { return missing(&resources, &inbound) };
    let Some(markdown) = &served.markdown else { return served.resource.answer(&inbound) };
    let markdown = resources.by_path.get(markdown).filter(|_| inbound.prefers("text/markdown", "text/html"));
    let mut response = markdown.unwrap_or(served).resource.answer(&inbound);
    response.headers_mut().insert(header::VARY, VARY_BY_FORM);
    response
}

/// Answers a request for a path that has no resource. A slash behind a page's address leads to the page.
fn missing(resources: &Resources, inbound: &Inbound) -> Response {
    let page = inbound.path.trim_end_matches('/');
    if resources.by_path.contains_key(page) {
        let redirected = redirect(StatusCode::PERMANENT_REDIRECT, page, inbound);
        return redirected.unwrap_or_else(|problem| Reply::problem(&problem, inbound).into_response_for(inbound));
    }
    if inbound.accepts("text/html") {
        let mut response = resources.missing_page.answer_with(StatusCode::NOT_FOUND, inbound);
        response.headers_mut().insert(header::VARY, VARY_OF_PAGE_ERROR);
        return response;
    }
    let problem = match inbound.path.split('/').skip(1).collect::<Vec<_>>()[..] {
        ["docs", file] if !file.is_empty() => Problem::NotFound("file"),
        ["docs", "guides", guide] if !guide.is_empty() => Problem::NotFound("guide"),
        ["docs", "reference", page] if !page.is_empty() => Problem::NotFound("page"),
        _ => Problem::UnknownPath,
    };
    Reply::problem(&problem, inbound).into_response_for(inbound)
}
