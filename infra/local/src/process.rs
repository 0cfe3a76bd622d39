//! The process that `cargo run` starts: it parses the options, starts the stack, prints the addresses, and shuts the
//! stack down on Ctrl-C or SIGTERM.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::log::{self, LogState};
use crate::options::Options;
use crate::running::{Running, StartError};
use crate::{demo, linked};

/// Exit code of a start that failed because of the user's options or environment.
const EXIT_USAGE: u8 = 2;
/// Time for blocked threads to finish after the orderly shutdown.
const THREADS_GRACE: Duration = Duration::from_millis(500);

/// Runs the local stack with this process's command line until a signal ends it.
pub fn main() -> ExitCode {
    let options = Options::parse();
    let log_state = Arc::new(LogState::default());
    if let Err(error) = log::start(&options.log, &log_state) {
        return start_failed(&format!("--log {}: {error}", options.log));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return start_failed(&format!("threads cannot be started: {error}")),
    };
    let outcome = runtime.block_on(run(&options, &log_state));
    runtime.shutdown_timeout(THREADS_GRACE);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => start_failed(&error.to_string()),
    }
}

async fn run(options: &Options, log_state: &LogState) -> Result<(), StartError> {
    // Registered before the start, so that a signal during the start also leads to an orderly shutdown.
    let shutdown_signal = shutdown_signal();
    let running = Running::start(options, &linked::all()).await?;
    log_state.show_time_of(&running.stack.timeline.clock);
    if options.no_demo {
        demo::print_bare(&running);
    } else {
        demo::seed_and_print(&running, log_state).await;
    }
    running.set_ready()?;
    demo::print_ready(&running);
    shutdown_signal.await;
    running.end().await;
    Ok(())
}

/// Resolves on Ctrl-C, on SIGTERM, and when the terminal is closed.
fn shutdown_signal() -> impl Future<Output = ()> {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    async move {
        let waits = signals.into_iter().map(|signal| {
            Box::pin(async move {
                match signal {
                    Ok(mut signal) => signal.recv().await,
                    Err(error) => {
                        tracing::warn!(%error, "cannot listen for a signal");
                        std::future::pending().await
                    }
                }
            })
        });
        futures::future::select_all(waits).await;
    }
}

fn start_failed(message: &str) -> ExitCode {
    eprintln!("local-stack: {message}");
    ExitCode::from(EXIT_USAGE)
}
