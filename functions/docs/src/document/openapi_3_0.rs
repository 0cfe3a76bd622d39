//! The document in OpenAPI 3.0, for tools that do not read 3.1. It has no webhooks, which 3.0 cannot describe, and no
//! conditions between members.

use std::collections::BTreeSet;

use domain::mode::Mode;
use serde_json::{Map, Value, json};

use super::document;

const VERSION: &str = "3.0.3";
/// Keywords of schemas that 3.0 does not have, and that only narrow a schema.
const DROPPED: [&str; 4] = ["if", "then", "else", "propertyNames"];

/// Builds the document in OpenAPI 3.0.
pub fn document_3_0(mode: Mode) -> Value {
    let mut document = document(mode);
    document["openapi"] = json!(VERSION);
    document["info"]["license"] = json!({ "name": document["info"]["license"]["name"] });
    remove(&mut document, "webhooks");
    remove(&mut document["info"], "summary");
    each_operation(&mut document, |operation| {
        // Only OAuth has scopes in 3.0.
        for requirement in operation["security"].as_array_mut().into_iter().flatten() {
            requirement.as_object_mut().into_iter().flatten().for_each(|(_, permissions)| *permissions = json!([]));
        }
    });
    for part in ["paths", "components"] {
        convert_within(&mut document[part]);
    }
    let mut schemas = document["components"]["schemas"].take();
    schemas.as_object_mut().into_iter().flatten().for_each(|(_, schema)| convert(schema));
    let whole = schemas.clone();
    inline_nullable(&mut schemas, &whole);
    document["components"]["schemas"] = schemas;
    drop_unused(&mut document);
    document
}

fn remove(object: &mut Value, member: &str) {
    object.as_object_mut().and_then(|members| members.remove(member));
}

fn each_operation(document: &mut Value, mut change: impl FnMut(&mut Value)) {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, methods) in paths {
        methods.as_object_mut().into_iter().flatten().for_each(|(_, operation)| change(operation));
    }
}

/// Converts the schemas of parameters, headers and bodies. Examples stay as they are.
fn convert_within(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "schema" => convert(member),
                    "example" | "examples" | "schemas" => {}
                    _ => convert_within(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(convert_within),
        _ => {}
    }
}

/// Converts a schema and the schemas in it.
fn convert(schema: &mut Value) {
    let Value::Object(members) = schema else {
        // `true` allows everything, `false` nothing.
        *schema = if *schema == json!(false) { json!({ "not": {} }) } else { json!({}) };
        return;
    };
    members.retain(|name, _| !DROPPED.contains(&name.as_str()));
    for name in ["items", "not", "additionalProperties"] {
        members.get_mut(name).filter(|inner| inner.is_object()).map(convert);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        members.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().for_each(convert);
    }
    members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten().for_each(|(_, it)| convert(it));
    if let Some(only) = members.remove("const") {
        members.insert("enum".to_owned(), json!([only]));
    }
    if let Some(first) = members.remove("examples").and_then(|examples| examples.get(0).cloned()) {
        members.insert("example".to_owned(), first);
    }
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(limit) = members.get(exclusive).filter(|limit| limit.is_number()).cloned() {
            members.insert(bound.to_owned(), limit);
            members.insert(exclusive.to_owned(), json!(true));
        }
    }
    allow_null(members);
    // In 3.0 nothing counts beside a reference.
    if members.len() > 1
        && let Some(reference) = members.remove("$ref")
    {
        members.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
    }
}

/// Says that null is allowed in the words of 3.0.
fn allow_null(members: &mut Map<String, Value>) {
    let null = json!("null");
    match members.get("type") {
        Some(kind) if *kind == null => {
            members.remove("type");
            members.extend([("nullable".to_owned(), json!(true)), ("enum".to_owned(), json!([null]))]);
        }
        Some(Value::Array(kinds)) => {
            let others: Vec<Value> = kinds.iter().filter(|kind| **kind != null).cloned().collect();
            let is_nullable = others.len() < kinds.len();
            members.remove("type");
            if let [only] = &others[..] {
                members.insert("type".to_owned(), only.clone());
            } else {
                members.insert("anyOf".to_owned(), others.iter().map(|kind| json!({ "type": kind })).collect());
            }
            if is_nullable {
                members.insert("nullable".to_owned(), json!(true));
            }
        }
        _ => {}
    }
    for name in ["anyOf", "oneOf"] {
        let Some(Value::Array(forms)) = members.get(name) else { continue };
        let others: Vec<Value> = forms.iter().filter(|form| form["enum"] != json!([null])).cloned().collect();
        if others.len() == forms.len() {
            continue;
        }
        members.insert("nullable".to_owned(), json!(true));
        if let [only] = &others[..] {
            members.remove(name);
            members.insert("allOf".to_owned(), json!([only]));
        } else {
            members.insert(name.to_owned(), json!(others));
        }
    }
}

