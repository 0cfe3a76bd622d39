//! SQS errors: the shape of the JSON protocol, and the code of the Query protocol, which boto3 still displays.

use crate::answer::ServiceError;

const NAMESPACE: &str = "com.amazonaws.sqs";
const CORAL: &str = "com.amazon.coral.service";

fn error(namespace: &str, shape: &str, code: &str, message: impl Into<String>) -> ServiceError {
    ServiceError::json_1_0(400, format!("{namespace}#{shape}"), message).with_query_error(code)
}

/// Builds an error whose code is its shape, prefixed by the service's name.
fn named(shape: &str, message: impl Into<String>) -> ServiceError {
    error(NAMESPACE, shape, &format!("AWS.SimpleQueueService.{shape}"), message)
}

pub(super) fn queue_does_not_exist() -> ServiceError {
    let code = "AWS.SimpleQueueService.NonExistentQueue";
    error(NAMESPACE, "QueueDoesNotExist", code, "The specified queue does not exist.")
}

pub(super) fn queue_name_exists(name: &str) -> ServiceError {
    let message = format!("A queue named {name} already exists with other attributes.");
    error(NAMESPACE, "QueueNameExists", "QueueAlreadyExists", message)
}

pub(super) fn invalid_parameter(message: impl Into<String>) -> ServiceError {
    error(CORAL, "InvalidParameterValueException", "InvalidParameterValue", message)
}

/// Builds SQS's error for a number out of its range.
pub(super) fn out_of_range(name: &str, value: impl std::fmt::Display, min: i64, max: i64) -> ServiceError {
    invalid_parameter(format!(
        "Value {value} for parameter {name} is invalid. Reason: Must be >= {min} and <= {max}, if provided."
    ))
}

pub(super) fn missing_parameter(name: &str) -> ServiceError {
    let message = format!("The request must contain the parameter {name}.");
    error(CORAL, "MissingRequiredParameterException", "MissingParameter", message)
}

pub(super) fn malformed(reason: &serde_json::Error) -> ServiceError {
    error(CORAL, "SerializationException", "MalformedInput", reason.to_string())
}

pub(super) fn unknown_operation(operation: &str) -> ServiceError {
    let message = format!("The local stack's SQS has no operation {operation}.");
    error(CORAL, "UnknownOperationException", "InvalidAction", message)
}

pub(super) fn invalid_attribute_name(name: &str) -> ServiceError {
    error(NAMESPACE, "InvalidAttributeName", "InvalidAttributeName", format!("Unknown Attribute {name}."))
}

pub(super) fn invalid_attribute_value(name: &str) -> ServiceError {
    let message = format!("Invalid value for the parameter {name}.");
    error(NAMESPACE, "InvalidAttributeValue", "InvalidAttributeValue", message)
}

pub(super) fn receipt_handle_is_invalid(handle: &str) -> ServiceError {
    let message = format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
    error(NAMESPACE, "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", message)
}

pub(super) fn message_not_inflight() -> ServiceError {
    named("MessageNotInflight", "The specified message is not in flight.")
}

pub(super) fn invalid_message_contents() -> ServiceError {
    let message = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | \
                   #xE000 to #xFFFD | #x10000 to #x10FFFF";
    error(NAMESPACE, "InvalidMessageContents", "InvalidMessageContents", message)
}

pub(super) fn message_too_long(limit: usize) -> ServiceError {
    invalid_parameter(format!(
        "One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes."
    ))
}

pub(super) fn empty_batch() -> ServiceError {
    named("EmptyBatchRequest", "There should be at least one entry in the request.")
}

pub(super) fn too_many_entries(count: usize) -> ServiceError {
    let message = format!("Maximum number of entries per request are 10. You have sent {count}.");
    named("TooManyEntriesInBatchRequest", message)
}

pub(super) fn entry_ids_not_distinct(id: &str) -> ServiceError {
    named("BatchEntryIdsNotDistinct", format!("Id {id} repeated."))
}

pub(super) fn invalid_entry_id() -> ServiceError {
    let message = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. \
                   It can be at most 80 letters long.";
    named("InvalidBatchEntryId", message)
}

pub(super) fn batch_too_long(limit: usize, bytes: usize) -> ServiceError {
    let message = format!("Batch requests cannot be longer than {limit} bytes. You have sent {bytes} bytes.");
    named("BatchRequestTooLong", message)
}
