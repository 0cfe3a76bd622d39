//! Message attributes: their checksum, and their shapes in the API and in Lambda events.
//!
//! SDKs compare the response's checksum with their own. The checksum covers the attributes in the order of their names:
//! length and bytes of the name, the data type and the value. One byte before the value distinguishes text from binary.
//! Source: the SQS developer guide, "Calculating the MD5 message digest for message attributes".

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};

use super::error;
use crate::answer::ServiceError;

const MAX_ATTRIBUTES: usize = 10;

/// Computes a hexadecimal MD5 checksum, such as `MD5OfBody`.
pub(super) fn md5_hex(bytes: &[u8]) -> String {
    hex(Md5::digest(bytes).as_slice())
}

/// Computes `MD5OfMessageAttributes`. Returns `None` when there are no attributes.
pub(super) fn md5_of(attributes: &Map<String, Value>) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut names: Vec<&String> = attributes.keys().collect();
    names.sort_unstable();
    let mut digest = Md5::new();
    let field = |digest: &mut Md5, bytes: &[u8]| {
        digest.update(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
        digest.update(bytes);
    };
    for name in names {
        let attribute = &attributes[name];
        field(&mut digest, name.as_bytes());
        field(&mut digest, attribute["DataType"].as_str().unwrap_or_default().as_bytes());
        match attribute["BinaryValue"].as_str() {
            Some(binary) => {
                digest.update([2]);
                field(&mut digest, &STANDARD.decode(binary).unwrap_or_default());
            }
            None => {
                digest.update([1]);
                field(&mut digest, attribute["StringValue"].as_str().unwrap_or_default().as_bytes());
            }
        }
    }
    Some(hex(digest.finalize().as_slice()))
}

/// Validates the attributes as SQS does, and returns the bytes that they count for.
pub(super) fn check(attributes: &Map<String, Value>) -> Result<usize, ServiceError> {
    if attributes.len() > MAX_ATTRIBUTES {
        return Err(error::invalid_parameter(format!(
            "Number of message attributes [{}] exceeds the allowed maximum [{MAX_ATTRIBUTES}].",
            attributes.len()
        )));
    }
    let mut bytes = 0;
    for (name, attribute) in attributes {
        let data_type = attribute["DataType"].as_str().unwrap_or_default();
        let value = match data_type.split('.').next() {
            Some("String" | "Number") => attribute["StringValue"].as_str().map(str::len),
            Some("Binary") => {
                attribute["BinaryValue"].as_str().and_then(|value| Some(STANDARD.decode(value).ok()?.len()))
            }
            _ => None,
        };
        let Some(value) = value.filter(|length| *length > 0) else {
            return Err(error::invalid_parameter(format!(
                "The message attribute '{name}' must contain a non-empty value of its type, which is one of String, Number, Binary."
            )));
        };
        bytes += name.len() + data_type.len() + value;
    }
    Ok(bytes)
}

/// Selects the requested attributes: by name, `prefix.*`, `All` or `.*`.
pub(super) fn select(attributes: &Map<String, Value>, wanted: &[String]) -> Map<String, Value> {
    let is_wanted = |name: &str| {
        wanted.iter().any(|wanted| match wanted.strip_suffix(".*") {
            Some(prefix) => name.starts_with(prefix),
            None => wanted == "All" || wanted == name,
        })
    };
    attributes.iter().filter(|(name, _)| is_wanted(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Renders the attributes for a Lambda event.
pub(super) fn for_lambda(attributes: &Map<String, Value>) -> Value {
    let render = |attribute: &Value| {
        let mut rendered = json!({ "stringListValues": [], "binaryListValues": [], "dataType": attribute["DataType"] });
        for (name, from) in [("stringValue", "StringValue"), ("binaryValue", "BinaryValue")] {
            if let Some(value) = attribute.get(from) {
                rendered[name] = value.clone();
            }
        }
        rendered
    };
    attributes.iter().map(|(name, attribute)| (name.clone(), render(attribute))).collect::<Map<_, _>>().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_aws_sdks() {
        // From the test suite of the AWS SDKs.
        let attributes = json!({ "timestamp": { "DataType": "Number", "StringValue": "1493147359900" } });
        assert_eq!(md5_of(attributes.as_object().unwrap()).unwrap(), "235c5c510d26fb653d073faed50ae77c");
        assert_eq!(md5_of(&Map::new()), None);
    }

    #[test]
    fn attributes_are_selected_by_name_and_by_prefix() {
        let attributes = json!({ "a.b": {}, "a.c": {}, "d": {} });
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            select(attributes.as_object().unwrap(), &wanted).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["All"]), ["a.b", "a.c", "d"]);
        assert_eq!(names(&[".*"]), ["a.b", "a.c", "d"]);
        assert_eq!(names(&["a.*", "x"]), ["a.b", "a.c"]);
        assert_eq!(names(&["d"]), ["d"]);
        assert!(names(&[]).is_empty());
    }
}
