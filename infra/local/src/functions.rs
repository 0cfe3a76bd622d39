//! The functions that are linked in. Adding one is a line in [`crate::linked::all`].
//!
//! A function knows nothing of this: it is handed the events that AWS Lambda would hand it, as JSON.

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
    /// A function more.
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

    /// The function of that name.
    pub fn find(&self, binary: &str) -> Option<Start> {
        self.0.get(binary).cloned()
    }

    /// The names, for messages.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.keys().copied().collect()
    }
}
