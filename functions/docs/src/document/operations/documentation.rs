//! `/openapi.json` and `/docs`.

use edge::Problem;
use serde_json::{Value, json};

use super::{Operation, Schemas};
use crate::document::headers::{CACHE_CONTROL, ETAG, always};
use crate::document::operation::Answer;
use crate::guides::GUIDES;
use crate::viewer;

pub(super) const HTML: &str = "text/html";

pub(super) fn operations(_: &mut Schemas) -> Vec<Operation> {
    let document = json!({ "type": "object", "required": ["openapi", "info", "paths"] });
    vec![
        resource("/openapi.json", "readDescription", "Read this document")
            .answers(cached_answer("The OpenAPI document.").content("application/json", document)),
        resource("/docs", "showReference", "Show the reference page").answers(text_answer("The page.", HTML)),
        resource("/docs/{file}", "readReferenceFile", "Read a file of the reference page")
            .parameter(name_parameter("file", &viewer::FILES))
            .answers(text_answer("The file.", "text/javascript").content("text/css", json!({ "type": "string" })))
            .refuses([Problem::NotFound("file"), Problem::GzipOnly]),
        resource("/docs/guides/{page}", "showGuide", "Show a guide")
            .parameter(name_parameter("page", &GUIDES.each_ref().map(|guide| guide.name)))
            .answers(text_answer("The guide.", HTML))
            .refuses([Problem::NotFound("guide")]),
    ]
}

/// An operation that answers with a resource, or with 304.
pub(super) fn resource(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation::new("GET", path, id, summary)
        .parameter(json!({
            "name": "If-None-Match", "in": "header", "required": false,
            "description": "The `ETag` of the caller's copy.", "schema": { "type": "string" },
        }))
        .answers(Answer::new(304, "The caller's copy is current.").header(always(ETAG)).header(always(CACHE_CONTROL)))
        .refuses([Problem::internal("", "")])
}

fn cached_answer(about: &'static str) -> Answer {
    Answer::new(200, about).header(always(ETAG)).header(always(CACHE_CONTROL))
}

/// A resource of text.
pub(super) fn text_answer(about: &'static str, media_type: &str) -> Answer {
    cached_answer(about).content(media_type, json!({ "type": "string" }))
}

fn name_parameter(name: &str, names: &[&str]) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "enum": names } })
}
