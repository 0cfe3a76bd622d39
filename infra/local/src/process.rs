//! The process that `cargo run` starts: reads the options, starts the stack, prints where everything is, and ends it on Ctrl-C or
//! SIGTERM.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::options::Options;
use crate::stack::{Running, StartError};
use crate::{demo, linked};

/// Exit code for what the user has to change.
const EXIT_USAGE: u8 = 2;
/// The inner DynamoDB warns of every refusal, and refusals are part of the design. A filter of the user's own comes after it and wins.
const QUIET: &str = "dynoxide=error";
/// What still blocks a thread after the orderly end gets this long.
const LAST_GRACE: Duration = Duration::from_millis(500);

/// Runs the local stack on this process's command line until it is told to end.
pub fn main() -> ExitCode {
    let options = Options::parse();
    let filter = match EnvFilter::try_new(format!("{QUIET},{}", options.log)) {
        Ok(filter) => filter,
        Err(error) => return refused(&format!("--log {}: {error}", options.log)),
    };
    tracing_subscriber::fmt().event_format(Lines).with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return refused(&format!("threads cannot be started: {error}")),
    };
    let outcome = runtime.block_on(run(&options));
    runtime.shutdown_timeout(LAST_GRACE);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(&error.to_string()),
    }
}

/// The log's lines: those of functions as they would write them in AWS, those of the stack for people.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        match runtime::function_line(event) {
            Some(line) => writeln!(writer, "{line}"),
            None => Format::default().format_event(context, writer, event),
        }
    }
}

async fn run(options: &Options) -> Result<(), StartError> {
    // Listened for from the beginning: a signal during the start ends it in order too.
    let ended = ended();
    let running = Running::start(options, &linked::all()).await?;
    if options.no_demo {
        demo::print_bare(&running, options);
    } else {
        demo::seed_and_print(&running, options).await;
    }
    running.set_ready()?;
    demo::print_ready(&running);
    ended.await;
    running.end().await;
    Ok(())
}

/// Resolves on Ctrl-C, on SIGTERM, and when the terminal is closed.
fn ended() -> impl Future<Output = ()> {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    async move {
        let waits = signals.into_iter().map(|signal| {
            Box::pin(async move {
                match signal {
                    Ok(mut signal) => signal.recv().await,
                    Err(error) => {
                        tracing::warn!(%error, "a signal cannot be listened for");
                        std::future::pending().await
                    }
                }
            })
        });
        futures::future::select_all(waits).await;
    }
}

fn refused(message: &str) -> ExitCode {
    eprintln!("local-stack: {message}");
    ExitCode::from(EXIT_USAGE)
}
