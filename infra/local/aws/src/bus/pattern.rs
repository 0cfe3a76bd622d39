//! Event patterns of rules and of stream filters: nested fields, and lists of accepted values. All other constructs of
//! the pattern language are refused, so that a pattern matches exactly as in production.

use serde_json::{Map, Value};

/// A parsed event pattern.
#[derive(Debug, Clone)]
pub struct Pattern(Map<String, Value>);

impl Pattern {
    /// Parses an object.
    pub fn parse(pattern: &Value) -> Result<Self, String> {
        let fields = pattern.as_object().ok_or_else(|| format!("the pattern {pattern} is no object"))?;
        check(fields)?;
        Ok(Self(fields.clone()))
    }

    /// Returns true if each field matches.
    pub fn matches(&self, event: &Value) -> bool {
        matches(&self.0, event)
    }
}

fn check(fields: &Map<String, Value>) -> Result<(), String> {
    fields.iter().try_for_each(|(name, accepted)| match accepted {
        Value::Object(fields) => check(fields),
        Value::Array(values) if !values.iter().any(|value| value.is_object() || value.is_array()) => Ok(()),
        _ => Err(format!("the local stack does not know the condition on {name}: {accepted}")),
    })
}

fn matches(fields: &Map<String, Value>, event: &Value) -> bool {
    fields.iter().all(|(name, accepted)| match (accepted, event.get(name)) {
        (Value::Object(fields), Some(event)) => matches(fields, event),
        // A list in the event matches if any of its members does.
        (Value::Array(accepted), Some(Value::Array(values))) => values.iter().any(|value| accepted.contains(value)),
        (Value::Array(accepted), Some(value)) => accepted.contains(value),
        _ => false,
    })
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
        for pattern in [json!({ "source": [{ "prefix": "a" }] }), json!({ "source": "a" }), json!(["a"])] {
            assert!(Pattern::parse(&pattern).is_err(), "{pattern}");
        }
    }
}
