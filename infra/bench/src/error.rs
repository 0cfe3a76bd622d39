//! Why there is no figure.

use std::fmt::{Debug, Display};

/// One line, for whoever runs the bench.
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

/// Says what was being done, or to what.
pub(crate) fn because<E: Display>(what: impl Debug) -> impl FnOnce(E) -> BenchError {
    move |error| BenchError(format!("{what:?}: {error}"))
}
