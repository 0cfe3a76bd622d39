//! JSON Schemas for the OpenAPI document: of request bodies here, and in `named_schema` of types.
//!
//! A body's schema stands beside its parser and takes its limits from the same constants. The tests here feed every
//! parser the values that its schema allows and forbids, at each limit and one beyond, so the two cannot drift.

mod named_schema;

use serde_json::{Map, Value, json};

pub use named_schema::{NamedSchema, SCHEMA_PREFIX, referenced};

/// Refuses NUL: no field has a use for it.
const NO_NUL: &str = r"^[^\x00]*$";

/// Refuses NUL, and a text of blanks, controls, formatting characters and fillers alone. The parser also refuses the
/// invisible characters beyond the Basic Multilingual Plane, which patterns cannot write in every dialect.
const VISIBLE: &str = r"^[^\x00]*[^\s\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff][^\x00]*$";

/// `HH:MM` on a clock of 24 hours.
const TIME_OF_DAY: &str = r"^([01]\d|2[0-3]):[0-5]\d$";

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
    /// Creates a text of 1 to `max` characters (Unicode scalar values).
    pub fn text(max: usize) -> Self {
        Self::of(json!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": NO_NUL }))
    }

    /// Creates a text like [`Field::text`] with a visible character.
    pub fn visible_text(max: usize) -> Self {
        Self::formed(VISIBLE, max)
    }

    /// Creates an e-mail address, which may contain letters beyond ASCII (RFC 6531).
    pub fn email(max: usize) -> Self {
        Self::of(json!({ "type": "string", "format": "idn-email", "maxLength": max }))
    }

    pub fn receiver_url(max: usize) -> Self {
        Self::of(json!({ "type": "string", "format": "uri", "pattern": "^https://", "maxLength": max }))
    }

    /// Creates a number above 0 and at most `max`. A text with digits is not a number.
    pub fn positive_number(max: f64) -> Self {
        Self::of(json!({ "type": "number", "exclusiveMinimum": 0, "maximum": max }))
    }

    /// Creates a text of 1 to `max` characters that matches this pattern, which `^` and `$` enclose.
    pub fn formed(pattern: &str, max: usize) -> Self {
        Self::of(json!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": pattern }))
    }

    /// Creates a UUID, in either case.
    pub fn uuid() -> Self {
        Self::of(json!({ "type": "string", "format": "uuid" }))
    }

    pub fn whole_number(max: u64) -> Self {
        Self::of(json!({ "type": "integer", "minimum": 0, "maximum": max }))
    }

    pub fn boolean() -> Self {
        Self::of(json!({ "type": "boolean" }))
    }

    /// Creates a field that only takes `true`: it can be set and not cleared.
    pub fn only_true() -> Self {
        Self::of(json!({ "type": "boolean", "const": true }))
    }

    /// Creates a calendar date, `YYYY-MM-DD`.
    pub fn date() -> Self {
        Self::of(json!({ "type": "string", "format": "date" }))
    }

    /// Creates a time of day, `HH:MM`, from `00:00` to `23:59`.
    pub fn time_of_day() -> Self {
        Self::of(json!({ "type": "string", "pattern": TIME_OF_DAY }))
    }

    pub fn timestamp() -> Self {
        Self::of(json!({ "type": "string", "format": "date-time" }))
    }

    /// Creates an object of these fields.
    pub fn object(body: Body) -> Self {
        Self::of(body.into_json())
    }

    /// Creates an object of any fields.
    pub fn any_object() -> Self {
        Self::of(json!({ "type": "object" }))
    }

    /// Creates a list of `min` to `max` objects.
    pub fn objects(body: Body, min: usize, max: usize) -> Self {
        Self::of(json!({ "type": "array", "items": body.into_json(), "minItems": min, "maxItems": max }))
    }

    pub fn one_of(names: &[&str]) -> Self {
        Self::of(json!({ "type": "string", "enum": names }))
    }

    /// Creates a list of at least `min` of these names. A repeated name counts once.
    pub fn list_of(names: &[&str], min: usize) -> Self {
        Self::of(json!({ "type": "array", "items": { "type": "string", "enum": names }, "minItems": min }))
    }

    fn of(schema: Value) -> Self {
        Self { schema, required: false }
    }

    /// Makes the field required.
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the value of an omitted field.
    pub fn default_value(mut self, value: impl Into<Value>) -> Self {
        self.schema["default"] = value.into();
        self
    }

    /// Describes the field.
    pub fn about(mut self, text: &str) -> Self {
        self.schema["description"] = json!(text);
        self
    }

    /// Allows null, which counts as omitted.
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
    /// Creates a body of these fields. An optional field may be null, which counts as omitted. Other fields are
    /// ignored.
    pub fn new(fields: impl IntoIterator<Item = (&'static str, Field)>) -> Self {
        Self::with(fields, Field::or_null)
    }

    /// Creates a body of these fields. Other fields and null are refused.
    pub fn strict(fields: impl IntoIterator<Item = (&'static str, Field)>) -> Self {
        Self::with(fields, |field| field).closed()
    }

    /// Creates a change of a record with at least one field. An omitted field stays unchanged, so null does not count
    /// as omitted.
    pub fn change(fields: impl IntoIterator<Item = (&'static str, Field)>) -> Self {
        let mut body = Self::strict(fields);
        body.0["minProperties"] = json!(1);
        body
    }

    fn with(fields: impl IntoIterator<Item = (&'static str, Field)>, optional: fn(Field) -> Field) -> Self {
        let mut required: Vec<&str> = Vec::new();
        let mut properties = Map::new();
        for (name, field) in fields {
            required.extend(field.required.then_some(name));
            let field = if field.required { field } else { optional(field) };
            properties.insert(name.to_owned(), field.schema);
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        Self(schema)
    }

    /// Refuses other fields.
    pub fn closed(mut self) -> Self {
        self.0["additionalProperties"] = json!(false);
        self
    }

    /// Allows these names in a list if another field has this value. Otherwise the list is of the other names, at least
    /// one.
    pub fn names_when(mut self, list: &str, (other, value): (&str, &str), names: &[&str], otherwise: &[&str]) -> Self {
        let items = |names: &[&str]| json!({ "type": "string", "enum": names });
        self.0["if"] = json!({ "properties": { other: { "const": value } } });
        self.0["then"] = json!({ "properties": { list: { "items": items(names) } } });
        let needed = json!({ "type": "array", "items": items(otherwise), "minItems": 1 });
        self.0["else"] = json!({ "required": [list], "properties": { list: needed } });
        self
    }

    /// Sets the fields that null clears.
    pub fn clearing(mut self, names: &[&str]) -> Self {
        for name in names {
            let field = Field::of(self.0["properties"][name].take()).or_null();
            self.0["properties"][name] = field.schema;
        }
        self
    }

    /// Sets the fields that no caller may set.
    pub fn forbidding(mut self, names: &[&str]) -> Self {
        let sent: Vec<Value> = names.iter().map(|name| json!({ "required": [name] })).collect();
        self.0["not"] = match &sent[..] {
            [only] => only.clone(),
            _ => json!({ "anyOf": sent }),
        };
        self
    }

    pub fn into_json(self) -> Value {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_key::Permission;
    use crate::booking::{AvailabilityRequest, BookingDraft, CancelDraft, RescheduleDraft};
    use crate::client_draft::{ClientDraft, ClientPatch};
    use crate::contact::{ContactDraft, ContactPatch};
    use crate::endpoint::{EndpointChange, EndpointDraft};
    use crate::event_access::EventAccess;
    use crate::fields::{Fields, Invalid};
    use crate::key::{KeyChange, KeyDraft};
    use crate::opportunity::{OpportunityDraft, OpportunityPatch};
    use crate::receiver_url::Reach;
    use crate::time::Timestamp;

    const UUID: &str = "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69";

    /// A parser, its schema, and its smallest body.
    struct Case {
        name: &'static str,
        schema: Value,
        parse: fn(&Value) -> Result<(), Invalid>,
        minimal: Value,
    }

    impl Case {
        fn new(name: &'static str, body: Body, minimal: Value, parse: fn(&Value) -> Result<(), Invalid>) -> Self {
            let mut schema = body.into_json();
            // The smallest body falls under `else`, if there is one.
            let otherwise = schema["else"].take();
            for required in otherwise["required"].as_array().into_iter().flatten() {
                schema["required"].as_array_mut().unwrap().push(required.clone());
            }
            for (name, rules) in otherwise["properties"].as_object().into_iter().flatten() {
                let field = schema["properties"][name].as_object_mut().unwrap();
                field.extend(rules.as_object().unwrap().clone());
            }
            Self { name, schema, parse, minimal }
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

    /// The case of a type with a parser and a schema, under the name of its schema.
    macro_rules! case {
        ($name:literal, $draft:ty, $minimal:expr) => {
            Case::new($name, <$draft>::schema(), $minimal, |body| <$draft>::parse(body).map(drop))
        };
    }

    fn cases() -> Vec<Case> {
        let key = json!({ "name": "CRM", "scope": "crm", "permissions": ["contacts.read"] });
        let endpoint = json!({ "url": "https://a.example/", "events": ["new_client"], "payload_mode": "identifiers" });
        let events = json!({ "types": ["new_client"], "payload_mode": "identifiers" });
        let time = json!({ "leadId": UUID, "calendarId": UUID, "date": "2027-03-01", "time": "09:30" });
        vec![
            case!("CreateClient", ClientDraft, json!({ "email": "ada@example.com" })),
            case!("UpdateClient", ClientPatch, json!({ "is_active": true })),
            Case::new("CreateKey", KeyDraft::schema(), key, |body| {
                KeyDraft::parse(Fields::body(body)?, Timestamp::from_ms(0)).map(drop)
            }),
            Case::new("UpdateKey", KeyChange::schema(), json!({ "name": "CRM" }), |body| {
                KeyChange::parse(Fields::body(body)?, Timestamp::from_ms(0)).map(drop)
            }),
            Case::new("EventAccess", EventAccess::schema(), events, |body| {
                EventAccess::parse(Fields::body(body)?).map(drop)
            }),
            Case::new("CreateEndpoint", EndpointDraft::schema(), endpoint, |body| {
                EndpointDraft::parse(Fields::body(body)?, Reach::Public).map(drop)
            }),
            Case::new("UpdateEndpoint", EndpointChange::schema(), json!({ "enabled": true }), |body| {
                EndpointChange::parse(Fields::body(body)?, Reach::Public).map(drop)
            }),
            case!("CreateContact", ContactDraft, json!({ "name": "Ada", "email": "ada@example.com" })),
            case!("UpdateContact", ContactPatch, json!({ "name": "Ada" })),
            case!("CreateOpportunity", OpportunityDraft, json!({ "contactId": UUID })),
            case!("UpdateOpportunity", OpportunityPatch, json!({ "name": "Package" })),
            case!("CreateBooking", BookingDraft, time),
            case!(
                "RescheduleBooking",
                RescheduleDraft,
                json!({ "leadId": UUID, "date": "2027-03-01", "time": "09:30" })
            ),
            case!("CancelBooking", CancelDraft, json!({ "leadId": UUID })),
            case!("FindTimes", AvailabilityRequest, json!({ "leadId": UUID })),
        ]
    }

    fn allows(field: &Value, kind: &str) -> bool {
        match &field["type"] {
            Value::Array(kinds) => kinds.iter().any(|allowed| allowed == kind),
            allowed => allowed == kind || (kind == "number" && allowed == "integer"),
        }
    }

    /// Returns a text of that many characters in the field's format.
    fn text_of(field: &Value, chars: usize) -> String {
        match field["format"].as_str() {
            Some("idn-email") => {
                // A domain label has at most 63 characters.
                let labels: String = (1..=chars - 73).map(|i| if i % 61 == 0 { '.' } else { 'b' }).collect();
                format!("{}@{labels}.example.com", "a".repeat(60))
            }
            Some("uri") => format!("https://a.example/{}", "x".repeat(chars - 18)),
            _ if field["pattern"] == NO_NUL => "é".repeat(chars),
            _ => "x".repeat(chars),
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
    fn a_number_is_taken_from_the_least_to_the_most_and_refused_beyond() {
        let mut seen = [0, 0];
        for case in cases() {
            for (name, field) in case.properties().filter(|(_, field)| field["maximum"].is_number()) {
                // A number without a fraction is whole, in any spelling.
                let is_whole = field["type"] == "integer";
                seen[usize::from(is_whole)] += 1;
                assert!(is_whole || allows(field, "number"));
                let step = if is_whole { 1.0 } else { 0.001 };
                let above = field["exclusiveMinimum"].as_f64().map(|above| above + step);
                let (least, most) = (above.or(field["minimum"].as_f64()).unwrap(), field["maximum"].as_f64().unwrap());
                for good in [least, least + step, most] {
                    case.takes(name, json!(good));
                    if is_whole {
                        case.takes(name, json!(good as i64));
                    }
                }
                for bad in [least - step, least - 1.0, most + step, f64::MAX] {
                    case.refuses(name, json!(bad));
                }
                case.refuses(name, json!("1"));
                if is_whole {
                    case.refuses(name, json!(0.5));
                }
            }
        }
        assert!(seen[0] >= 2 && seen[1] >= 2, "{seen:?}");
    }

    #[test]
    fn a_text_with_a_form_is_accepted_in_that_form_only() {
        let forms: [(Value, &[&str], &[&str]); 4] = [
            (
                json!({ "format": "uuid" }),
                &[UUID, "0197A6A0-5C3B-7000-8000-2F1D3C4B5A69"],
                &[
                    "",
                    "0197a6a05c3b700080002f1d3c4b5a69",
                    "{0197a6a0-5c3b-7000-8000-2f1d3c4b5a69}",
                    "urn:uuid:0197a6a0-5c3b-7000-8000-2f1d3c4b5a69",
                    "0197a6a0-5c3b-7000-8000-2f1d3c4b5a6g",
                    "0197a6a0-5c3b-7000-8000-2f1d3c4b5a6",
                    "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69 ",
                ],
            ),
            (
                json!({ "format": "date" }),
                &["2027-12-31", "2028-02-29"],
                &["", "2027-02-29", "2027-1-05", "2027-01-05T00:00:00Z", "20270105", "2027-01-05\n"],
            ),
            (
                json!({ "pattern": TIME_OF_DAY }),
                &["00:00", "09:05", "19:30", "23:59"],
                &["", "24:00", "9:00", "+9:00", "12:60", "12:5", "12:00:00", " 12:00", "12:00\n", "１２:00", "12.00"],
            ),
            (
                json!({ "pattern": "^[a-zA-Z0-9_-]{1,100}$" }),
                &["new", "Won_2-b"],
                &["two words", "größe", "a.b", "a\n", "٣"],
            ),
        ];
        for (form, good, bad) in forms {
            let (kind, form) = form.as_object().unwrap().iter().next().unwrap();
            let mut seen = 0;
            for case in cases() {
                for (name, _) in case.properties().filter(|(_, field)| field[kind] == *form) {
                    seen += 1;
                    good.iter().for_each(|text| case.takes(name, json!(text)));
                    bad.iter().for_each(|text| case.refuses(name, json!(text)));
                }
            }
            assert!(seen >= 1, "{form}");
        }
    }

    #[test]
    fn a_name_is_one_of_those_that_are_listed() {
        let mut seen = 0;
        for case in cases() {
            for (name, field) in case.properties() {
                let is_list = field["items"].is_object();
                let names = if is_list { &field["items"]["enum"] } else { &field["enum"] };
                // A value that the rest of the smallest body does not go with has a test of its own.
                let other = &case.schema["if"]["properties"][name]["const"];
                let is_taken = |listed: &&Value| !listed.is_null() && *listed != other;
                for listed in names.as_array().into_iter().flatten().filter(is_taken) {
                    seen += 1;
                    // A repeated name counts once.
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
    fn another_value_than_the_only_one_or_of_another_type_is_refused_and_null_is_taken_where_it_is_allowed() {
        let mut only = 0;
        for case in cases() {
            for (name, field) in case.properties() {
                if field["const"] == true {
                    only += 1;
                    case.takes(name, json!(true));
                    case.refuses(name, json!(false));
                }
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
        assert!(only >= 1, "{only}");
    }

    #[test]
    fn a_required_field_is_required_and_a_list_may_be_empty_if_its_schema_allows_it() {
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
    fn other_fields_are_refused_or_ignored_by_the_schema() {
        for case in cases() {
            if case.schema["additionalProperties"] == false {
                case.refuses("favourite_colour", json!(["red"]));
            } else {
                case.takes("favourite_colour", json!(["red"]));
            }
            assert!((case.parse)(&json!([])).is_err() && (case.parse)(&json!("text")).is_err());
        }
    }

    #[test]
    fn a_forbidden_field_is_refused_with_any_value() {
        let mut seen = 0;
        for case in cases() {
            let several = case.schema["not"]["anyOf"].as_array().into_iter().flatten();
            let forbidden = several.chain(case.schema.get("not").filter(|not| not["required"].is_array()));
            for name in forbidden.map(|sent| sent["required"][0].as_str().unwrap()) {
                seen += 1;
                assert!(case.schema["properties"].get(name).is_none(), "{}.{name}", case.name);
                case.refuses(name, json!("other"));
                case.refuses(name, json!(null));
            }
        }
        assert!(seen >= 7, "{seen}");
    }

    #[test]
    fn a_key_takes_the_permissions_of_its_scope() {
        let case = cases().into_iter().find(|case| case.name == "CreateKey").unwrap();
        assert_eq!(case.schema["if"]["properties"]["scope"]["const"], "partner");
        let partner = &case.schema["then"]["properties"]["permissions"]["items"]["enum"];
        // The smallest body is a CRM key's.
        let crm = &case.schema["properties"]["permissions"]["items"]["enum"];
        assert_eq!(partner.as_array().unwrap().len() + crm.as_array().unwrap().len(), Permission::ALL.len());
        for (scope, own, other) in [("partner", partner, crm), ("crm", crm, partner)] {
            let taken = |permissions: Value| {
                (case.parse)(&json!({ "name": "n", "scope": scope, "permissions": permissions })).is_ok()
            };
            assert!(taken(own.clone()));
            for permission in other.as_array().unwrap() {
                assert!(!taken(json!([own[0], permission])), "{scope} {permission}");
            }
            assert_eq!(taken(Value::Null), scope == "partner");
            assert!(!taken(json!([])), "an empty list is no choice");
        }
        assert!((case.parse)(&json!({ "name": "n", "scope": "partner" })).is_ok());
    }
}
