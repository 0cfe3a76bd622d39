//! The reference: a page for each tag of the OpenAPI document, an overview, and the event catalog. The pages are
//! rendered from the document alone.

mod catalog;
mod json;
mod operation;
mod overview;
mod samples;
mod schema;
mod section;
mod table;

use serde_json::Value;

use crate::document::{self, tag_path};
use crate::page::{Page, Part};
use crate::site::{EVENTS, REFERENCE};
use json::text;
use operation::Operation;
use schema::Schemas;

/// Builds the pages of the reference.
pub(crate) fn pages() -> Vec<Page> {
    let document = document::document();
    let operations = Operation::all(&document);
    let page = |path: &str, text| Page::new(Part::Reference, path, text);
    let mut pages =
        vec![page(REFERENCE, overview::render(&document, &operations)), page(EVENTS, catalog::render(&document))];
    for tag in document["tags"].as_array().into_iter().flatten() {
        let own: Vec<&Operation<'_>> = operations.iter().filter(|operation| operation.tag() == tag["name"]).collect();
        // The event catalog has the tags of the webhooks.
        if !own.is_empty() {
            pages.push(page(&tag_path(text(&tag["name"])), resource(tag, &own, &Schemas::of(&document))));
        }
    }
    pages
}

/// Renders the page of a tag.
fn resource(tag: &Value, operations: &[&Operation<'_>], schemas: &Schemas<'_>) -> String {
    let mut page = format!("# {}\n\n{}\n", text(&tag["name"]), text(&tag["description"]));
    operations.iter().for_each(|operation| page += &section::render(operation, schemas));
    page
}
