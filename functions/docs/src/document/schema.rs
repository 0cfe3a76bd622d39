//! JSON Schema, as far as the document uses it.

use std::collections::BTreeMap;

use domain::openapi::SCHEMA_PREFIX;
use serde::Deserialize;
use serde_json::Value;

/// A schema. Keywords that only narrow it further (`if`, `then`, `else`) are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Schema {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "type")]
    pub(crate) types: Types,
    pub(crate) format: Option<String>,
    pub(crate) description: Option<String>,
    #[serde(rename = "const")]
    pub(crate) only: Option<Value>,
    #[serde(rename = "enum")]
    pub(crate) choices: Option<Vec<Value>>,
    pub(crate) default: Option<Value>,
    pub(crate) deprecated: bool,
    pub(crate) min_length: Option<f64>,
    pub(crate) max_length: Option<f64>,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_minimum: Option<f64>,
    pub(crate) min_items: Option<f64>,
    pub(crate) max_items: Option<f64>,
    pub(crate) min_properties: Option<f64>,
    pub(crate) max_properties: Option<f64>,
    pub(crate) pattern: Option<String>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) required: Vec<String>,
    pub(crate) all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) additional_properties: Option<Value>,
    pub(crate) not: Option<Box<Schema>>,
}

/// The types that a value may have: a name, or a list of names.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
pub(crate) enum Types {
    #[default]
    Any,
    One(String),
    Several(Vec<String>),
}

/// The schemas that the document names.
pub(crate) struct Schemas(BTreeMap<String, Schema>);

/// A member of an object.
pub(crate) struct Member<'s> {
    pub(crate) name: &'s str,
    pub(crate) schema: &'s Schema,
    pub(crate) is_required: bool,
}

impl Schema {
    /// Reads a schema of the document.
    ///
    /// # Panics
    ///
    /// Panics if a keyword has another form than those here.
    pub(crate) fn read(schema: &Value) -> Self {
        Self::deserialize(schema).unwrap_or_else(|error| panic!("document/schema.rs cannot read {schema}: {error}"))
    }

    /// The forms that a value can take, besides null and the empty text. A schema without forms is its own.
    pub(crate) fn forms(&self) -> Vec<&Schema> {
        if !self.has_forms() {
            return vec![self];
        }
        self.all_forms().filter(|form| !form.types.contains("null") && form.max_length != Some(0.0)).collect()
    }

    pub(crate) fn has_forms(&self) -> bool {
        self.all_forms().next().is_some()
    }

    /// Returns true if one of the forms is null.
    pub(crate) fn may_be_null(&self) -> bool {
        self.all_forms().any(|form| form.types.contains("null"))
    }

    fn all_forms(&self) -> impl Iterator<Item = &Schema> {
        self.any_of.iter().chain(&self.one_of)
    }
}

impl Types {
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Any => Vec::new(),
            Self::One(name) => vec![name],
            Self::Several(names) => names.iter().map(String::as_str).collect(),
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names().contains(&name)
    }
}

impl Schemas {
    pub(crate) fn read(schemas: &BTreeMap<String, Value>) -> Self {
        Self(schemas.iter().map(|(name, schema)| (name.clone(), Schema::read(schema))).collect())
    }

    /// Returns the schema to which a reference leads. Any other schema is its own.
    pub(crate) fn resolve<'s>(&'s self, schema: &'s Schema) -> &'s Schema {
        let name = schema.reference.as_deref().and_then(|reference| reference.strip_prefix(SCHEMA_PREFIX));
        name.map_or(schema, |name| &self.0[name])
    }

    /// Returns the schema with this name.
    pub(crate) fn named(&self, name: &str) -> &Schema {
        &self.0[name]
    }

    /// The members of an object, those of its parts included: required ones in their order, then the others.
    pub(crate) fn members<'s>(&'s self, schema: &'s Schema) -> Vec<Member<'s>> {
        let schema = self.resolve(schema);
        let place = |name: &str| schema.required.iter().position(|required| required == name);
        let mut members: Vec<_> = schema.properties.iter().collect();
        members.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        let own = members.into_iter().map(|(name, schema)| Member { name, schema, is_required: place(name).is_some() });
        own.chain(schema.all_of.iter().flat_map(|part| self.members(part))).collect()
    }
}
