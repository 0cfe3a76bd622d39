//! An operation of the OpenAPI document.

use serde_json::Value;

use super::json::text;
use crate::document::tag_path;
use crate::markdown::slug;

/// An operation of the document.
pub(super) struct Operation<'d> {
    document: &'d Value,
    pub(super) method: String,
    pub(super) path: &'d str,
    pub(super) json: &'d Value,
}

impl<'d> Operation<'d> {
    /// All operations, in the order of the document.
    pub(super) fn all(document: &'d Value) -> Vec<Self> {
        let paths = document["paths"].as_object().into_iter().flatten();
        let operations = paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(|(method, json)| Self { document, method: method.to_uppercase(), path, json })
        });
        operations.collect()
    }

    pub(super) fn tag(&self) -> &'d str {
        text(&self.json["tags"][0])
    }

    pub(super) fn summary(&self) -> &'d str {
        text(&self.json["summary"])
    }

    /// The link to the operation's section.
    pub(super) fn link(&self) -> String {
        format!("[{}]({}#{})", self.summary(), tag_path(self.tag()), slug(self.summary()))
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = &'d Value> {
        self.json["parameters"].as_array().into_iter().flatten()
    }

    /// The JSON body's media type object, if the operation takes a body.
    pub(super) fn body(&self) -> Option<&'d Value> {
        self.json["requestBody"]["content"].get("application/json")
    }

    /// Responses by status, those of the components in place of references.
    pub(super) fn responses(&self) -> impl Iterator<Item = (&'d str, &'d Value)> {
        let shared = &self.document["components"]["responses"];
        self.json["responses"].as_object().into_iter().flatten().map(|(status, response)| {
            let name = response["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
            (status.as_str(), name.map_or(response, |name| &shared[name]))
        })
    }
}
