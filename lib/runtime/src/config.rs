//! The one place that reads the process environment.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

/// Environment variables, read once.
#[derive(Clone)]
pub struct Config(Arc<HashMap<String, String>>);

/// A variable is missing or does not parse.
#[derive(Debug, thiserror::Error)]
#[error("environment variable {name}: {reason}")]
pub struct ConfigError {
    name: String,
    reason: String,
}

impl ConfigError {
    pub(crate) fn new(name: &str, reason: impl std::fmt::Display) -> Self {
        Self { name: name.to_owned(), reason: reason.to_string() }
    }
}

impl Config {
    /// The variables of this process.
    #[expect(clippy::disallowed_methods, reason = "this is the configuration")]
    pub(crate) fn from_process() -> Self {
        Self::from_vars(std::env::vars())
    }

    /// A configuration of these variables instead of the process's own.
    pub fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(Arc::new(vars.into_iter().collect()))
    }

    /// An optional variable. An empty variable counts as absent.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A required variable.
    pub fn get(&self, name: &str) -> Result<&str, ConfigError> {
        self.find(name).ok_or_else(|| ConfigError::new(name, "is not set"))
    }

    /// A required variable, parsed.
    pub fn parse<T: FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<T, ConfigError> {
        self.get(name)?.parse().map_err(|reason| ConfigError::new(name, reason))
    }
}

/// Values may be secrets: only the names are shown.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
