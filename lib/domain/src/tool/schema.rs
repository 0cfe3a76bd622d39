//! Short schemas for tools.

use serde_json::{Map, Value, json};

use crate::list::PageSize;

/// Members that no tool returns: notes on health, and credentials, which would stay in a transcript.
pub const WITHHELD: [&str; 3] = ["health_notes", "temp_password", "intake_url"];

/// Keywords of a member of a body that a model is told. Texts and patterns would take most of the list.
const KEPT: [&str; 8] = ["type", "enum", "const", "format", "minimum", "maximum", "maxLength", "default"];

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn text_of(max: usize) -> Value {
    json!({ "type": "string", "maxLength": max })
}

pub(super) fn formed(format: &str) -> Value {
    json!({ "type": "string", "format": format })
}

pub(super) fn size(PageSize { default, max }: PageSize) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max, "default": default })
}

/// The short form of a member of a body. Null, which counts as omitted, is left out.
pub(super) fn compact(member: &Value) -> Value {
    let mut short: Map<String, Value> =
        KEPT.iter().filter_map(|name| Some(((*name).to_owned(), member.get(*name)?.clone()))).collect();
    if let Some(kinds) = short.get_mut("type").filter(|kinds| kinds.is_array()) {
        *kinds = kinds[0].take();
    }
    Value::Object(short)
}

/// The outermost members of a schema, with their types alone. Members that no tool returns are left out.
pub(super) fn outermost(schema: &Value) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    add_members(schema, &mut properties, &mut required);
    json!({ "type": "object", "properties": properties, "required": required })
}

fn add_members(schema: &Value, properties: &mut Map<String, Value>, required: &mut Vec<Value>) {
    for part in schema["allOf"].as_array().into_iter().flatten() {
        add_members(part, properties, required);
    }
    let is_returned = |name: &str| !WITHHELD.contains(&name);
    let members = schema["properties"].as_object().into_iter().flatten().filter(|(name, _)| is_returned(name));
    properties.extend(members.map(|(name, member)| (name.clone(), kind_of(member))));
    let names = schema["required"].as_array().into_iter().flatten();
    required.extend(names.filter(|name| name.as_str().is_some_and(is_returned)).cloned());
}

/// The type of a member. A list names the type of its items.
fn kind_of(member: &Value) -> Value {
    match (&member["type"], member["oneOf"].as_array().map(Vec::as_slice)) {
        (Value::String(kind), _) if kind == "array" => json!({ "type": kind, "items": kind_of(&member["items"]) }),
        (Value::Null, Some([one, _null])) => json!({ "type": [kind_of(one)["type"], "null"] }),
        (Value::Null, _) => json!({ "type": "object" }),
        (kind, _) => json!({ "type": kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_members_and_their_types_remain() {
        let schema = json!({
            "allOf": [
                { "type": "object", "required": ["id", "health_notes"], "properties": {
                    "id": { "type": "string", "format": "uuid" }, "health_notes": { "type": ["string", "null"] } } },
            ],
            "type": "object", "required": ["list", "other"], "properties": {
                "list": { "type": "array", "items": { "type": "object", "properties": { "deep": { "type": "string" } } } },
                "other": { "oneOf": [{ "type": "object", "properties": {} }, { "type": "null" }] },
                "loose": { "type": ["integer", "null"], "maximum": 100 },
            },
        });
        let expected = json!({
            "type": "object", "required": ["id", "list", "other"], "properties": {
                "id": { "type": "string" }, "list": { "type": "array", "items": { "type": "object" } },
                "other": { "type": ["object", "null"] }, "loose": { "type": ["integer", "null"] },
            },
        });
        assert_eq!(outermost(&schema), expected);
    }
}
