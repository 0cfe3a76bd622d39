//! Responses that several operations have are named and stand once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Where a response says what it is called if it is shared.
pub(super) const SHARED_NAME: &str = "x-shared-name";

/// Moves each response that has a name and stands twice or more to the components.
pub(super) fn responses(document: &mut Value) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    each(document, |response| *counts.entry(response.to_string()).or_default() += 1);
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    each(document, |response| {
        let count = counts.get(&response.to_string()).copied();
        let Some(name) = response.as_object_mut().and_then(|members| members.remove(SHARED_NAME)) else { return };
        if let (Some(2..), Some(name)) = (count, name.as_str()) {
            let name = free_name(&named, name, response);
            let reference = json!({ "$ref": format!("#/components/responses/{name}") });
            named.insert(name, std::mem::replace(response, reference));
        }
    });
    document["components"]["responses"] = json!(named);
}

fn each(document: &mut Value, visit: impl FnMut(&mut Value)) {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    let operations = paths.filter_map(Value::as_object_mut).flat_map(|path| path.values_mut());
    let responses = operations.filter_map(|operation| operation["responses"].as_object_mut());
    responses.flat_map(|responses| responses.values_mut()).for_each(visit);
}

/// The name, with a number where another response has it.
fn free_name(named: &BTreeMap<String, Value>, name: &str, response: &Value) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while named.get(&candidate).is_some_and(|other| other != response) {
        candidate = format!("{name}{number}");
        number += 1;
    }
    candidate
}
