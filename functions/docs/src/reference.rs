//! The reference: a page for each tag of the OpenAPI document, an overview, and the event catalog. The pages are
//! rendered from the document's types alone, each as Markdown with tables and as HTML with rows, chips and tabs.

mod catalog;
mod console;
mod context;
mod facts;
mod html;
mod markdown;
mod overview;
mod rows;
mod samples;
mod table;
mod tools;

use context::Context;

use crate::deployment::Deployment;
use crate::document::prose::tags;
use crate::document::schema::Schemas;
use crate::document::{Document, tag_path};
use crate::page::{Form, Page};
use crate::site::{EVENTS, Group, REFERENCE, TOOLS};

/// Builds the pages of the reference of a deployment.
pub(crate) fn pages(deployment: &Deployment) -> Vec<Page> {
    let Deployment { mode, base, .. } = deployment;
    let document = Document::build(*mode);
    let schemas = Schemas::read(document.schemas.by_name());
    let context = Context { document: &document, schemas: &schemas, base };
    let (overview, catalog) = (overview::markdown(context), catalog::markdown(context));
    let mut pages = vec![
        Page::new(Group::Reference, REFERENCE, overview, Form::Guide).named("All operations"),
        Page::new(Group::Receive, EVENTS, catalog, catalog::form(context)),
    ];
    pages.push(Page::new(Group::Reference, TOOLS, tools::markdown(context), Form::Guide));
    for tag in tags(*mode) {
        let (title, about) = (&tag.top.title, &tag.top.about);
        let operations = document.operations_of(title);
        let text = operations.iter().map(|operation| markdown::section(operation, context));
        let text = format!("# {title}\n\n{about}\n{}", text.collect::<String>());
        // Callers with a key have no use for what a session or a browser asks for.
        let is_for_callers = operations.iter().any(|operation| operation.is_for_keys());
        let group = if is_for_callers { Group::Reference } else { Group::Application };
        let form = html::tag_page(title, about, group, &operations, context);
        pages.push(Page::new(group, tag_path(title), text, form));
    }
    pages
}
