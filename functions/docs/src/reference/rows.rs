//! Schemas as rows: one for each member, with the rows of its own members below it.

use serde_json::Value;

use crate::document::schema::{Member, Schema, Schemas};

/// Longest pattern that is shown, in characters. The description says what longer ones ask for.
const SHOWN_PATTERN_CHARS: usize = 40;

/// The side that sends a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Caller,
    Service,
}

/// A member. Its texts are Markdown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    /// The type and the limits of its values.
    pub(super) kind: Vec<String>,
    pub(super) about: String,
    /// The rows of an object's members, or of those of a list's items.
    pub(super) members: Vec<Row>,
    pub(super) is_list: bool,
}

impl Row {
    /// Returns the row and all rows below it, each with its place in the body: `people[].name`.
    pub(super) fn flat(&self, place: &str) -> Vec<(String, &Row)> {
        let own = format!("{place}{}", self.name);
        let below = format!("{own}{}.", if self.is_list { "[]" } else { "" });
        let members = self.members.iter().flat_map(|row| row.flat(&below)).collect::<Vec<_>>();
        [(own, self)].into_iter().chain(members).collect()
    }
}

/// Returns the rows of a body. `[]` is the row of a list without a name.
pub(super) fn of(schemas: &Schemas, schema: &Schema, sender: Sender) -> Vec<Row> {
    let schema = schemas.resolve(schema);
    if let Some(items) = &schema.items {
        return of(schemas, items, sender);
    }
    let forms: Vec<Vec<Member<'_>>> = schema.forms().into_iter().map(|form| schemas.members(form)).collect();
    let mut rows: Vec<Row> = Vec::new();
    for member in forms.iter().flatten() {
        let about = member.schema.description.as_ref().or(schemas.resolve(member.schema).description.as_ref());
        let about = about.map(|about| about.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default();
        // Forms of an object share members.
        if let Some(row) = rows.iter_mut().find(|row| row.name == member.name) {
            if !row.about.contains(&about) {
                row.about += &format!(" {about}");
            }
            continue;
        }
        let is_in_all = forms.iter().all(|form| form.iter().any(|other| other.name == member.name));
        let mut kind = kind(schemas, member.schema);
        match (sender, member.is_required && is_in_all) {
            (Sender::Caller, true) => kind.push("required".to_owned()),
            (Sender::Service, false) => kind.push("may be absent".to_owned()),
            _ => {}
        }
        if member.schema.deprecated {
            kind.push("deprecated".to_owned());
        }
        let is_list = schemas.resolve(member.schema).items.is_some();
        let members = of(schemas, member.schema, sender);
        rows.push(Row { name: member.name.to_owned(), kind, about, members, is_list });
    }
    rows
}

/// Describes the values of a schema: its type, its limits and its default.
pub(super) fn kind(schemas: &Schemas, schema: &Schema) -> Vec<String> {
    let schema = schemas.resolve(schema);
    let mut kind = vec![type_of(schemas, schema)];
    if schema.only.is_none() && schema.choices.is_none() && !schema.has_forms() {
        kind.extend(limits(schema));
    }
    kind.extend(schema.default.as_ref().map(|default| format!("default `{}`", plain(default))));
    kind
}

fn type_of(schemas: &Schemas, schema: &Schema) -> String {
    if let Some(only) = &schema.only {
        return format!("always `{}`", plain(only));
    }
    if let Some(choices) = &schema.choices {
        let named = choices.iter().filter(|value| !value.is_null()).map(|value| format!("`{}`", plain(value)));
        let or_null = if choices.contains(&Value::Null) { " or null" } else { "" };
        return format!("one of {}{or_null}", named.collect::<Vec<_>>().join(", "));
    }
    if schema.has_forms() {
        let mut kinds: Vec<String> = schema.forms().into_iter().map(|form| kind(schemas, form).join("; ")).collect();
        kinds.dedup();
        return kinds.join(" or ") + if schema.may_be_null() { " or null" } else { "" };
    }
    let names = schema.types.names();
    let named = names.iter().filter(|name| **name != "null").map(|name| match (*name, &schema.format, &schema.items) {
        ("array", _, Some(items)) => format!("array of {}", kind(schemas, items).join("; ")),
        ("string", Some(format), _) => format!("string ({format})"),
        (name, ..) => name.to_owned(),
    });
    let named = named.collect::<Vec<_>>().join(" or ");
    let named = match () {
        () if !named.is_empty() => named,
        () if !schema.all_of.is_empty() => "object".to_owned(),
        () => "any value".to_owned(),
    };
    match names.contains(&"null") {
        // Behind an array, "or null" would speak of its items.
        true if names.contains(&"array") => format!("null, or {named}"),
        true => named + " or null",
        false => named,
    }
}

/// The rules of a body as a whole: how many fields it has, and which are refused.
pub(super) fn rules(schemas: &Schemas, schema: &Schema) -> String {
    let schema = schemas.resolve(schema);
    let mut rules: Vec<String> = Vec::new();
    if schema.types.contains("object") {
        rules.extend(limits(schema).into_iter().map(|limit| format!("Takes {limit}.")));
    }
    let refused = schema.not.iter().flat_map(|not| not.forms()).filter_map(|form| form.required.first());
    let refused: Vec<String> = refused.map(|name| format!("`{name}`")).collect();
    if !refused.is_empty() {
        rules.push(format!("Refused: {}.", refused.join(", ")));
    }
    if schema.additional_properties == Some(Value::Bool(false)) {
        rules.push("Other fields are refused.".to_owned());
    }
    rules.join(" ")
}

/// The limits of a value, in words.
fn limits(schema: &Schema) -> Vec<String> {
    let counted = |number: f64, unit: &str| match unit {
        "" => number.to_string(),
        _ if number == 1.0 => format!("{number} {unit}"),
        _ => format!("{number} {unit}s"),
    };
    let range = |least: Option<f64>, most: Option<f64>, unit: &str| match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {}", counted(most, unit))),
        (Some(least), None) if least > 0.0 => Some(format!("at least {}", counted(least, unit))),
        (None, Some(most)) => Some(format!("at most {}", counted(most, unit))),
        _ => None,
    };
    let pattern = schema.pattern.as_ref().filter(|pattern| pattern.len() <= SHOWN_PATTERN_CHARS);
    [
        range(schema.min_length, schema.max_length, "character"),
        range(schema.minimum, schema.maximum, ""),
        range(schema.min_items, schema.max_items, "item"),
        range(schema.min_properties, schema.max_properties, "field"),
        schema.exclusive_minimum.map(|least| format!("above {least}")),
        pattern.map(|pattern| format!("pattern `{pattern}`")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A value without the quotation marks of a text.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    /// The rows as lines: place, kind and description.
    fn lines(schemas: &Schemas, schema: &Schema, sender: Sender) -> Vec<String> {
        let rows = of(schemas, schema, sender);
        let flat = rows.iter().flat_map(|row| row.flat(""));
        flat.map(|(place, row)| format!("{place} | {} | {}", row.kind.join("; "), row.about)).collect()
    }

    #[test]
    fn a_row_says_of_each_member_what_its_values_are() {
        let schemas = BTreeMap::from([
            (
                "Id".to_owned(),
                json!({
                    "type": "object", "required": ["id"], "properties": { "id": { "type": "string", "format": "uuid" } },
                }),
            ),
            (
                "Named".to_owned(),
                json!({ "allOf": [
                    { "$ref": "#/components/schemas/Id" },
                    { "type": "object", "required": ["name"], "properties": { "name": { "type": ["string", "null"] } } },
                ] }),
            ),
        ]);
        let schemas = Schemas::read(&schemas);
        let schema = Schema::read(&json!({
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
        }));
        let whole = rules(&schemas, &schema);
        assert_eq!(whole, "Takes at least 1 field. Refused: `coach_id`, `team_id`. Other fields are refused.");
        let sent = [
            "z | integer; at least 1; required; deprecated | ",
            "list | null, or array of one of `x`, `y`; at least 1 item; required | ",
            "a | string; 1 to 5 characters; default `b|c` | A text.",
            "choice | one of `x` or null | ",
            "fixed | always `true` | ",
            "level | number; at most 120; above 0 | ",
            "people | array of object | ",
            "people[].id | string (uuid); required | ",
            "people[].name | string or null | ",
            "when | string (date) | ",
        ];
        assert_eq!(lines(&schemas, &schema, Sender::Caller), sent);
        let received = lines(&schemas, &schema, Sender::Service);
        for line in [
            "z | integer; at least 1; deprecated | ",
            "a | string; 1 to 5 characters; default `b|c`; may be absent | A text.",
            "people[].id | string (uuid) | ",
            "people[].name | string or null; may be absent | ",
        ] {
            assert!(received.iter().any(|received| received == line), "{received:#?}");
        }
    }
}
