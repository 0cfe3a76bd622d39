//! Resolution of the intrinsic functions `Ref`, `Fn::Sub`, `Fn::GetAtt` and `Fn::If` to local values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::TemplateError;

/// The values by which other resources refer to a resource: its `Ref` and its attributes.
#[derive(Debug, Clone, Default)]
pub(super) struct Identity {
    pub(super) reference: String,
    pub(super) attributes: BTreeMap<&'static str, String>,
}

/// Parameters, pseudo parameters, resources and conditions by logical name.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub(super) parameters: BTreeMap<String, Value>,
    pub(super) resources: BTreeMap<String, Identity>,
    pub(super) conditions: BTreeMap<String, bool>,
}

impl Names {
    /// Replaces all intrinsic functions in a value.
    pub(super) fn resolve(&self, value: &Value) -> Result<Value, TemplateError> {
        match value {
            Value::Array(items) => items.iter().filter_map(|item| self.present(item).transpose()).collect(),
            Value::Object(entries) => match intrinsic(entries) {
                Some(("Fn::If", _)) => {
                    self.present(value)?.ok_or_else(|| TemplateError::new("has a value that is none"))
                }
                Some((function, argument)) => self.call(function, argument),
                None => {
                    let present = |(key, item): (&String, _)| Ok(self.present(item)?.map(|item| (key.clone(), item)));
                    let entries = entries.iter().filter_map(|entry| present(entry).transpose());
                    Ok(Value::Object(entries.collect::<Result<_, TemplateError>>()?))
                }
            },
            plain => Ok(plain.clone()),
        }
    }

    /// Resolves a value, or the branch of an `Fn::If`. Returns `None` for `AWS::NoValue`, which removes the entry.
    fn present(&self, value: &Value) -> Result<Option<Value>, TemplateError> {
        let Some(call) = value.as_object().and_then(intrinsic) else { return self.resolve(value).map(Some) };
        match call {
            ("Ref", name) if name == "AWS::NoValue" => Ok(None),
            ("Fn::If", argument) => {
                let parts = argument.as_array().map(Vec::as_slice);
                let Some([Value::String(condition), yes, no]) = parts else {
                    return Err(TemplateError::new(format!("has a malformed Fn::If: {argument}")));
                };
                let holds = self.conditions.get(condition);
                let holds = holds.ok_or_else(|| TemplateError::new(format!("has no condition {condition}")))?;
                self.present(if *holds { yes } else { no })
            }
            _ => self.resolve(value).map(Some),
        }
    }

    fn call(&self, function: &str, argument: &Value) -> Result<Value, TemplateError> {
        let malformed = || TemplateError::new(format!("has a malformed {function}: {argument}"));
        match function {
            "Ref" => self.reference(argument.as_str().ok_or_else(malformed)?),
            "Fn::GetAtt" => match argument.as_array().map(Vec::as_slice) {
                Some([Value::String(resource), Value::String(attribute)]) => {
                    self.attribute(resource, attribute).map(Value::String)
                }
                _ => Err(malformed()),
            },
            "Fn::Sub" => self.substitute(argument.as_str().ok_or_else(malformed)?),
            other => Err(TemplateError::new(format!("uses {other}, which the local stack does not support"))),
        }
    }

    fn reference(&self, name: &str) -> Result<Value, TemplateError> {
        if let Some(value) = self.parameters.get(name) {
            return Ok(value.clone());
        }
        let identity = self.resources.get(name);
        identity.map(|identity| Value::String(identity.reference.clone())).ok_or_else(|| {
            TemplateError::new(format!("refers to {name}, which is no parameter and no resource that exists locally"))
        })
    }

    fn attribute(&self, resource: &str, attribute: &str) -> Result<String, TemplateError> {
        let identity = self.resources.get(resource);
        identity.and_then(|identity| identity.attributes.get(attribute)).cloned().ok_or_else(|| {
            TemplateError::new(format!("refers to {resource}.{attribute}, which does not exist locally"))
        })
    }