/// Replaces each reference that allows null by its schema with null: in 3.0 a reference cannot allow more than its
/// schema does.
fn inline_nullable(value: &mut Value, schemas: &Value) {
    if value["nullable"] == true
        && let Some(name) = schemas_in(&value["allOf"][0]).first()
        && let (Value::Object(members), Value::Object(schema)) = (&mut *value, &schemas[name])
    {
        members.remove("allOf");
        for (name, keyword) in schema {
            members.entry(name.clone()).or_insert_with(|| keyword.clone());
        }
        if let Some(Value::Array(values)) = members.get_mut("enum") {
            values.push(Value::Null);
        }
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(|member| inline_nullable(member, schemas)),
        Value::Array(items) => items.iter_mut().for_each(|item| inline_nullable(item, schemas)),
        _ => {}
    }
}

/// Removes the schemas and tags that only webhooks use.
fn drop_unused(document: &mut Value) {
    let mut used = BTreeSet::new();
    let mut new: Vec<Value> = vec![document["paths"].clone(), document["components"]["responses"].clone()];
    while let Some(value) = new.pop() {
        for name in schemas_in(&value) {
            if used.insert(name.clone()) {
                new.push(document["components"]["schemas"][name].clone());
            }
        }
    }
    if let Value::Object(schemas) = &mut document["components"]["schemas"] {
        schemas.retain(|name, _| used.contains(name));
    }
    let mut tags = BTreeSet::new();
    each_operation(document, |operation| {
        tags.insert(operation["tags"][0].to_string());
    });
    if let Value::Array(known) = &mut document["tags"] {
        known.retain(|tag| tags.contains(&tag["name"].to_string()));
    }
}

/// The names of the schemas that a value refers to.
fn schemas_in(value: &Value) -> BTreeSet<String> {
    let text = value.to_string();
    let references = text.split("\"#/components/schemas/").skip(1);
    references.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_there_and_nothing_of_3_1() {
        let (whole, for_3_0) = (document(Mode::Test), document_3_0(Mode::Test));
        let operations = |document: &Value| -> BTreeSet<String> {
            let paths = document["paths"].as_object().unwrap().iter();
            let methods =
                paths.flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(move |it| (path, it)));
            methods.map(|(path, method)| format!("{method} {path}")).collect()
        };
        assert_eq!(operations(&whole), operations(&for_3_0));
        assert!(for_3_0.get("webhooks").is_none() && for_3_0["info"].get("summary").is_none());
        let schemas = for_3_0["components"]["schemas"].to_string();
        for keyword in ["\"const\":", "\"if\":", "\"propertyNames\":", "\"null\"", "\"type\":["] {
            assert!(!schemas.contains(keyword), "{keyword}");
        }
    }

    #[test]
    fn null_is_allowed_in_the_words_of_3_0() {
        let converted = |mut schema: Value| {
            convert(&mut schema);
            schema
        };
        let reference = json!({ "$ref": "#/components/schemas/Plain" });
        for (schema, expected) in [
            (json!({ "type": ["string", "null"] }), json!({ "type": "string", "nullable": true })),
            (json!({ "const": "a" }), json!({ "enum": ["a"] })),
            (json!({ "exclusiveMinimum": 0 }), json!({ "minimum": 0, "exclusiveMinimum": true })),
            (json!({ "anyOf": [{ "type": "null" }, reference] }), json!({ "allOf": [reference], "nullable": true })),
            (
                json!({ "$ref": "#/components/schemas/Plain", "description": "d" }),
                json!({ "allOf": [reference], "description": "d" }),
            ),
            (json!({ "properties": { "const": { "type": "null" } } }), {
                json!({ "properties": { "const": { "nullable": true, "enum": [null] } } })
            }),
        ] {
            assert_eq!(converted(schema), expected);
        }
        let mut inlined = json!({ "allOf": [reference], "nullable": true });
        inline_nullable(&mut inlined, &json!({ "Plain": { "type": "string", "enum": ["a"] } }));
        assert_eq!(inlined, json!({ "type": "string", "enum": ["a", null], "nullable": true }));
    }
}
