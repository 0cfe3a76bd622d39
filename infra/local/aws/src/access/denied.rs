//! How each service says that it may not be done.

use super::need::Need;
use crate::ACCOUNT;
use crate::answer::ServiceError;

/// DynamoDB and SQS take this error from the framework that they are built on.
const CORAL: &str = "com.amazon.coral.service#AccessDeniedException";

pub(super) fn answer(function: &str, need: &Need) -> ServiceError {
    let Need { action, resource, .. } = need;
    // A function's session has its name; its role has one that the deployment makes.
    let user = format!("arn:aws:sts::{ACCOUNT}:assumed-role/{function}-role/{function}");
    let worded = |action: &str| {
        format!(
            "User: {user} is not authorized to perform: {action} on resource: {resource} because no identity-based policy \
             allows the {action} action"
        )
    };
    match action.split(':').next().unwrap_or_default() {
        "dynamodb" => ServiceError::json_1_0(400, CORAL, worded(action)),
        "sqs" => {
            let message = worded(&action.to_ascii_lowercase());
            ServiceError::json_1_0(403, CORAL, message).with_query_error("AccessDenied")
        }
        "ses" => {
            let message = format!("User `{user}' is not authorized to perform `{action}' on resource `{resource}'");
            ServiceError::rest(403, "AccessDeniedException", message)
        }
        _ => ServiceError::json_1_1(400, "AccessDeniedException", worded(action)),
    }
}
