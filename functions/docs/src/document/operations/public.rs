//! Operations without a credential: login pages, keys that verify sign-ins, addresses of webhooks, the portal and the
//! documentation.

use domain::assertion::JwkSet;
use domain::mode::Mode;
use domain::webhook_addresses::WebhookAddresses;
use edge::Problem;
use edge::look::SVG;
use edge::routes::WEBHOOK_ADDRESSES;
use serde_json::{Value, json};

use crate::document::answer::Answer;
use crate::document::headers::{CACHE_CONTROL, ETAG, LOCATION, always};
use crate::document::operation::Operation;
use crate::document::parameter::{Parameter, Place};
use crate::document::prose::tags;
use crate::document::response::JSON;
use crate::markdown::slug;
use crate::site::{ASSETS, EVENTS, GUIDES, KITS, REFERENCE, SANDBOX_GUIDE, SEARCH, SEARCH_INDEX, SUMMARY};

const HTML: &str = "text/html";
const MARKDOWN: &str = "text/markdown";
/// The form of a portal file's name.
const PORTAL_FILE: &str = r"^[0-9a-f]{16}-portal\.(js|css|svg)$";

pub(super) fn operations(mode: Mode) -> Vec<Operation> {
    let page = |status| Answer::new(status).text(HTML);
    let described = |kind: &str, about: &str| json!({ "type": kind, "description": about });
    let members = json!({
        "openapi": described("string", "The version of OpenAPI."),
        "info": described("object", "The name and the version of the interface."),
        "paths": described("object", "The operations, by path and method."),
    });
    let document = json!({ "type": "object", "required": ["openapi", "info", "paths"], "properties": members });
    let document = || Answer::new(200).content(JSON, document.clone());
    let one_of = |names: &[String]| json!({ "type": "string", "enum": names });
    let both_forms = |name: &str| [name.to_owned(), format!("{name}.md")];
    // A live deployment may show the guide to the sandbox beside it. Its document has nothing of the sandbox.
    let guides = GUIDES.iter().filter(|guide| mode == Mode::Test || guide.path() != SANDBOX_GUIDE);
    let guides: Vec<String> = guides.flat_map(|guide| both_forms(guide.name)).collect();
    let resources: Vec<String> = tags(mode).flat_map(|page| both_forms(&slug(&page.top.title))).collect();
    let own_pages = [REFERENCE, EVENTS].iter().flat_map(|path| both_forms(name_in(path)));
    let own_pages = own_pages.chain(["index.md", name_in(SEARCH), SEARCH_INDEX].map(str::to_owned));
    let files: Vec<String> = own_pages.chain(ASSETS.iter().chain(&KITS).map(|file| file.name.to_owned())).collect();
    let page_or_markdown = || page(200).text(MARKDOWN);
    vec![
        Operation::new("GET", "/login/{token}", "showLogin").answers(page(200)).answers(page(410)).answers(page(500)),
        Operation::new("POST", "/login/{token}", "useLogin")
            .answers(Answer::new(303).header(always(LOCATION)))
            .answers(page(410))
            .answers(page(413))
            .answers(page(500)),
        Operation::new("GET", "/.well-known/jwks.json", "listVerificationKeys")
            .answers(Answer::of::<JwkSet>(200).header(always(CACHE_CONTROL)))
            .refuses([Problem::internal("", "")]),
        Operation::new("GET", WEBHOOK_ADDRESSES, "listWebhookAddresses")
            .answers(Answer::of::<WebhookAddresses>(200).header(always(CACHE_CONTROL)))
            .refuses([Problem::UnknownPath, Problem::internal("", "")]),
        cached("/portal", "showPortal", page(200)),
        cached("/portal/assets/{file}", "readPortalFile", file())
            .in_path("file", json!({ "type": "string", "pattern": PORTAL_FILE }))
            .refuses([Problem::NotFound("file")]),
        cached("/openapi.json", "readDescription", document()),
        cached("/openapi-3.0.json", "readDescription30", document()),
        cached(SUMMARY, "readSummary", Answer::new(200).text("text/plain")),
        cached("/docs", "showStart", page_or_markdown()),
        cached("/docs/{file}", "readFile", file().text(HTML).text(MARKDOWN).text("text/plain").content(JSON, data()))
            .parameter(Parameter::new(Place::Path, "file", one_of(&files)).example(SEARCH_INDEX))
            .refuses([Problem::NotFound("file")]),
        cached("/docs/guides/{page}", "showGuide", page_or_markdown())
            .in_path("page", one_of(&guides))
            .refuses([Problem::NotFound("guide")]),
        cached("/docs/reference/{page}", "showReference", page_or_markdown())
            .in_path("page", one_of(&resources))
            .refuses([Problem::NotFound("page")]),
    ]
}

/// The last part of a path.
fn name_in(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// A kit, or the search index.
fn data() -> Value {
    json!({ "anyOf": [{ "type": "object" }, { "type": "array", "items": {} }] })
}

fn file() -> Answer {
    Answer::new(200).text("text/javascript").text("text/css").text(SVG)
}

/// A resource that callers keep a copy of.
fn cached(path: &str, id: &'static str, answer: Answer) -> Operation {
    let cached = |answer: Answer| answer.header(always(ETAG)).header(always(CACHE_CONTROL));
    Operation::new("GET", path, id)
        .parameter(Parameter::new(Place::Header, "If-None-Match", json!({ "type": "string" })))
        .answers(cached(answer))
        .answers(cached(Answer::new(304)))
        .refuses([Problem::internal("", "")])
}
