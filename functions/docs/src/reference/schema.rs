//! Schemas as rows of a table: a row for each member, those of objects and of lists included.

use serde_json::Value;

use super::json::{plain, text};
use super::table;

/// Longest pattern that is shown, in characters. The description says what longer ones ask for.
const SHOWN_PATTERN_CHARS: usize = 40;

/// The schemas that the document names.
pub(super) struct Schemas<'d>(&'d Value);

/// The side that sends a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Caller,
    Service,
}

struct Row {
    name: String,
    kind: String,
    about: String,
}

impl<'d> Schemas<'d> {
    pub(super) fn of(document: &'d Value) -> Self {
        Self(&document["components"]["schemas"])
    }

    /// Renders the members of a schema as a table, and in front of it the rules of a body as a whole.
    pub(super) fn table(&self, schema: &Value, sender: Sender) -> String {
        let mut rows = Vec::new();
        self.add_members("", schema, sender, &mut rows);
        let head = if sender == Sender::Caller { "Field" } else { "Member" };
        let rules = if sender == Sender::Caller { rules(self.resolve(schema)) } else { String::new() };
        rules
            + &table::render(
                [head, "Type", "Meaning"],
                rows.into_iter().map(|row| [format!("`{}`", row.name), row.kind, row.about]),
            )
    }

    /// Describes the values of a schema in words.
    pub(super) fn kind(&self, schema: &Value) -> String {
        let resolved = self.resolve(schema);
        let mut kind = self.kind_of_one(resolved);
        if let Some(default) = resolved.get("default") {
            kind += &format!("; default `{}`", plain(default));
        }
        kind
    }

    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        match schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
            Some(name) => &self.0[name],
            None => schema,
        }
    }

    fn add_members(&self, place: &str, schema: &Value, sender: Sender, rows: &mut Vec<Row>) {
        let schema = self.resolve(schema);
        if let Some(items) = schema.get("items") {
            return self.add_members(&format!("{place}[]"), items, sender, rows);
        }
        let forms: Vec<Vec<_>> = forms(schema).into_iter().map(|form| self.members(form)).collect();
        for (name, member, is_required) in forms.iter().flatten() {
            let path = if place.is_empty() { (*name).clone() } else { format!("{place}.{name}") };
            let about = text(member.get("description").unwrap_or(&self.resolve(member)["description"]));
            // Forms of an object share members.
            if let Some(row) = rows.iter_mut().find(|row| row.name == path) {
                if !row.about.contains(about) {
                    row.about += &format!(" {about}");
                }
                continue;
            }
            let is_in_all = forms.iter().all(|form| form.iter().any(|(other, ..)| other == name));
            let mut kind = self.kind(member);
            match (sender, *is_required && is_in_all) {
                (Sender::Caller, true) => kind += "; required",
                (Sender::Service, false) => kind += "; may be absent",
                _ => {}
            }
            if member["deprecated"] == true {
                kind += "; deprecated";
            }
            rows.push(Row { name: path.clone(), kind, about: about.to_owned() });
            self.add_members(&path, member, sender, rows);
        }
    }

    /// The members of an object, those of its parts included: required ones in their order, then the others.
    fn members<'s>(&'s self, schema: &'s Value) -> Vec<(&'s String, &'s Value, bool)> {
        let schema = self.resolve(schema);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let place = |name: &str| required.iter().position(|required| *required == name);
        let mut members: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
        members.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        let own = members.into_iter().map(|(name, member)| (name, member, place(name).is_some()));
        let parts = schema["allOf"].as_array().into_iter().flatten().flat_map(|part| self.members(part));
        own.chain(parts).collect()
    }

    fn kind_of_one(&self, schema: &Value) -> String {
        if let Some(value) = schema.get("const") {
            return format!("always `{}`", plain(value));
        }
        if let Some(values) = schema["enum"].as_array() {
            let named = values.iter().filter(|value| !value.is_null()).map(|value| format!("`{}`", plain(value)));
            let named: Vec<String> = named.collect();
            return format!("one of {}", named.join(", "))
                + if values.contains(&Value::Null) { " or null" } else { "" };
        }
        if schema.get("anyOf").or(schema.get("oneOf")).is_some() {
            let mut kinds: Vec<String> = forms(schema).into_iter().map(|form| self.kind(form)).collect();
            kinds.dedup();
            return kinds.join(" or ") + if has_null(schema) { " or null" } else { "" };
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.iter().map(text).collect(),
            one => vec![text(one)],
        };
        let named = types.iter().filter(|name| **name != "null").map(|name| match (*name, text(&schema["format"])) {
            ("array", _) => format!("array of {}", self.kind(&schema["items"])),
            ("", _) if schema["allOf"].is_array() => "object".to_owned(),
            ("", _) => "any value".to_owned(),
            ("string", format) if !format.is_empty() => format!("string ({format})"),
            (name, _) => name.to_owned(),
        });
        let mut kind = named.collect::<Vec<_>>().join(" or ");
        // Behind an array, "or null" would speak of its items.
        match types.contains(&"null") {
            true if types.contains(&"array") => kind = format!("null, or {kind}"),
            true => kind += " or null",
            false => {}
        }
        limits(schema).into_iter().for_each(|limit| kind += &format!("; {limit}"));
        kind
    }
}

