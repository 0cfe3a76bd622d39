//! Components that operations share: schemas and responses, by name.
//!
//! utoipa derives the schemas. Here they are simplified: scalars stand inline, and nullable types have one form.

use std::collections::BTreeMap;

use domain::openapi::{NamedSchema, SCHEMA_PREFIX, is_scalar, referenced, simplify_nullable};
use serde_json::{Value, json};

/// Schemas by name.
#[derive(Default)]
pub(super) struct Schemas(pub(super) BTreeMap<String, Value>);

impl Schemas {
    /// Adds a schema with all schemas that it refers to, and returns a reference.
    pub(super) fn add(&mut self, NamedSchema { name, schemas }: NamedSchema) -> Value {
        self.0.extend(schemas);
        reference(&name)
    }

    /// Adds a schema under a name, and returns a reference.
    pub(super) fn insert(&mut self, name: &str, schema: Value) -> Value {
        self.0.insert(name.to_owned(), schema);
        reference(name)
    }

    /// Puts the schemas into the document. Schemas of plain texts and numbers replace the references to them, because
    /// their names would not help a reader.
    pub(super) fn finish(mut self, document: &mut Value) {
        let scalars: BTreeMap<String, Value> =
            self.0.iter().filter(|(_, schema)| is_scalar(schema)).map(|(k, v)| (k.clone(), v.clone())).collect();
        self.0.retain(|name, _| !scalars.contains_key(name));
        for schema in self.0.values_mut() {
            inline(schema, &scalars);
        }
        inline(document, &scalars);
        document["components"]["schemas"] = json!(self.0);
    }
}

/// Responses by name.
#[derive(Default)]
pub(super) struct Responses(BTreeMap<String, Value>);

impl Responses {
    /// Adds a response under a name, with a number if another response has the name, and returns a reference.
    pub(super) fn add(&mut self, name: &str, response: Value) -> Value {
        let mut free = name.to_owned();
        let mut number = 2;
        while self.0.get(&free).is_some_and(|held| *held != response) {
            free = format!("{name}{number}");
            number += 1;
        }
        let reference = json!({ "$ref": format!("#/components/responses/{free}") });
        self.0.insert(free, response);
        reference
    }

    /// Puts the responses into the document.
    pub(super) fn finish(self, document: &mut Value) {
        document["components"]["responses"] = json!(self.0);
    }
}

/// Returns a reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{SCHEMA_PREFIX}{name}") })
}

fn inline(value: &mut Value, scalars: &BTreeMap<String, Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, scalars)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| inline(member, scalars));
            if let Some(scalar) = referenced(members).and_then(|name| scalars.get(name)) {
                members.remove("$ref");
                let own = scalar.as_object().expect("a scalar's schema is an object");
                let inlined = own.iter().filter(|(key, _)| *key != "description");
                members.extend(inlined.map(|(key, value)| (key.clone(), value.clone())));
            }
            if let Some(simplified) = simplify_nullable(members) {
                *value = simplified;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_replaces_its_reference_and_null_is_listed_with_its_type() {
        let scalars = [("Time".to_owned(), json!({ "type": "string", "format": "date-time", "description": "inner" }))];
        for (input, simplified) in [
            (reference("Time"), json!({ "type": "string", "format": "date-time" })),
            (reference("Other"), reference("Other")),
            (
                json!({
                    "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Time", "description": "When." }],
                }),
                json!({ "type": ["string", "null"], "format": "date-time", "description": "When." }),
            ),
            (
                json!({
                    "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Other", "description": "What." }],
                }),
                json!({ "oneOf": [{ "type": "null" }, reference("Other")], "description": "What." }),
            ),
        ] {
            let mut value = input;
            inline(&mut value, &scalars.clone().into());
            assert_eq!(value, simplified);
        }
    }
}
