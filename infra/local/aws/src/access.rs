//! Authorization: functions and roles have the permissions of their policies in template.yaml, as IAM decides.
//!
//! A request requires a list of [`Permission`]s by the service authorization reference, one table for each service. It
//! runs only if a [`Policy`] of the [`Caller`] allows each of them, and no policy of the caller denies one.
//!
//! - A caller below `/env/{environment}/` is a function. A function without a policy has no permissions.
//! - A caller whose access key id names managed policies of the template, joined with `+`, is a role with these.
//! - Every other caller is the developer, who has all permissions.

mod caller;
mod denied;
mod pattern;
mod permission;
mod policy;
mod recording;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderMap;

use crate::answer::ServiceError;
use crate::error::SetupError;

pub(crate) use caller::{Caller, function_of};
pub(crate) use permission::{Permission, on_each, required_permissions};
pub use policy::{Grant, Policy};

use caller::{access_key_id, policy_names};
use recording::Recording;

/// Policies by their names.
type Policies = RwLock<HashMap<String, Arc<Policy>>>;

/// The policies of all functions, and the managed policies of roles.
#[derive(Default)]
pub struct Access {
    functions: Policies,
    managed: Policies,
    recording: RwLock<Option<Recording>>,
}

impl Access {
    /// Sets or replaces a function's policy.
    pub fn set(&self, function: &str, policy: Policy) {
        insert(&self.functions, function, policy);
    }

    /// Sets or replaces a managed policy, which access key ids may name from now on.
    pub fn set_managed(&self, name: &str, policy: Policy) {
        insert(&self.managed, name, policy);
    }

    /// Returns the functions' names in alphabetical order.
    pub fn functions(&self) -> Vec<String> {
        let policies = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = policies.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Appends each permission that is used from now on to a file once, as a line `name action resource`. Processes may
    /// share the file.
    ///
    /// The name is that of the function, or of the role's first managed policy that allows the permission. A permission
    /// that a later policy of the role repeats stays unused.
    pub fn record_to(&self, file: &Path) -> Result<(), SetupError> {
        let recording = Recording::open(file).map_err(|error| {
            SetupError::new(format!("permissions cannot be recorded in {}: {error}", file.display()))
        })?;
        *self.recording.write().unwrap_or_else(PoisonError::into_inner) = Some(recording);
        Ok(())
    }

    /// Returns the caller of a request in an environment, or outside of all.
    pub(crate) fn caller<'a>(&self, environment: Option<&'a str>, headers: &'a HeaderMap) -> Caller<'a> {
        if let Some(environment) = environment {
            return Caller::Environment(environment);
        }
        let managed = self.managed.read().unwrap_or_else(PoisonError::into_inner);
        let names_policies = |id: &&str| policy_names(id).all(|name| managed.contains_key(name));
        access_key_id(headers).filter(names_policies).map_or(Caller::Developer, Caller::Role)
    }

    /// Checks that the caller has all permissions. The error response names the first missing one.
    pub(crate) fn authorize(&self, caller: Caller<'_>, permissions: &[Permission]) -> Result<(), ServiceError> {
        let policies = match caller {
            Caller::Environment(environment) => find(&self.functions, [function_of(environment)]),
            Caller::Role(access_key_id) => find(&self.managed, policy_names(access_key_id)),
            Caller::Developer => return Ok(()),
        };
        let mut used = Vec::with_capacity(permissions.len());
        for permission in permissions {
            let is_denied = policies.iter().any(|(_, policy)| policy.denies(permission));
            let allowing = policies.iter().find(|(_, policy)| !is_denied && policy.allows(permission));
            let Some((name, _)) = allowing else { return Err(refusal(caller, permission)) };
            used.push((*name, permission));
        }
        if let Some(recording) = &*self.recording.read().unwrap_or_else(PoisonError::into_inner) {
            used.iter().for_each(|(name, permission)| recording.add(name, permission));
        }
        Ok(())
    }
}

fn insert(policies: &Policies, name: &str, policy: Policy) {
    policies.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Arc::new(policy));
}

/// Returns the policies that exist, with their names.
fn find<'a>(policies: &Policies, names: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, Arc<Policy>)> {
    let policies = policies.read().unwrap_or_else(PoisonError::into_inner);
    names.into_iter().filter_map(|name| Some((name, Arc::clone(policies.get(name)?)))).collect()
}

fn refusal(caller: Caller<'_>, permission: &Permission) -> ServiceError {
    let Permission { action, resource, .. } = permission;
    let user = caller.arn();
    tracing::warn!(
        function = caller.environment().map(function_of),
        user,
        action,
        resource,
        "access denied by template.yaml"
    );
    denied::answer(&user, permission)
}
