//! Permissions: a function environment may do what template.yaml lets its function do, as IAM decides it.
//!
//! A request is turned into the [`Need`]s that it has by its service's own rules (the service authorization reference, one table for
//! each service), and is carried out only if the function's [`Policy`] allows each of them. A function without a policy may do
//! nothing. Whoever calls outside of `/env/{environment}/` is the developer, who may do everything.

mod denied;
mod need;
mod pattern;
mod policy;
mod recording;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use crate::answer::ServiceError;
use crate::error::SetupError;

pub(crate) use need::{Need, arn, each, of_request};
pub use policy::{Grant, Policy};

use recording::Recording;

/// What each function may do.
#[derive(Default)]
pub struct Access {
    policies: RwLock<HashMap<String, Arc<Policy>>>,
    recording: RwLock<Option<Recording>>,
}

impl Access {
    /// Gives a function its policy, in the place of the one that it had.
    pub fn set(&self, function: &str, policy: Policy) {
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        policies.insert(function.to_owned(), Arc::new(policy));
    }

    /// The names of the functions, by name.
    pub fn functions(&self) -> Vec<String> {
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = policies.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Appends each permission that is used from now on to a file, once: a line `function action resource`. Processes may share the file.
    pub fn record_to(&self, file: &Path) -> Result<(), SetupError> {
        let recording = Recording::open(file).map_err(|error| {
            SetupError::new(format!("permissions cannot be recorded in {}: {error}", file.display()))
        })?;
        *self.recording.write().unwrap_or_else(PoisonError::into_inner) = Some(recording);
        Ok(())
    }

    /// Whether the environment's function may do all of it. What the service answers otherwise names the first thing that it may not do.
    pub(crate) fn authorize(&self, environment: &str, needs: &[Need]) -> Result<(), ServiceError> {
        let function = function_of(environment);
        let policy = self.policies.read().unwrap_or_else(PoisonError::into_inner).get(function).cloned();
        let denied = needs.iter().find(|need| !policy.as_ref().is_some_and(|policy| policy.allows(need)));
        if let Some(need) = denied {
            tracing::warn!(function, action = need.action, resource = need.resource, "template.yaml does not allow it");
            return Err(denied::answer(function, need));
        }
        if let Some(recording) = &*self.recording.read().unwrap_or_else(PoisonError::into_inner) {
            needs.iter().for_each(|need| recording.add(function, need));
        }
        Ok(())
    }
}

/// The function of an environment: the environment's number follows the function's name.
pub(crate) fn function_of(environment: &str) -> &str {
    environment.rsplit_once('-').map_or(environment, |(function, _)| function)
}
