//! The process of a function, from its start to its end.

use std::process::ExitCode;
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::config::Config;
use crate::log::{error_chain, log_json};
use crate::{BoxError, Environment};

/// Runs a function in the environment of this process. An error that ends it is a line of the log: of one that does not start, Lambda says
/// no more than that it exited.
pub async fn run(function: impl AsyncFnOnce(Environment) -> Result<(), BoxError>) -> ExitCode {
    let config = Config::from_process();
    log_json(&config);
    let ran = match Environment::new(config, Arc::new(SystemClock)) {
        Ok(env) => function(env).await,
        Err(error) => Err(error.into()),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = error_chain(&*error), "the function cannot run");
            ExitCode::FAILURE
        }
    }
}
