//! The OpenAPI 3.1 document.
//!
//! Schemas of answers derive from the handlers' types, and examples are built from these schemas. Schemas of request
//! bodies stand beside their parsers. Refusals derive from `edge::Problem`. So the document cannot differ from the
//! code. The words stand in Markdown files, in the folder `reference`.
//!
//! utoipa derives the schemas. Everything else is rendered here, because utoipa cannot express webhooks, required
//! headers, refused members and limits from constants.

mod access;
mod answer;
mod components;
mod examples;
mod headers;
mod links;
mod openapi_3_0;
mod operation;
mod operations;
mod problems;
mod prose;
mod webhooks;

use serde_json::{Value, json};

use crate::markdown::slug;
use crate::site::{REFERENCE, VERSION};
use components::{Responses, Schemas};
use prose::{EVENTS, INDEX, TAGS};

pub use openapi_3_0::document_3_0;

/// The contact of an integrator.
const CONTACT: &str = "The coach who created the key";
/// The licence of the interface and of its code, as an SPDX expression.
const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// The path of the page with the operations of a tag.
pub(crate) fn tag_path(tag: &str) -> String {
    format!("{REFERENCE}/{}", slug(tag))
}

/// Builds the document.
pub fn document() -> Value {
    let (summary, description) = INDEX.top.about.split_once("\n\n").expect("the description starts with a summary");
    let (mut schemas, mut responses) = (Schemas::default(), Responses::default());
    problems::add_schemas(&mut schemas);
    let mut paths = json!({});
    for operation in operations::all() {
        let (path, method) = (operation.route.path, operation.route.method.to_lowercase());
        paths[path][method] = operation.render(&mut schemas, &mut responses);
    }
    let tag = |name: &str, about: &str| json!({ "name": name, "description": about });
    let events = [webhooks::EMITTED, webhooks::COMPUTED].map(|name| tag(name, &EVENTS.top.parts[name]));
    let webhooks = webhooks::all(&mut schemas);
    let responses = json!(responses.0);
    let headers = headers::components(&[&paths, &responses]);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": INDEX.top.title,
            "version": VERSION,
            "summary": summary,
            "description": description,
            "contact": { "name": CONTACT },
            "license": { "name": LICENSE, "identifier": LICENSE },
        },
        "servers": [{ "url": "/" }],
        "tags": TAGS.iter().map(|page| tag(&page.top.title, &page.top.about)).chain(events).collect::<Vec<_>>(),
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "securitySchemes": access::security_schemes(),
            "headers": headers,
            "responses": responses,
            "schemas": schemas.0,
        },
    })
}

#[cfg(test)]
mod tests;
