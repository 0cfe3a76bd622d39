//! Parsing, refusals and batch results that the operations share. Unknown parameters are refused by name.

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::answer::ServiceError;

const MAX_ENTRIES: usize = 10;

/// Parses a request. An empty body is an empty request.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ServiceError> {
    serde_json::from_slice(if body.is_empty() { b"{}" } else { body })
        .map_err(|reason| refused("SerializationException", reason.to_string()))
}

/// Refuses a number out of its range.
pub(super) fn in_range(name: &str, value: Option<i64>, min: i64, max: i64) -> Result<Option<i64>, ServiceError> {
    match value {
        Some(value) if !(min..=max).contains(&value) => {
            Err(invalid(format!("Value {value} for parameter {name} is invalid. Must be >= {min} and <= {max}.")))
        }
        value => Ok(value),
    }
}

/// Selects the requested attributes.
pub(super) fn selected(mut attributes: Map<String, Value>, wanted: &[String]) -> Map<String, Value> {
    attributes.retain(|name, _| wanted.iter().any(|wanted| wanted == "All" || wanted == name));
    attributes
}

/// Refuses a malformed batch as a whole.
pub(super) fn check_batch<'a>(ids: impl ExactSizeIterator<Item = &'a str>) -> Result<(), ServiceError> {
    let entries = ids.len();
    if entries == 0 {
        Err(refused("EmptyBatchRequest", "There should be at least one entry in the request."))
    } else if entries > MAX_ENTRIES {
        let message = format!("Maximum number of entries per request are {MAX_ENTRIES}.");
        Err(refused("TooManyEntriesInBatchRequest", message))
    } else if ids.collect::<HashSet<_>>().len() < entries {
        Err(refused("BatchEntryIdsNotDistinct", "Ids are repeated."))
    } else {
        Ok(())
    }
}

/// Renders the results of a batch's entries, each with the entry's id.
pub(super) fn batch_results(results: Vec<(String, Result<Value, ServiceError>)>) -> Value {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for (id, result) in results {
        match result {
            Ok(mut result) => {
                result["Id"] = id.into();
                successful.push(result);
            }
            Err(error) => failed.push(json!({
                "Id": id, "SenderFault": error.status() < 500, "Code": error.code(), "Message": error.message(),
            })),
        }
    }
    json!({ "Successful": successful, "Failed": failed })
}

pub(super) fn queue_does_not_exist() -> ServiceError {
    refused("QueueDoesNotExist", "The specified queue does not exist.")
}

pub(super) fn invalid(message: impl Into<String>) -> ServiceError {
    refused("InvalidParameterValueException", message)
}

pub(super) fn refused(shape: &str, message: impl Into<String>) -> ServiceError {
    ServiceError::json_1_0(400, format!("com.amazonaws.sqs#{shape}"), message)
}
