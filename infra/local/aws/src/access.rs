//! Authorization: a function environment has the permissions of its function in template.yaml, as IAM decides.
//!
//! A request requires a list of [`Permission`]s by the service authorization reference, one table for each service. It
//! runs only if the function's [`Policy`] allows all of them. A function without a policy has no permissions. A caller
//! outside of `/env/{environment}/` is the developer, who has all permissions.

mod denied;
mod pattern;
mod permission;
mod policy;
mod recording;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use crate::answer::ServiceError;
use crate::error::SetupError;

pub(crate) use permission::{Permission, on_each, required_permissions};
pub use policy::{Grant, Policy};

use recording::Recording;

/// The policies of all functions.
#[derive(Default)]
pub struct Access {
    policies: RwLock<HashMap<String, Arc<Policy>>>,
    recording: RwLock<Option<Recording>>,
}

impl Access {
    /// Sets or replaces a function's policy.
    pub fn set(&self, function: &str, policy: Policy) {
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        policies.insert(function.to_owned(), Arc::new(policy));
    }

    /// Returns the functions' names in alphabetical order.
    pub fn functions(&self) -> Vec<String> {
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = policies.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Appends each permission that is used from now on to a file once, as a line `function action resource`. Processes
    /// may share the file.
    pub fn record_to(&self, file: &Path) -> Result<(), SetupError> {
        let recording = Recording::open(file).map_err(|error| {
            SetupError::new(format!("permissions cannot be recorded in {}: {error}", file.display()))
        })?;
        *self.recording.write().unwrap_or_else(PoisonError::into_inner) = Some(recording);
        Ok(())
    }

    /// Checks that the environment's function has all permissions. The error response names the first missing one.
    pub(crate) fn authorize(&self, environment: &str, permissions: &[Permission]) -> Result<(), ServiceError> {
        let function = function_of(environment);
        let policy = self.policies.read().unwrap_or_else(PoisonError::into_inner).get(function).cloned();
        let denied =
            permissions.iter().find(|permission| !policy.as_ref().is_some_and(|policy| policy.allows(permission)));
        if let Some(permission) = denied {
            tracing::warn!(
                function,
                action = permission.action,
                resource = permission.resource,
                "access denied by template.yaml"
            );
            return Err(denied::answer(function, permission));
        }
        if let Some(recording) = &*self.recording.read().unwrap_or_else(PoisonError::into_inner) {
            permissions.iter().for_each(|permission| recording.add(function, permission));
        }
        Ok(())
    }
}

/// Returns the function's name of an environment, whose id is the name and a number.
pub(crate) fn function_of(environment: &str) -> &str {
    environment.rsplit_once('-').map_or(environment, |(function, _)| function)
}
