//! Answers to reads hold what the OpenAPI document describes, and nothing else: a member that nobody decided on may be
//! personal.

use domain::mode::Mode;
use serde_json::Value;

use crate::operations::tenancy::{Tenant, reads};
use crate::sandbox;
use crate::world::Receiver;

/// Schemas that describe a value together: the schema, and those that it refers to or consists of.
fn parts<'d>(document: &'d Value, schema: &'d Value) -> Vec<&'d Value> {
    let target = schema["$ref"].as_str().map(|to| document.pointer(to.trim_start_matches('#')).unwrap());
    let inner = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|kind| schema[kind].as_array().into_iter().flatten());
    let inner = inner.chain(target).flat_map(|schema| parts(document, schema));
    [schema].into_iter().chain(inner).collect()
}

/// Members of a value that no part of its schema has, by their place. An object without described members may have any.
fn undescribed(document: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let parts = parts(document, schema);
    if let Some(items) = value.as_array() {
        let of_items = parts.iter().find(|part| part["items"].is_object()).map(|part| &part["items"]);
        let of_item = |item| of_items.map_or(Vec::new(), |schema| undescribed(document, schema, item, place));
        return items.iter().flat_map(of_item).collect();
    }
    if parts.iter().all(|part| part["properties"].is_null()) {
        return Vec::new();
    }
    let members = value.as_object().into_iter().flatten();
    let of_member = |(name, value): (&String, &Value)| {
        let place = format!("{place}.{name}");
        match parts.iter().map(|part| &part["properties"][name]).find(|schema| !schema.is_null()) {
            Some(schema) => undescribed(document, schema, value, &place),
            None => vec![place],
        }
    };
    members.flat_map(of_member).collect()
}

#[tokio::test]
async fn a_read_answers_with_described_members_only() {
    // A sandbox has all routes.
    let (world, receiver) = (sandbox::start(Mode::Test).await, Receiver::start().await);
    let ada = Tenant::new(&world, &receiver, "ada", 1).await;
    let document = docs::document::document(Mode::Test);
    let mut faults = Vec::new();
    for (route, answer) in reads().zip(ada.reads().await) {
        let answers = &document["paths"][route.path]["get"]["responses"]["200"];
        let schema = &parts(&document, answers)[0]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{route}: the document has no schema of its 200");
        let unknown = undescribed(&document, schema, &answer, "");
        faults.extend(unknown.into_iter().map(|place| {
            format!("{route} answers with `{place}`: remove it, or add it to the type that the document describes")
        }));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
