//! The named schemas: those that utoipa derives, made plainer.

use std::collections::BTreeMap;

use domain::list::CrmPage;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

const PREFIX: &str = "#/components/schemas/";

/// Schemas by name.
#[derive(Default)]
pub(super) struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    /// A reference to the schema of a type, which is taken up with all that it refers to.
    pub(super) fn of<T: ToSchema>(&mut self) -> Value {
        let mut found = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut found);
        for (name, schema) in found {
            self.0.insert(name, json!(schema));
        }
        reference(&T::name())
    }

    /// A reference to the schema of a page of a list of the CRM, under a name of its own.
    pub(super) fn page_of<T: ToSchema + Serialize>(&mut self, name: &str) -> Value {
        let records = self.of::<T>();
        let mut schema = json!(CrmPage::<T>::schema());
        schema["properties"]["data"]["items"] = records;
        self.insert(name, schema)
    }

    /// A reference to the schema of an answer that holds one record, under a name of its own.
    pub(super) fn answer_with<T: ToSchema>(&mut self, name: &str, member: &str) -> Value {
        let record = self.of::<T>();
        self.insert(name, json!({ "type": "object", "required": [member], "properties": { member: record } }))
    }

    /// Takes up a schema under a name.
    pub(super) fn insert(&mut self, name: &str, schema: Value) -> Value {
        self.0.insert(name.to_owned(), schema);
        reference(name)
    }

    /// Puts the schemas into the document. A name for what is only a text or a number tells a reader nothing: such are
    /// put where they are referred to.
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

/// A reference to the schema of that name.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{PREFIX}{name}") })
}

fn is_scalar(schema: &Value) -> bool {
    let named = schema.get("enum").is_some() || schema.get("properties").is_some();
    !named && matches!(schema["type"].as_str(), Some("string" | "number" | "integer" | "boolean"))
}

fn inline(value: &mut Value, scalars: &BTreeMap<String, Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, scalars)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| inline(member, scalars));
            let name = members.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(PREFIX));
            if let Some(scalar) = name.and_then(|name| scalars.get(name)) {
                members.remove("$ref");
                let own = scalar.as_object().expect("a scalar's schema is an object");
                let told = own.iter().filter(|(key, _)| *key != "description");
                members.extend(told.map(|(key, value)| (key.clone(), value.clone())));
            }
            if let Some(plain) = nullable(members) {
                *value = plain;
            }
        }
        _ => {}
    }
}

/// `oneOf` null and something: the type and null for what is a scalar, the description on the outside for what is not.
fn nullable(members: &Map<String, Value>) -> Option<Value> {
    let [none, other] = members.get("oneOf")?.as_array()?.as_slice() else { return None };
    if *none != json!({ "type": "null" }) {
        return None;
    }
    let mut other = other.as_object()?.clone();
    if is_scalar(&json!(other)) {
        other["type"] = json!([other["type"], "null"]);
        return Some(Value::Object(other));
    }
    let description = other.remove("description")?;
    Some(json!({ "oneOf": [none, other], "description": description }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_stands_where_it_is_meant_and_null_beside_its_type() {
        let scalars = [("Time".to_owned(), json!({ "type": "string", "format": "date-time", "description": "inner" }))];
        let to = |name: &str| reference(name);
        for (given, plain) in [
            (to("Time"), json!({ "type": "string", "format": "date-time" })),
            (to("Other"), to("Other")),
            (
                json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Time", "description": "When." }] }),
                json!({ "type": ["string", "null"], "format": "date-time", "description": "When." }),
            ),
            (
                json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Other", "description": "What." }] }),
                json!({ "oneOf": [{ "type": "null" }, to("Other")], "description": "What." }),
            ),
        ] {
            let mut value = given;
            inline(&mut value, &scalars.clone().into());
            assert_eq!(value, plain);
        }
    }
}
