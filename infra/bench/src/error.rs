//! The bench's error.

use std::fmt::{Debug, Display};

/// The reason why a measurement failed, as one line for the user.
#[derive(Debug)]
pub(crate) struct BenchError(String);

impl BenchError {
    pub(crate) fn new(message: impl Display) -> Self {
        Self(message.to_string())
    }
}

impl Display for BenchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BenchError {}

/// Prefixes an error with the failed action or its object.
pub(crate) fn context<E: Display>(what: impl Debug) -> impl FnOnce(E) -> BenchError {
    move |error| BenchError(format!("{what:?}: {error}"))
}
