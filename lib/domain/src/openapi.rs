//! What request bodies may hold, as JSON Schema, for the OpenAPI document. (What is answered derives its schema from its type.)
//!
//! A body's schema stands beside its parser and takes its limits from the same constants. The tests here feed every parser what its
//! schema allows and what it forbids, at each limit and one beyond, so that the two cannot drift.

use serde_json::{Map, Value, json};

/// No field has a use for NUL: every text refuses it.
const NO_NUL: &str = r"^[^\x00]*$";

/// A member of a body.
#[derive(Debug, Clone)]
pub struct Field {
    schema: Value,
    required: bool,
}

/// A body: a JSON object.
#[derive(Debug, Clone)]
pub struct Body(Value);

impl Field {
    /// A text of 1 to `max` characters (Unicode scalar values).
    pub fn text(max: usize) -> Self {
        Self::of(json!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": NO_NUL }))
    }

    /// An e-mail address.
    pub fn email(max: usize) -> Self {
        Self::of(json!({ "type": "string", "format": "email", "maxLength": max }))
    }

    /// A URL that webhooks are sent to.
    pub fn receiver_url(max: usize) -> Self {
        Self::of(json!({ "type": "string", "format": "uri", "pattern": "^https://", "maxLength": max }))
    }

    /// A number above 0 and at most `max`. A text with digits is not a number.
    pub fn positive_number(max: f64) -> Self {
        Self::of(json!({ "type": "number", "exclusiveMinimum": 0, "maximum": max }))
    }

    /// True or false.
    pub fn boolean() -> Self {
        Self::of(json!({ "type": "boolean" }))
    }

    /// A point in time.
    pub fn timestamp() -> Self {
        Self::of(json!({ "type": "string", "format": "date-time" }))
    }

    /// One of these names.
    pub fn one_of(names: &[&str]) -> Self {
        Self::of(json!({ "type": "string", "enum": names }))
    }

    /// A list of these names, `min` at least. A name that stands twice counts once.
    pub fn list_of(names: &[&str], min: usize) -> Self {
        Self::of(json!({ "type": "array", "items": { "type": "string", "enum": names }, "minItems": min }))
    }

    fn of(schema: Value) -> Self {
        Self { schema, required: false }
    }

    /// The field has to be there.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// What applies where the field is left out.
    pub fn default_value(mut self, value: impl Into<Value>) -> Self {
        self.schema["default"] = value.into();
        self
    }

    /// What the field is for.
    pub fn about(mut self, text: &str) -> Self {
        self.schema["description"] = json!(text);
        self
    }

    /// Null counts as left out.
    fn or_null(mut self) -> Self {
        if let Some(kind) = self.schema.get("type").cloned() {
            self.schema["type"] = json!([kind, "null"]);
        }
        if let Some(names) = self.schema.get_mut("enum").and_then(Value::as_array_mut) {
            names.push(Value::Null);
        }
        self
    }
}

impl Body {
    /// A body of these fields. A field that need not be there may be null, which counts as left out; other fields are ignored.
    pub fn new(fields: impl IntoIterator<Item = (&'static str, Field)>) -> Self {
        Self::with(fields, Field::or_null)
    }

    /// A change of a record: what is left out stays as it is, so that null does not count as left out, and something has to be there.
    pub fn change(fields: impl IntoIterator<Item = (&'static str, Field)>) -> Self {
        let mut body = Self::with(fields, |field| field).closed();
        body.0["minProperties"] = json!(1);
        body
    }

    fn with(fields: impl IntoIterator<Item = (&'static str, Field)>, optional: fn(Field) -> Field) -> Self {
        let mut required: Vec<&str> = Vec::new();
        let mut properties = Map::new();
        for (name, field) in fields {
            if field.required {
                required.push(name);
                properties.insert(name.to_owned(), field.schema);
            } else {
                properties.insert(name.to_owned(), optional(field).schema);
            }
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        Self(schema)
    }

    /// Other fields are refused.
    pub fn closed(mut self) -> Self {
        self.0["additionalProperties"] = json!(false);
        self
    }

    /// A list that has to be empty where another field has this value.
    pub fn empty_when(mut self, list: &str, other: &str, value: &str) -> Self {
        self.0["if"] = json!({ "properties": { other: { "const": value } } });
        self.0["then"] = json!({ "properties": { list: { "maxItems": 0 } } });
        self
    }

    /// The fields that null clears.
    pub fn clearing(mut self, names: &[&str]) -> Self {
        for name in names {
            let field = Field::of(self.0["properties"][name].take()).or_null();
            self.0["properties"][name] = field.schema;
        }
        self
    }

    /// The fields that nobody may set.
    pub fn forbidding(mut self, names: &[&str]) -> Self {
        for name in names {
            self.0["properties"][name] = json!(false);
        }
        self
    }

    /// The schema.
    pub fn into_json(self) -> Value {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_draft::{ClientDraft, activation_schema, parse_activation};
    use crate::endpoint::{EndpointChange, EndpointDraft};
    use crate::fields::{Fields, Invalid};
    use crate::key::KeyDraft;
    use crate::receiver_url::Reach;
    use crate::time::Timestamp;

    /// A parser, what it is said to take, and the least that it takes.
    struct Case {
        name: &'static str,
        schema: Value,
        parse: fn(&Value) -> Result<(), Invalid>,
        minimal: Value,
    }

    impl Case {
        fn new(name: &'static str, body: Body, minimal: Value, parse: fn(&Value) -> Result<(), Invalid>) -> Self {
            Self { name, schema: body.into_json(), parse, minimal }
        }

        fn with(&self, field: &str, value: Value) -> Result<(), Invalid> {
            let mut body = self.minimal.clone();
            body[field] = value;
            (self.parse)(&body)
        }

        #[track_caller]
        fn takes(&self, field: &str, value: Value) {
            let result = self.with(field, value.clone());
            assert!(result.is_ok(), "{}.{field} refuses {value}: {}", self.name, result.unwrap_err());
        }

        #[track_caller]
        fn refuses(&self, field: &str, value: Value) {
            let Err(error) = self.with(field, value.clone()) else { panic!("{}.{field} takes {value}", self.name) };
            assert_eq!(error.field.as_deref(), Some(field), "{value}: {error}");
            assert!(error.message.contains(field), "{error}");
        }

        fn properties(&self) -> impl Iterator<Item = (&str, &Value)> {
            self.schema["properties"].as_object().unwrap().iter().map(|(name, field)| (name.as_str(), field))
        }
    }

    fn cases() -> Vec<Case> {
        vec![
            Case::new("CreateClient", ClientDraft::schema(), json!({ "email": "ada@example.com" }), |body| {
                ClientDraft::parse(body).map(drop)
            }),
            Case::new("UpdateClient", activation_schema(), json!({ "is_active": true }), |body| {
                parse_activation(body).map(drop)
            }),
            Case::new("CreateKey", KeyDraft::schema(), json!({ "name": "CRM", "scope": "crm" }), |body| {
                KeyDraft::parse(Fields::body(body)?, Timestamp::from_ms(0)).map(drop)
            }),
            Case::new(
                "CreateEndpoint",
                EndpointDraft::schema(),
                json!({ "url": "https://a.example/", "events": ["new_client"], "payload_mode": "identifiers" }),
                |body| EndpointDraft::parse(Fields::body(body)?, Reach::Public).map(drop),
            ),
            Case::new("UpdateEndpoint", EndpointChange::schema(), json!({ "enabled": true }), |body| {
                EndpointChange::parse(Fields::body(body)?, Reach::Public).map(drop)
            }),
        ]
    }

    fn allows(field: &Value, kind: &str) -> bool {
        match &field["type"] {
            Value::Array(kinds) => kinds.iter().any(|allowed| allowed == kind),
            allowed => allowed == kind,
        }
    }

    /// A text of so many characters that has the field's format.
    fn text_of(field: &Value, chars: usize) -> String {
        match field["format"].as_str() {
            Some("email") => {
                // Labels of a domain have at most 63 characters.
                let labels = ["b".repeat(60), "c".repeat(chars - 134)].join(".");
                format!("{}@{labels}.example.com", "a".repeat(60))
            }
            Some("uri") => format!("https://a.example/{}", "x".repeat(chars - 18)),
            _ => "é".repeat(chars),
        }
    }

    #[test]
    fn a_text_is_taken_at_its_limit_and_refused_one_beyond() {
        let mut seen = 0;
        for case in cases() {
            for (name, field) in case.properties() {
                let Some(max) = field["maxLength"].as_u64().and_then(|max| usize::try_from(max).ok()) else { continue };
                seen += 1;
                assert_eq!(text_of(field, max).chars().count(), max);
                case.takes(name, text_of(field, max).into());
                case.refuses(name, text_of(field, max + 1).into());
                case.refuses(name, "".into());
                case.refuses(name, "a\0b".into());
                if field["minLength"] == 1 {
                    case.takes(name, "x".into());
                }
            }
        }
        assert!(seen >= 10, "{seen}");
    }

    #[test]
    fn a_number_is_taken_up_to_its_limit_and_refused_beyond() {
        let mut seen = 0;
        for case in cases() {
            for (name, field) in case.properties().filter(|(_, field)| allows(field, "number")) {
                seen += 1;
                let (above, most) = (field["exclusiveMinimum"].as_f64().unwrap(), field["maximum"].as_f64().unwrap());
                for good in [above + 0.001, most] {
                    case.takes(name, json!(good));
                }
                for bad in [above, above - 1.0, most + 0.001, f64::MAX] {
                    case.refuses(name, json!(bad));
                }
            }
        }
        assert!(seen >= 2, "{seen}");
    }

    #[test]
    fn a_name_is_one_of_those_that_are_listed() {
        let mut seen = 0;
        for case in cases() {
            for (name, field) in case.properties() {
                let is_list = field["items"].is_object();
                let names = if is_list { &field["items"]["enum"] } else { &field["enum"] };
                for listed in names.as_array().into_iter().flatten().filter(|listed| !listed.is_null()) {
                    seen += 1;
                    // Names that are listed twice count once.
                    case.takes(name, if is_list { json!([listed, listed]) } else { listed.clone() });
                }
                if names.is_array() {
                    case.refuses(name, if is_list { json!(["other"]) } else { json!("other") });
                }
            }
        }
        assert!(seen >= 20, "{seen}");
    }

    #[test]
    fn a_value_of_another_type_is_refused_and_null_is_taken_where_it_is_allowed() {
        for case in cases() {
            for (name, field) in case.properties() {
                let samples = [
                    ("null", json!(null)),
                    ("boolean", json!(true)),
                    ("number", json!(5)),
                    ("string", json!("\u{1}")),
                    ("array", json!([7])),
                    ("object", json!({ "a": 1 })),
                ];
                for (kind, value) in samples {
                    if !allows(field, kind) {
                        case.refuses(name, value);
                    } else if kind == "null" {
                        case.takes(name, value);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_required_has_to_be_there_and_an_empty_list_where_it_may_be_empty() {
        for case in cases() {
            for name in case.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let mut body = case.minimal.clone();
                body.as_object_mut().unwrap().remove(name);
                let error = (case.parse)(&body).unwrap_err();
                assert_eq!(error.field.as_deref(), Some(name), "{error}");
            }
            for (name, field) in case.properties().filter(|(_, field)| allows(field, "array")) {
                assert_eq!(case.with(name, json!([])).is_ok(), field["minItems"] == 0, "{}.{name}", case.name);
            }
            let empty = (case.parse)(&json!({})).is_ok();
            assert_eq!(empty, case.schema.get("required").is_none() && case.schema.get("minProperties").is_none());
        }
    }

    #[test]
    fn other_fields_are_refused_or_ignored_as_the_schema_says() {
        for case in cases() {
            let closed = case.schema["additionalProperties"] == false;
            assert_eq!(case.with("favourite_colour", json!(["red"])).is_err(), closed, "{}", case.name);
            assert!((case.parse)(&json!([])).is_err() && (case.parse)(&json!("text")).is_err());
        }
    }

    #[test]
    fn a_partner_key_takes_no_permissions() {
        let case = cases().into_iter().find(|case| case.name == "CreateKey").unwrap();
        assert_eq!(case.schema["if"]["properties"]["scope"]["const"], "partner");
        assert_eq!(case.schema["then"]["properties"]["permissions"]["maxItems"], 0);
        let body = |permissions: Value| json!({ "name": "n", "scope": "partner", "permissions": permissions });
        assert!((case.parse)(&body(json!([]))).is_ok());
        assert!((case.parse)(&body(json!(["contacts.read"]))).is_err());
    }
}
