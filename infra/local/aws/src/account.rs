//! The account and region of all resources, and their ARNs.

/// The region of all resources.
pub const REGION: &str = "us-east-1";

/// The account of all resources.
pub const ACCOUNT: &str = "000000000000";

/// Returns the id of a stack: its ARN, whose end is random in AWS.
pub fn stack_id(name: &str) -> String {
    arn("cloudformation", &format!("stack/{name}/local"))
}

/// Returns the ARN of a resource of this account. An ARN is returned unchanged.
pub(crate) fn arn(service: &str, resource: &str) -> String {
    if resource.starts_with("arn:") {
        return resource.to_owned();
    }
    format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}")
}
