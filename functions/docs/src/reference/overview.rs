//! The overview of the reference: all operations, and what they have in common.

use super::context::Context;
use super::markdown::{link_to, member_table};
use super::rows::{self, Sender};
use super::table;
use crate::document::access::SCHEMES;
use crate::document::headers;
use crate::document::prose::{INDEX, tags};
use crate::document::{about, tag_path};

const SAMPLES: &str = "\n## Samples\n\nThe samples take the key from the variable `KEY` of the environment, and the \
                       session of a coach from `SESSION`. Python needs the package `requests`, PHP the extension `curl`; \
                       save those for Node as `.mjs`. Replace the ids by those of your records. Each run of a sample \
                       makes an `Idempotency-Key` of its own: in your code, choose one for each task.\n";

pub(super) fn markdown(context: Context<'_>) -> String {
    let (summary, description) = about();
    let mut page = format!(
        "# Reference\n\nEvery operation with its parameters, schemas, errors and samples. {summary}\n\n{description}\n\n\
         ## Operations\n"
    );
    for tag in tags(context.document.mode) {
        let title = &tag.top.title;
        let operations = context.document.operations_of(title).into_iter();
        let rows = operations.map(|operation| [link_to(operation), format!("`{}`", operation.route)]);
        let rows = table::render(["Operation", "Request"], rows);
        page += &format!("\n### [{title}]({})\n{rows}", tag_path(title));
    }
    let described = |name: &str| [format!("`{name}`"), INDEX.top.parts[name].clone()];
    page += &format!("\n## Credentials\n{}", table::render(["Scheme", "Meaning"], SCHEMES.map(described)));
    let headers = headers::names(context.document.mode).map(described);
    page += &format!("\n## Headers of answers\n{}", table::render(["Header", "Meaning"], headers));
    page += SAMPLES;
    let error = rows::of(context.schemas, context.schemas.named("Error"), Sender::Service);
    let error = member_table(&error, Sender::Service);
    page + &format!(
        "\n## Errors\n\nEvery refusal of the service has this body. [Errors](/docs/guides/errors) has all codes.\n{error}"
    )
}
