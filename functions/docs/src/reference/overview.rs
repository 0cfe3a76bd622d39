//! The overview of the reference: all operations, and what they have in common.

use std::collections::BTreeSet;

use serde_json::Value;

use super::json::text;
use super::operation::Operation;
use super::schema::{Schemas, Sender};
use super::table;
use crate::document::tag_path;

const SAMPLES: &str = "\n## Samples\n\nThe samples take the key from the variable `KEY` of the environment, and the \
                       session of a coach from `SESSION`. Python needs the package `requests`, PHP the extension `curl`; \
                       save those for Node as `.mjs`. Replace the ids by those of your records, and choose an \
                       `Idempotency-Key` for each task.\n";

pub(super) fn render(document: &Value, operations: &[Operation<'_>]) -> String {
    let (info, components) = (&document["info"], &document["components"]);
    let mut page = format!(
        "# Reference\n\nEvery operation with its parameters, schemas, errors and samples. {}\n\n{}\n\n## Operations\n",
        text(&info["summary"]),
        text(&info["description"]),
    );
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = text(&tag["name"]);
        let own = operations.iter().filter(|operation| operation.tag() == name);
        let rows = own.map(|operation| [operation.link(), format!("`{} {}`", operation.method, operation.path)]);
        let rows = table::render(["Operation", "Request"], rows);
        if !rows.is_empty() {
            page += &format!("\n### [{name}]({})\n{rows}", tag_path(name));
        }
    }
    let schemes = components["securitySchemes"].as_object().into_iter().flatten();
    let schemes = schemes.map(|(name, scheme)| [format!("`{name}`"), text(&scheme["description"]).to_owned()]);
    page += &format!("\n## Credentials\n{}", table::render(["Scheme", "Meaning"], schemes));
    let headers = components["headers"].as_object().into_iter().flatten();
    // A header that a response may lack has a component of its own.
    let headers: BTreeSet<[String; 2]> = headers
        .map(|(name, header)| {
            let name = name.split('.').next().unwrap_or_default();
            [format!("`{name}`"), text(&header["description"]).to_owned()]
        })
        .collect();
    page += &format!("\n## Headers of answers\n{}", table::render(["Header", "Meaning"], headers));
    page += SAMPLES;
    let schemas = Schemas::of(document);
    let error = schemas.table(&components["schemas"]["Error"], Sender::Service);
    page + &format!(
        "\n## Errors\n\nEvery refusal of the service has this body. [Errors](/docs/guides/errors) has all codes.\n{error}"
    )
}
