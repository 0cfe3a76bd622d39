//! Who operates the stack, as the audit trail names it.

use domain::audit::AuditActor;

use crate::connection::Operator;
use crate::failure::Failure;

/// The operator by the identity of the credentials, such as `operator:role/oncall`.
pub(crate) async fn actor(operator: &Operator) -> Result<AuditActor, Failure> {
    if operator.is_local {
        return Ok(AuditActor::operator("local"));
    }
    let sts = aws_sdk_sts::Client::new(operator.env.sdk());
    let identity = sts.get_caller_identity().send().await;
    let identity = identity.map_err(|error| Failure::of_call("sts:GetCallerIdentity", error))?;
    Ok(AuditActor::operator(&resource_of(identity.arn().unwrap_or_default())))
}

/// The resource of an ARN, without account and session: `role/oncall` of an assumed role, else as it is.
fn resource_of(arn: &str) -> String {
    let resource = arn.splitn(6, ':').nth(5).unwrap_or("unknown");
    match resource.strip_prefix("assumed-role/") {
        Some(role) => format!("role/{}", role.split('/').next().unwrap_or(role)),
        None => resource.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("arn:aws:sts::123456789012:assumed-role/oncall/ada@example.com", "role/oncall")]
    #[case("arn:aws-cn:iam::123456789012:user/team/deployer", "user/team/deployer")]
    #[case("arn:aws:iam::123456789012:root", "root")]
    #[case("", "unknown")]
    fn an_operator_is_the_resource_of_an_arn_without_account_and_session(#[case] arn: &str, #[case] resource: &str) {
        assert_eq!(resource_of(arn), resource);
    }
}
