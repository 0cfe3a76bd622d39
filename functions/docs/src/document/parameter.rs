//! A parameter of an operation.

use serde_json::{Value, json};

/// The place of a parameter in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
}

/// A parameter of an operation, or a header of a request to a receiver.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) is_required: bool,
    pub(crate) schema: Value,
    /// The description, in Markdown. `reference` describes a parameter without one.
    pub(crate) about: Option<String>,
    pub(crate) example: Option<Value>,
}

impl Place {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

impl Parameter {
    /// Creates a parameter that callers may omit, unless it is in the path.
    pub(super) fn new(place: Place, name: &str, schema: Value) -> Self {
        Self { name: name.to_owned(), place, is_required: place == Place::Path, schema, about: None, example: None }
    }

    pub(super) fn required(self, is_required: bool) -> Self {
        Self { is_required, ..self }
    }

    pub(super) fn about(self, about: impl Into<String>) -> Self {
        Self { about: Some(about.into()), ..self }
    }

    pub(super) fn example(self, example: impl Into<Value>) -> Self {
        Self { example: Some(example.into()), ..self }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut parameter = json!({
            "name": self.name, "in": self.place.as_str(), "required": self.is_required, "schema": self.schema,
        });
        if let Some(about) = &self.about {
            parameter["description"] = json!(about);
        }
        if let Some(example) = &self.example {
            parameter["example"] = example.clone();
        }
        parameter
    }
}
