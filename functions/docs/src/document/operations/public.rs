//! Operations without a credential: login pages, keys that verify sign-ins, the portal and the documentation.

use domain::assertion::JwkSet;
use edge::Problem;
use serde_json::json;

use crate::document::answer::Answer;
use crate::document::headers::{CACHE_CONTROL, ETAG, LOCATION, always};
use crate::document::operation::Operation;
use crate::site::{FILES, GUIDES, KITS};

const HTML: &str = "text/html";
/// The form of a portal file's name.
const PORTAL_FILE: &str = r"^[0-9a-f]{16}-portal\.(js|css)$";

pub(super) fn operations() -> Vec<Operation> {
    let page = |status| Answer::new(status).text(HTML);
    let (text, object) = (json!({ "type": "string" }), json!({ "type": "object" }));
    let members = json!({ "openapi": text, "info": object, "paths": object });
    let document = json!({ "type": "object", "required": ["openapi", "info", "paths"], "properties": members });
    let document = || Answer::new(200).content("application/json", document.clone());
    let one_of = |names: &[&str]| json!({ "type": "string", "enum": names });
    let kit = json!({ "type": "object" });
    let files: Vec<&str> = FILES.into_iter().chain(KITS.iter().map(|kit| kit.name)).collect();
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
        cached("/portal", "showPortal", page(200)),
        cached("/portal/assets/{file}", "readPortalFile", file())
            .in_path("file", json!({ "type": "string", "pattern": PORTAL_FILE }))
            .refuses([Problem::NotFound("file")]),
        cached("/openapi.json", "readDescription", document()),
        cached("/openapi-3.0.json", "readDescription30", document()),
        cached("/docs", "showReference", page(200)),
        cached("/docs/{file}", "readReferenceFile", file().text("text/plain").content("application/json", kit))
            .in_path("file", one_of(&files))
            .refuses([Problem::NotFound("file"), Problem::GzipOnly]),
        cached("/docs/guides/{page}", "showGuide", page(200))
            .in_path("page", one_of(&GUIDES.each_ref().map(|guide| guide.name)))
            .refuses([Problem::NotFound("guide")]),
    ]
}

fn file() -> Answer {
    Answer::new(200).text("text/javascript").text("text/css")
}

/// A resource that callers keep a copy of.
fn cached(path: &str, id: &'static str, answer: Answer) -> Operation {
    let cached = |answer: Answer| answer.header(always(ETAG)).header(always(CACHE_CONTROL));
    Operation::new("GET", path, id)
        .parameter(json!({
            "name": "If-None-Match", "in": "header", "required": false, "schema": { "type": "string" },
        }))
        .answers(cached(answer))
        .answers(cached(Answer::new(304)))
        .refuses([Problem::internal("", "")])
}
