//! The permissions of functions and roles, from the policies of template.yaml.

use std::collections::BTreeMap;

use domain::mode::Mode;
use local_aws::{Access, Policy};
use serde_json::Value;

use crate::template::{Template, TemplateError};
use crate::template_file;

/// Gives each function its permissions, and lets roles have the managed policies.
pub(crate) fn grant(access: &Access, template: &Template) -> Result<(), TemplateError> {
    for function in template.functions()? {
        access.set(&function.binary, policy(&function.logical_id, &function.policies)?);
    }
    for managed in template.managed_policies()? {
        access.set_managed(&managed.logical_id, policy(&managed.logical_id, &managed.document)?);
    }
    Ok(())
}

/// Returns the policies of the template with the mode: each function's by the name of its binary, and the managed
/// policies that no function has, which are for operators' roles, by their logical ids. ARNs are those of every local
/// stack.
pub fn policies(mode: Mode) -> Result<BTreeMap<String, Policy>, TemplateError> {
    let template = template_file::of_mode(mode)?;
    let mut policies = BTreeMap::new();
    for function in template.functions()? {
        policies.insert(function.binary, policy(&function.logical_id, &function.policies)?);
    }
    for managed in template.managed_policies()?.into_iter().filter(|managed| !managed.is_of_function) {
        policies.insert(managed.logical_id.clone(), policy(&managed.logical_id, &managed.document)?);
    }
    Ok(policies)
}

fn policy(logical_id: &str, document: &Value) -> Result<Policy, TemplateError> {
    Policy::parse(document).map_err(|error| TemplateError::new(format!("{logical_id}: {error}")))
}
