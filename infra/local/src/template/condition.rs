//! Evaluation of the template's `Conditions`, which switch resources and properties by parameters.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::TemplateError;
use super::resolve::{Names, text};

/// Maximum nesting of conditions. A longer chain is taken for a cycle.
const MAX_DEPTH: usize = 16;

/// Evaluates each condition of `Conditions`.
pub(super) fn evaluate(declared: &Value, names: &Names) -> Result<BTreeMap<String, bool>, TemplateError> {
    let none = Map::new();
    let conditions = Conditions { declared: declared.as_object().unwrap_or(&none), names };
    conditions.declared.iter().map(|(name, condition)| Ok((name.clone(), conditions.holds(condition, 0)?))).collect()
}

struct Conditions<'a> {
    declared: &'a Map<String, Value>,
    names: &'a Names,
}

impl Conditions<'_> {
    fn holds(&self, condition: &Value, depth: usize) -> Result<bool, TemplateError> {
        let malformed = || TemplateError::new(format!("has a condition that is not supported: {condition}"));
        let mut entries = condition.as_object().ok_or_else(malformed)?.iter();
        let (Some((function, argument)), None) = (entries.next(), entries.next()) else { return Err(malformed()) };
        if depth > MAX_DEPTH {
            return Err(TemplateError::new("has conditions that name one another in a circle"));
        }
        let holds = |item: &Value| self.holds(item, depth + 1);
        match (function.as_str(), argument.as_array().map(Vec::as_slice)) {
            ("Condition", None) => {
                let name = argument.as_str().ok_or_else(malformed)?;
                let named = self.declared.get(name);
                holds(named.ok_or_else(|| TemplateError::new(format!("has no condition {name}")))?)
            }
            ("Fn::Equals", Some([left, right])) => {
                let compared = |value| Ok::<_, TemplateError>(text(&self.names.resolve(value)?));
                Ok(compared(left)?.ok_or_else(malformed)? == compared(right)?.ok_or_else(malformed)?)
            }
            ("Fn::Not", Some([item])) => Ok(!holds(item)?),
            ("Fn::And", Some(items)) => {
                Ok(items.iter().map(holds).collect::<Result<Vec<_>, _>>()?.iter().all(|yes| *yes))
            }
            _ => Err(malformed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluated(declared: &Value) -> Result<BTreeMap<String, bool>, TemplateError> {
        let parameters = [("Full".to_owned(), json!("x")), ("Empty".to_owned(), json!(""))].into();
        evaluate(declared, &Names { parameters, ..Names::default() })
    }

    #[rstest::rstest]
    #[case(json!({"Fn::Equals": [{"Ref": "Full"}, "x"]}), true)]
    #[case(json!({"Fn::Equals": [{"Ref": "Empty"}, "x"]}), false)]
    #[case(json!({"Fn::Not": [{"Fn::Equals": [{"Ref": "Empty"}, ""]}]}), false)]
    #[case(json!({"Fn::And": [{"Condition": "Yes"}, {"Fn::Not": [{"Condition": "Yes"}]}]}), false)]
    #[case(json!({"Fn::And": [{"Condition": "Yes"}, {"Condition": "Yes"}]}), true)]
    fn conditions_follow_the_parameters(#[case] condition: Value, #[case] wanted: bool) {
        let declared = json!({"Yes": {"Fn::Equals": ["a", "a"]}, "Asked": condition});
        assert_eq!(evaluated(&declared).unwrap()["Asked"], wanted);
    }

    #[rstest::rstest]
    #[case(json!({"A": {"Condition": "Nobody"}}), "no condition Nobody")]
    #[case(json!({"A": {"Condition": "B"}, "B": {"Condition": "A"}}), "in a circle")]
    #[case(json!({"A": {"Fn::Contains": [["a"], "a"]}}), "not supported")]
    fn a_condition_that_cannot_be_evaluated_is_a_clear_error(#[case] declared: Value, #[case] wanted: &str) {
        let message = evaluated(&declared).unwrap_err().to_string();
        assert!(message.contains(wanted), "{message}");
    }
}
