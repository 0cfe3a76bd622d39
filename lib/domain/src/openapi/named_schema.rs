//! The schema of a type, as utoipa derives it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// The prefix of references to schemas.
pub const SCHEMA_PREFIX: &str = "#/components/schemas/";

/// The schema of a type, with all schemas that it refers to, simplified: plain texts and numbers stand inline, because
/// their names would not help a reader, and nullable types have one form.
#[derive(Debug, Clone)]
pub struct NamedSchema {
    pub name: String,
    /// By name, the schema of the type included.
    pub schemas: BTreeMap<String, Value>,
}

impl NamedSchema {
    pub fn of<T: ToSchema>() -> Self {
        let mut collected = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut collected);
        let all = collected.into_iter().map(|(name, schema)| (name, json!(schema)));
        let (mut scalars, mut schemas): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.partition(|(_, schema)| is_scalar(schema));
        scalars.values_mut().filter_map(Value::as_object_mut).for_each(|scalar| drop(scalar.remove("description")));
        schemas.values_mut().for_each(|schema| inline(schema, &scalars));
        Self { name: T::name().into_owned(), schemas }
    }

    /// Returns the schema with all referenced schemas in place of the references.
    pub fn inlined(&self) -> Value {
        let mut schema = self.schemas[&self.name].clone();
        inline(&mut schema, &self.schemas);
        schema
    }
}

/// Replaces references to these schemas. A member beside a reference goes before a member of the schema.
fn inline(value: &mut Value, schemas: &BTreeMap<String, Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, schemas)),
        Value::Object(members) => {
            if let Some(schema) = referenced(members).and_then(|name| schemas.get(name)) {
                let mut target = schema.as_object().expect("a schema is an object").clone();
                members.remove("$ref");
                target.append(members);
                *members = target;
            }
            members.values_mut().for_each(|member| inline(member, schemas));
            if let Some(simplified) = simplify_nullable(members) {
                *value = simplified;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the name of the schema that a reference names.
pub fn referenced(members: &Map<String, Value>) -> Option<&str> {
    members.get("$ref")?.as_str()?.strip_prefix(SCHEMA_PREFIX)
}

/// Returns true for the schema of a plain text, number or boolean.
fn is_scalar(schema: &Value) -> bool {
    let named = schema.get("enum").is_some() || schema.get("properties").is_some();
    !named && matches!(schema["type"].as_str(), Some("string" | "number" | "integer" | "boolean"))
}

/// Simplifies `oneOf` of null and another schema. A scalar becomes a list of types with null. Other schemas keep
/// `oneOf`, with the description outside.
fn simplify_nullable(members: &Map<String, Value>) -> Option<Value> {
    let [other, none] = members.get("oneOf")?.as_array()?.as_slice() else { return None };
    if *none != json!({ "type": "null" }) {
        return None;
    }
    let mut other = other.as_object()?.clone();
    if is_scalar(&json!(other)) {
        other["type"] = json!([other["type"], "null"]);
        return Some(Value::Object(other));
    }
    let description = other.remove("description")?;
    Some(json!({ "oneOf": [other, none], "description": description }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its schema counts")]
    struct Record {
        text: Text,
        /// An optional text.
        optional: Option<Text>,
        /// An optional record.
        #[schema(no_recursion)]
        other: Option<Box<Record>>,
    }

    /// The description of every text.
    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its schema counts")]
    struct Text(String);

    #[test]
    fn a_plain_text_stands_inline_and_null_is_listed_with_its_type() {
        let NamedSchema { name, schemas } = NamedSchema::of::<Record>();
        assert_eq!(schemas.keys().collect::<Vec<_>>(), [&name]);
        let other = json!([{ "$ref": "#/components/schemas/Record" }, { "type": "null" }]);
        let properties = json!({
            "text": { "type": "string" },
            "optional": { "type": ["string", "null"], "description": "An optional text." },
            "other": { "oneOf": other, "description": "An optional record." },
        });
        assert_eq!(schemas[&name]["properties"], properties);
    }
}
