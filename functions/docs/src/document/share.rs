//! Responses that several operations have are named and stand once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The member of a response that names it if it is shared.
pub(super) const SHARED_NAME: &str = "x-shared-name";

/// The responses that have a name, as texts, each with the number of operations that have it. Operations have the same
/// few by the hundred, and all of them at once take many megabytes as values.
#[derive(Default)]
pub(super) struct Shared(BTreeMap<String, usize>);

impl Shared {
    /// Takes the responses that have a name out of an operation. In their places stand their texts.
    pub(super) fn take(&mut self, operation: &mut Value) {
        for response in responses(operation).filter(|response| response.get(SHARED_NAME).is_some()) {
            let text = response.to_string();
            *self.0.entry(text.clone()).or_default() += 1;
            *response = Value::String(text);
        }
    }

    /// Puts those that stand twice or more into the components, and the others back.
    pub(super) fn finish(self, document: &mut Value) {
        let (mut components, mut references) = (BTreeMap::new(), BTreeMap::new());
        let paths = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
        let operations = paths.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut());
        for response in operations.flat_map(responses) {
            let Some(text) = response.as_str().map(str::to_owned) else { continue };
            if !references.contains_key(&text) {
                let mut whole: Value = serde_json::from_str(&text).expect("the text was made of JSON");
                let name = whole.as_object_mut().and_then(|members| members.remove(SHARED_NAME));
                if self.0[&text] == 1 {
                    *response = whole;
                    continue;
                }
                let name = free_name(&components, name.as_ref().and_then(Value::as_str).unwrap_or_default());
                references.insert(text.clone(), json!({ "$ref": format!("#/components/responses/{name}") }));
                components.insert(name, whole);
            }
            *response = references[&text].clone();
        }
        document["components"]["responses"] = json!(components);
    }
}

fn responses(operation: &mut Value) -> impl Iterator<Item = &mut Value> {
    operation["responses"].as_object_mut().into_iter().flat_map(|responses| responses.values_mut())
}

/// The name, with a number where another response has it.
fn free_name(components: &BTreeMap<String, Value>, name: &str) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while components.contains_key(&candidate) {
        candidate = format!("{name}{number}");
        number += 1;
    }
    candidate
}
