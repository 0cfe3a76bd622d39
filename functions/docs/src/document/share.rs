//! Responses that several operations have are named and stand once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Where a response says what it is called if it is shared.
pub(super) const SHARED_NAME: &str = "x-shared-name";

/// The responses that have a name, each once: operations have the same few by the hundred, and all of them at once take
/// many megabytes.
#[derive(Default)]
pub(super) struct Shared(Vec<Named>);

struct Named {
    name: String,
    response: Value,
    operations: usize,
    /// What operations refer to it by, once one of them does.
    reference: Option<String>,
}

impl Shared {
    /// Takes the responses that have a name out of an operation. In their places stand their numbers.
    pub(super) fn take(&mut self, operation: &mut Value) {
        for response in responses(operation) {
            let Some(Value::String(name)) = response.as_object_mut().and_then(|members| members.remove(SHARED_NAME))
            else {
                continue;
            };
            let is_it = |known: &Named| known.name == name && known.response == *response;
            let number = self.0.iter().position(is_it).unwrap_or(self.0.len());
            let response = std::mem::replace(response, json!(number));
            match self.0.get_mut(number) {
                Some(known) => known.operations += 1,
                None => self.0.push(Named { name, response, operations: 1, reference: None }),
            }
        }
    }

    /// Puts those that stand twice or more into the components, and the others back.
    pub(super) fn finish(mut self, document: &mut Value) {
        let mut components: BTreeMap<String, Value> = BTreeMap::new();
        let paths = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
        let operations = paths.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut());
        for response in operations.flat_map(responses) {
            let number = response.as_u64().and_then(|number| usize::try_from(number).ok());
            let Some(named) = number.and_then(|number| self.0.get_mut(number)) else { continue };
            if named.operations == 1 {
                *response = named.response.take();
                continue;
            }
            let name = named.reference.get_or_insert_with(|| {
                let name = free_name(&components, &named.name);
                components.insert(name.clone(), named.response.take());
                name
            });
            *response = json!({ "$ref": format!("#/components/responses/{name}") });
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
