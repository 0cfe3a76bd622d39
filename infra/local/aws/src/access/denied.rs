//! Each service's response to a request without permission.

use super::permission::Permission;
use crate::answer::ServiceError;

/// The error's shape in DynamoDB and SQS, which comes from their framework.
const CORAL: &str = "com.amazon.coral.service#AccessDeniedException";

/// Builds the response to a caller by its ARN.
pub(super) fn answer(user: &str, permission: &Permission) -> ServiceError {
    let Permission { action, resource, .. } = permission;
    let worded = |action: &str| {
        format!(
            "User: {user} is not authorized to perform: {action} on resource: {resource} because no identity-based policy \
             allows the {action} action"
        )
    };
    match action.split(':').next().unwrap_or_default() {
        "dynamodb" => ServiceError::json_1_0(400, CORAL, worded(action)),
        "sqs" => ServiceError::json_1_0(403, CORAL, worded(&action.to_ascii_lowercase())),
        "ses" => {
            let message = format!("User `{user}' is not authorized to perform `{action}' on resource `{resource}'");
            ServiceError::rest(403, "AccessDeniedException", message)
        }
        "cloudformation" => ServiceError::query(403, "AccessDenied", worded(action)),
        _ => ServiceError::json_1_1(400, "AccessDeniedException", worded(action)),
    }
}