    /// Replaces `${Name}` and `${Resource.Attribute}`.
    fn substitute(&self, template: &str) -> Result<Value, TemplateError> {
        let mut result = String::with_capacity(template.len());
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("${") {
            result.push_str(before);
            let (name, tail) = after
                .split_once('}')
                .ok_or_else(|| TemplateError::new(format!("has a Fn::Sub without an end: {template}")))?;
            rest = tail;
            let value = match name.split_once('.') {
                Some((resource, attribute)) => Value::String(self.attribute(resource, attribute)?),
                None => self.reference(name)?,
            };
            result.push_str(&text(&value).ok_or_else(|| TemplateError::new(format!("puts a list into {template}")))?);
        }
        result.push_str(rest);
        Ok(Value::String(result))
    }
}

/// Renders a scalar as CloudFormation does in text.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn intrinsic(entries: &Map<String, Value>) -> Option<(&str, &Value)> {
    let mut all = entries.iter();
    let (key, argument) = all.next()?;
    let only = all.next().is_none();
    (only && (key == "Ref" || key.starts_with("Fn::"))).then_some((key.as_str(), argument))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> Names {
        let queue = Identity { reference: "http://queue".to_owned(), attributes: [("Arn", "arn:q".to_owned())].into() };
        Names {
            parameters: [("Prefix".to_owned(), json!("p-")), ("AWS::Region".to_owned(), json!("us-east-1"))].into(),
            resources: [("Queue".to_owned(), queue)].into(),
            conditions: [("Yes".to_owned(), true), ("No".to_owned(), false)].into(),
        }
    }

    #[rstest::rstest]
    #[case(json!({"Ref": "Prefix"}), json!("p-"))]
    #[case(json!({"Ref": "Queue"}), json!("http://queue"))]
    #[case(json!({"Fn::GetAtt": ["Queue", "Arn"]}), json!("arn:q"))]
    #[case(json!({"Fn::Sub": "${Prefix}x/${Queue.Arn}/${AWS::Region}"}), json!("p-x/arn:q/us-east-1"))]
    #[case(json!([{"a": {"Ref": "Prefix"}, "b": 1}]), json!([{"a": "p-", "b": 1}]))]
    #[case(json!({"Fn::If": ["Yes", {"Ref": "Prefix"}, {"Ref": "Nobody"}]}), json!("p-"))]
    #[case(json!({"a": {"Fn::If": ["No", 1, {"Ref": "AWS::NoValue"}]}, "b": 2}), json!({"b": 2}))]
    #[case(json!([{"Fn::If": ["No", 1, {"Fn::If": ["Yes", {"Ref": "AWS::NoValue"}, 3]}]}, 2]), json!([2]))]
    fn intrinsics_are_replaced(#[case] given: Value, #[case] wanted: Value) {
        assert_eq!(names().resolve(&given).unwrap(), wanted);
    }

    #[rstest::rstest]
    #[case(json!({"Ref": "Nobody"}), "refers to Nobody")]
    #[case(json!({"Fn::GetAtt": ["Queue", "Name"]}), "refers to Queue.Name")]
    #[case(json!({"Fn::ImportValue": "a"}), "does not support")]
    #[case(json!({"Fn::If": ["a", 1, 2]}), "no condition a")]
    #[case(json!({"Fn::If": ["Yes", 1]}), "malformed Fn::If")]
    #[case(json!({"Fn::Sub": "${Prefix"}), "without an end")]
    #[case(json!({"Fn::Join": ["", []]}), "does not support")]
    fn an_unresolvable_value_is_a_clear_error(#[case] given: Value, #[case] wanted: &str) {
        let message = names().resolve(&given).unwrap_err().to_string();
        assert!(message.contains(wanted) && message.starts_with("template.yaml "), "{message}");
    }
}