/// The forms that a value can take, besides null and the empty text. A schema without forms is its own.
fn forms(schema: &Value) -> Vec<&Value> {
    match schema.get("anyOf").or(schema.get("oneOf")) {
        Some(Value::Array(forms)) => {
            forms.iter().filter(|form| form["type"] != "null" && form["maxLength"] != 0).collect()
        }
        _ => vec![schema],
    }
}

fn has_null(schema: &Value) -> bool {
    let forms = ["anyOf", "oneOf"].iter().filter_map(|name| schema[name].as_array());
    forms.flatten().any(|form| form["type"] == "null")
}

/// The rules of a body as a whole: how many fields it has, and which are refused.
fn rules(schema: &Value) -> String {
    let mut rules: Vec<String> = limits(schema)
        .into_iter()
        .filter(|_| schema["type"] == "object")
        .map(|limit| format!("Takes {limit}."))
        .collect();
    let refused = schema["not"]["anyOf"].as_array().into_iter().flatten().chain([&schema["not"]]);
    let refused = refused.filter_map(|form| form["required"][0].as_str()).map(|name| format!("`{name}`"));
    let refused = refused.collect::<Vec<_>>().join(", ");
    if !refused.is_empty() {
        rules.push(format!("Refused: {refused}."));
    }
    if schema["additionalProperties"] == false {
        rules.push("Other fields are refused.".to_owned());
    }
    if rules.is_empty() { String::new() } else { format!("\n{}\n", rules.join(" ")) }
}

/// The limits of a value, in words.
fn limits(schema: &Value) -> Vec<String> {
    let number = |name: &str| schema[name].as_f64();
    let counted = |number: f64, unit: &str| match unit {
        "" => number.to_string(),
        _ if number == 1.0 => format!("{number} {unit}"),
        _ => format!("{number} {unit}s"),
    };
    let range = |least: &str, most: &str, unit: &str| match (number(least), number(most)) {
        (Some(least), Some(most)) => Some(format!("{least} to {}", counted(most, unit))),
        (Some(least), None) if least > 0.0 => Some(format!("at least {}", counted(least, unit))),
        (None, Some(most)) => Some(format!("at most {}", counted(most, unit))),
        _ => None,
    };
    let pattern = schema["pattern"].as_str().filter(|pattern| pattern.len() <= SHOWN_PATTERN_CHARS);
    [
        range("minLength", "maxLength", "character"),
        range("minimum", "maximum", ""),
        range("minItems", "maxItems", "item"),
        range("minProperties", "maxProperties", "field"),
        number("exclusiveMinimum").map(|least| format!("above {least}")),
        pattern.map(|pattern| format!("pattern `{pattern}`")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_says_of_each_member_what_its_values_are() {
        let document = json!({ "components": { "schemas": {
            "Id": { "type": "object", "required": ["id"], "properties": { "id": { "type": "string", "format": "uuid" } } },
            "Named": { "allOf": [
                { "$ref": "#/components/schemas/Id" },
                { "type": "object", "required": ["name"], "properties": { "name": { "type": ["string", "null"] } } },
            ] },
        } } });
        let schema = json!({
            "type": "object", "required": ["z", "list"], "minProperties": 1, "additionalProperties": false,
            "not": { "anyOf": [{ "required": ["coach_id"] }, { "required": ["team_id"] }] },
            "properties": {
                "a": { "type": "string", "minLength": 1, "maxLength": 5, "default": "b|c", "description": "A \n text." },
                "choice": { "enum": ["x", null] },
                "fixed": { "const": true },
                "level": { "type": "number", "exclusiveMinimum": 0, "maximum": 120.0 },
                "list": { "type": ["array", "null"], "items": { "enum": ["x", "y"] }, "minItems": 1 },
                "people": { "type": "array", "items": { "anyOf": [
                    { "$ref": "#/components/schemas/Named" }, { "$ref": "#/components/schemas/Id" },
                ] } },
                "when": { "anyOf": [{ "type": "string", "format": "date" }, { "type": "string", "maxLength": 0 }] },
                "z": { "type": "integer", "minimum": 1, "deprecated": true },
            },
        });
        let schemas = Schemas::of(&document);
        let sent = "\nTakes at least 1 field. Refused: `coach_id`, `team_id`. Other fields are refused.\n\n\
                    | Field | Type | Meaning |\n|---|---|---|\n\
                    | `z` | integer; at least 1; required; deprecated |  |\n\
                    | `list` | null, or array of one of `x`, `y`; at least 1 item; required |  |\n\
                    | `a` | string; 1 to 5 characters; default `b\\|c` | A text. |\n\
                    | `choice` | one of `x` or null |  |\n\
                    | `fixed` | always `true` |  |\n\
                    | `level` | number; at most 120; above 0 |  |\n\
                    | `people` | array of object |  |\n\
                    | `people[].id` | string (uuid); required |  |\n\
                    | `people[].name` | string or null |  |\n\
                    | `when` | string (date) |  |\n";
        assert_eq!(schemas.table(&schema, Sender::Caller), sent);
        let received = schemas.table(&schema, Sender::Service);
        for row in [
            "| `z` | integer; at least 1; deprecated |",
            "| `a` | string; 1 to 5 characters; default `b\\|c`; may be absent |",
            "| `people[].id` | string (uuid) |",
            "| `people[].name` | string or null; may be absent |",
        ] {
            assert!(received.contains(row), "{received}");
        }
        assert!(received.starts_with("\n| Member | Type | Meaning |\n"), "{received}");
    }
}
