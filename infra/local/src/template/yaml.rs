//! Parser of a CloudFormation template to JSON. YAML's short tags (`!Ref x`) become the long form (`{"Ref": "x"}`).
//!
//! The YAML parser is `saphyr`: it is maintained, pure Rust, and keeps tags.

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

use super::error::TemplateError;

/// Parses the document to JSON.
pub(super) fn parse(text: &str) -> Result<Value, TemplateError> {
    let documents =
        Yaml::load_from_str(text).map_err(|error| TemplateError::new(format!("is not valid YAML: {error}")))?;
    match documents.as_slice() {
        [document] => value(document),
        _ => Err(TemplateError::new("must be one YAML document")),
    }
}

fn value(node: &Yaml<'_>) -> Result<Value, TemplateError> {
    Ok(match node {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(flag)) => json!(flag),
        Yaml::Value(Scalar::Integer(number)) => json!(number),
        Yaml::Value(Scalar::FloatingPoint(number)) => json!(number.into_inner()),
        Yaml::Value(Scalar::String(text)) => json!(text),
        Yaml::Sequence(items) => Value::Array(items.iter().map(value).collect::<Result<_, _>>()?),
        Yaml::Mapping(entries) => {
            let entries = entries.iter().map(|(key, item)| Ok((key_text(key)?, value(item)?)));
            Value::Object(entries.collect::<Result<Map<_, _>, TemplateError>>()?)
        }
        Yaml::Tagged(tag, inner) => intrinsic(&tag.suffix, value(inner)?),
        other => return Err(TemplateError::new(format!("holds YAML that is not supported: {other:?}"))),
    })
}

fn key_text(key: &Yaml<'_>) -> Result<String, TemplateError> {
    match key {
        Yaml::Value(Scalar::String(text)) => Ok(text.to_string()),
        Yaml::Value(Scalar::Integer(number)) => Ok(number.to_string()),
        Yaml::Value(Scalar::Boolean(flag)) => Ok(flag.to_string()),
        other => Err(TemplateError::new(format!("has a key that is no text: {other:?}"))),
    }
}

fn intrinsic(tag: &str, argument: Value) -> Value {
    match (tag, &argument) {
        ("Ref" | "Condition", _) => json!({ tag: argument }),
        ("GetAtt", Value::String(path)) => {
            let (resource, attribute) = path.split_once('.').unwrap_or((path, ""));
            json!({ "Fn::GetAtt": [resource, attribute] })
        }
        _ => json!({ format!("Fn::{tag}"): argument }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_tags_become_the_long_form() {
        let text = "a: !Ref X\nb: !GetAtt X.Arn\nc: !Sub ${X}-y\nd: [!Join [',', [1, yes]]]\ne: { n: 3, t: true, s: '3', z: }\n";
        assert_eq!(
            parse(text).unwrap(),
            json!({
                "a": {"Ref": "X"}, "b": {"Fn::GetAtt": ["X", "Arn"]}, "c": {"Fn::Sub": "${X}-y"},
                "d": [{"Fn::Join": [",", [1, "yes"]]}], "e": {"n": 3, "t": true, "s": "3", "z": null},
            })
        );
    }

    #[test]
    fn invalid_yaml_is_one_clear_line() {
        let message = parse("a: [1").unwrap_err().to_string();
        assert!(message.starts_with("template.yaml is not valid YAML") && !message.contains('\n'), "{message}");
    }
}
