//! The OpenAPI 3.1 document.
//!
//! Schemas of answers derive from the handlers' types, and examples are built from these schemas. Schemas of request
//! bodies stand beside their parsers. Refusals derive from `edge::Problem`. So the document cannot differ from the
//! code. The words stand in Markdown files, in the folder `reference`.
//!
//! utoipa derives the schemas. Everything else is rendered here, because utoipa cannot express webhooks, required
//! headers, refused members and limits from constants.

pub(crate) mod access;
mod answer;
pub(crate) mod components;
mod examples;
pub(crate) mod headers;
mod links;
mod openapi_3_0;
pub(crate) mod operation;
mod operations;
pub(crate) mod parameter;
mod problems;
pub(crate) mod prose;
pub(crate) mod response;
pub(crate) mod schema;
pub(crate) mod webhooks;

use domain::mode::Mode;
use edge::routes::VERSION;
use serde_json::{Map, Value, json};

use crate::markdown::slug;
use crate::site::REFERENCE;
use components::{Responses, Schemas};
use operation::Operation;
use prose::{EVENTS, INDEX, tags};
use webhooks::Webhook;

pub use openapi_3_0::document_3_0;

/// The contact of an integrator.
const CONTACT: &str = "The coach who created the key";
/// The licence of the interface and of its code, as an SPDX expression.
const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// The path of the page with the operations of a tag.
pub(crate) fn tag_path(tag: &str) -> String {
    format!("{REFERENCE}/{}", slug(tag))
}

/// The document of a deployment, before it is rendered.
pub(crate) struct Document {
    pub(crate) mode: Mode,
    pub(crate) operations: Vec<Operation>,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) schemas: Schemas,
}

/// Builds the document as JSON. That of a live deployment has nothing of the sandbox.
pub fn document(mode: Mode) -> Value {
    Document::build(mode).to_json()
}

impl Document {
    pub(crate) fn build(mode: Mode) -> Self {
        let mut schemas = Schemas::default();
        problems::add_schemas(&mut schemas, mode);
        let mut operations = operations::all(mode);
        operations.iter_mut().for_each(|operation| operation.move_schemas(&mut schemas));
        let webhooks = webhooks::all(&mut schemas);
        Self { mode, operations, webhooks, schemas }
    }

    /// Returns the operations of a tag.
    pub(crate) fn operations_of(&self, tag: &str) -> Vec<&Operation> {
        self.operations.iter().filter(|operation| operation.tag() == tag).collect()
    }

    fn to_json(&self) -> Value {
        let mut responses = Responses::default();
        let mut paths = json!({});
        for operation in &self.operations {
            let (path, method) = (operation.route.path, operation.route.method.to_lowercase());
            paths[path][method] = operation.to_json(&self.schemas, &mut responses);
        }
        let tag = |name: &str, about: &str| json!({ "name": name, "description": about });
        let events = [webhooks::EMITTED, webhooks::COMPUTED].map(|name| tag(name, &EVENTS.top.parts[name]));
        let webhooks: Map<_, _> = self.webhooks.iter().map(|webhook| webhook.to_json(self.mode)).collect();
        let responses = json!(responses.0);
        let headers = headers::components(&[&paths, &responses]);
        let (summary, description) = about();
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
            "tags": tags(self.mode).map(|page| tag(&page.top.title, &page.top.about)).chain(events).collect::<Vec<_>>(),
            "paths": paths,
            "webhooks": webhooks,
            "components": {
                "securitySchemes": access::security_schemes(),
                "headers": headers,
                "responses": responses,
                "schemas": self.schemas.0,
            },
        })
    }
}

/// The summary and the description of the service, in Markdown.
pub(crate) fn about() -> (&'static str, &'static str) {
    INDEX.top.about.split_once("\n\n").expect("the description starts with a summary")
}

#[cfg(test)]
mod tests;
