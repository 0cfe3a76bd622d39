//! Components that operations share: schemas and responses, by name.

use std::collections::BTreeMap;

use domain::openapi::{NamedSchema, SCHEMA_PREFIX};
use serde_json::{Value, json};

/// Schemas by name.
#[derive(Default)]
pub(crate) struct Schemas(pub(super) BTreeMap<String, Value>);

impl Schemas {
    pub(crate) fn by_name(&self) -> &BTreeMap<String, Value> {
        &self.0
    }

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
}

/// Responses by name.
#[derive(Default)]
pub(super) struct Responses(pub(super) BTreeMap<String, Value>);

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
}

/// Returns a reference to a schema.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{SCHEMA_PREFIX}{name}") })
}
