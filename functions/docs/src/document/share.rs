//! Moves responses that several operations have to the components, under a name each.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Member of a response that holds its name in the components. Removed from the finished document.
pub(super) const SHARED_NAME: &str = "x-shared-name";

/// The named responses as JSON texts, each with the number of operations that have it. Texts, because hundreds of
/// equal responses take many megabytes as values.
#[derive(Default)]
pub(super) struct SharedResponses(BTreeMap<String, usize>);

impl SharedResponses {
    /// Replaces each named response of an operation by its JSON text.
    pub(super) fn extract(&mut self, operation: &mut Value) {
        for response in responses(operation).filter(|response| response.get(SHARED_NAME).is_some()) {
            let text = response.to_string();
            *self.0.entry(text.clone()).or_default() += 1;
            *response = Value::String(text);
        }
    }

    /// Moves responses with two or more uses to the components, and restores the others in their operations.
    pub(super) fn finish(self, document: &mut Value) {
        let (mut components, mut references) = (BTreeMap::new(), BTreeMap::new());
        let paths = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
        let operations = paths.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut());
        for response in operations.flat_map(responses) {
            let Some(text) = response.as_str().map(str::to_owned) else { continue };
            if !references.contains_key(&text) {
                let mut restored: Value = serde_json::from_str(&text).expect("the text was written from a value");
                let name = restored.as_object_mut().and_then(|members| members.remove(SHARED_NAME));
                if self.0[&text] == 1 {
                    *response = restored;
                    continue;
                }
                let name = free_name(&components, name.as_ref().and_then(Value::as_str).unwrap_or_default());
                references.insert(text.clone(), json!({ "$ref": format!("#/components/responses/{name}") }));
                components.insert(name, restored);
            }
            *response = references[&text].clone();
        }
        document["components"]["responses"] = json!(components);
    }
}

fn responses(operation: &mut Value) -> impl Iterator<Item = &mut Value> {
    operation["responses"].as_object_mut().into_iter().flat_map(|responses| responses.values_mut())
}

/// Returns the name, with a number if another response has the name.
fn free_name(components: &BTreeMap<String, Value>, name: &str) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while components.contains_key(&candidate) {
        candidate = format!("{name}{number}");
        number += 1;
    }
    candidate
}
