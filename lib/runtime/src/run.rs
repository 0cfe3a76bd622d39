//! The process of a function, from its start to its end.

use std::process::ExitCode;
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::config::Config;
use crate::log::{error_chain, log_json};
use crate::{BoxError, Environment};

/// Starts a function in the environment of this process and serves until the Lambda runtime ends it. A fatal error is
/// logged: Lambda itself reports only that the process exited.
pub fn run<S>(start: impl AsyncFnOnce(Environment) -> Result<S, BoxError>) -> ExitCode
where
    S: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let config = Config::from_process();
    log_json(&config);
    let started = async {
        let serving = start(Environment::new(config, Arc::new(SystemClock))?).await?;
        // A spawned task is woken through a queue; the outermost future is woken through the kernel.
        tokio::spawn(serving).await?
    };
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match executor.map_err(BoxError::from).and_then(|executor| executor.block_on(started)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = error_chain(&*error), "the function cannot run");
            ExitCode::FAILURE
        }
    }
}
