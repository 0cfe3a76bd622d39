//! Event patterns: exact values, `prefix`, `anything-but`, and nested objects. Any other construct of EventBridge's
//! pattern language is refused when the rule is added, so that a rule matches exactly as in production.

use serde_json::{Map, Value};

/// A parsed event pattern.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Every field matches.
    Fields(Vec<(String, Node)>),
    /// At least one matcher accepts the value.
    AnyOf(Vec<Matcher>),
}

#[derive(Debug, Clone, PartialEq)]
enum Matcher {
    Exactly(Value),
    Prefix(String),
    AnythingBut(Vec<Value>),
}

impl Pattern {
    /// Parses an object, or a string with one.
    pub(super) fn parse(pattern: &Value) -> Result<Self, String> {
        let parsed = match pattern {
            Value::String(text) => serde_json::from_str(text).map_err(|error| format!("its pattern: {error}"))?,
            other => other.clone(),
        };
        match parsed {
            Value::Object(fields) => Ok(Self(Node::of_fields(&fields)?)),
            _ => Err("its pattern is no object".to_owned()),
        }
    }

    pub(super) fn matches(&self, event: &Value) -> bool {
        self.0.matches(event)
    }
}

impl Node {
    fn of_fields(fields: &Map<String, Value>) -> Result<Self, String> {
        let parse = |(name, value): (&String, &Value)| {
            let node = match value {
                Value::Object(fields) => Self::of_fields(fields)?,
                Value::Array(matchers) => Self::AnyOf(matchers.iter().map(Matcher::parse).collect::<Result<_, _>>()?),
                _ => return Err(format!("the pattern's field {name} is neither a list nor an object")),
            };
            Ok((name.clone(), node))
        };
        fields.iter().map(parse).collect::<Result<_, _>>().map(Self::Fields)
    }

    fn matches(&self, value: &Value) -> bool {
        match self {
            Self::Fields(fields) => {
                fields.iter().all(|(name, node)| value.get(name).is_some_and(|value| node.matches(value)))
            }
            // A list in the event matches if any of its members does.
            Self::AnyOf(conditions) => match value {
                Value::Array(values) => values.iter().any(|value| conditions.iter().any(|one| one.holds(value))),
                value => conditions.iter().any(|condition| condition.holds(value)),
            },
        }
    }
}

impl Matcher {
    fn parse(condition: &Value) -> Result<Self, String> {
        let Value::Object(matcher) = condition else { return Ok(Self::Exactly(condition.clone())) };
        let not_supported = || format!("the local stack does not know the condition {condition}");
        match matcher.iter().next() {
            Some((name, Value::String(prefix))) if name == "prefix" => Ok(Self::Prefix(prefix.clone())),
            Some((name, Value::Array(values))) if name == "anything-but" => Ok(Self::AnythingBut(values.clone())),
            Some((name, value)) if name == "anything-but" && !value.is_object() => {
                Ok(Self::AnythingBut(vec![value.clone()]))
            }
            _ => Err(not_supported()),
        }
    }

    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Exactly(wanted) => wanted == value,
            Self::Prefix(prefix) => value.as_str().is_some_and(|value| value.starts_with(prefix)),
            Self::AnythingBut(others) => !others.contains(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pattern_matches_when_every_field_does() {
        let event = json!({
            "source": "coaching.application", "detail-type": "client.created",
            "detail": { "kind": "a", "tags": ["x", "y"], "inner": { "n": 1 } },
        });
        for (pattern, expected) in [
            (json!({ "source": ["coaching.application"] }), true),
            (json!({ "source": ["other", "coaching.application"] }), true),
            (json!({ "source": ["other"] }), false),
            (json!({ "source": [{ "prefix": "coaching." }] }), true),
            (json!({ "source": [{ "prefix": "partner." }] }), false),
            (json!({ "detail-type": [{ "anything-but": ["client.created"] }] }), false),
            (json!({ "detail-type": [{ "anything-but": "client.deleted" }] }), true),
            (json!({ "detail": { "inner": { "n": [1] } } }), true),
            (json!({ "detail": { "inner": { "n": [2] } } }), false),
            (json!({ "detail": { "tags": ["y"] } }), true),
            (json!({ "detail": { "absent": ["y"] } }), false),
            (json!({}), true),
        ] {
            assert_eq!(Pattern::parse(&pattern).unwrap().matches(&event), expected, "{pattern}");
        }
    }

    #[test]
    fn a_condition_that_is_not_emulated_is_refused() {
        for pattern in [json!({ "source": [{ "wildcard": "a*" }] }), json!({ "source": "a" }), json!(["a"])] {
            assert!(Pattern::parse(&pattern).is_err(), "{pattern}");
        }
    }
}
