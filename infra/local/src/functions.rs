//! The interface between the stack and the functions linked into it. [`crate::linked::all`] lists them.
//!
//! A function receives the same JSON events as from AWS Lambda and knows nothing of the stack.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use lambda_runtime::Context;
use runtime::{BoxError, Environment};
use serde_json::Value;

/// One started function environment.
pub trait Handler: Send + Sync {
    /// Handles one event.
    fn handle(&self, event: Value, context: Context) -> BoxFuture<'_, Result<Value, BoxError>>;
}

/// Starts an environment of a function.
pub type Start = Arc<dyn Fn(Environment) -> BoxFuture<'static, Result<Box<dyn Handler>, BoxError>> + Send + Sync>;

/// Functions by the names of their binaries.
#[derive(Clone, Default)]
pub struct Functions(BTreeMap<&'static str, Start>);

impl Functions {
    /// Adds a function.
    #[must_use]
    pub fn with<S, F, H>(mut self, binary: &'static str, start: S) -> Self
    where
        S: Fn(Environment) -> F + Send + Sync + 'static,
        F: Future<Output = Result<H, BoxError>> + Send + 'static,
        H: Handler + 'static,
    {
        let start: Start = Arc::new(move |environment| {
            let started = start(environment);
            Box::pin(async move { Ok(Box::new(started.await?) as Box<dyn Handler>) })
        });
        self.0.insert(binary, start);
        self
    }

    /// Returns the function of that name.
    pub fn find(&self, binary: &str) -> Option<Start> {
        self.0.get(binary).cloned()
    }

    /// Returns the names of all functions.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.keys().copied().collect()
    }
}
