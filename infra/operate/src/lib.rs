//! The operators' command: looks at a deployed stack, and acts on it, by the modules that the functions use.
//!
//! ```text
//! options -> connection (names, credentials) -> a command -> output (JSON or tables), or failure (one line)
//! ```
//! The answers have ids, hosts and times, and no name, address, receiver path, key or secret. A command that reads
//! changes nothing. A command that acts has a reason, asks back (`consent`), and leaves a line in the coach's audit
//! trail.

mod act;
mod actor;
mod aws_clock;
mod client;
mod coach;
mod connection;
mod consent;
mod counts;
mod dead;
mod delivery;
mod endpoint;
mod export;
mod failure;
mod feed;
mod find;
mod key;
mod options;
mod output;
mod progress;
mod retry;

use std::process::ExitCode;

use clap::Parser;
use failure::Failure;
use options::{Command, Options};
use output::{Answer, print, print_failure};

/// Runs the command line of this process. Exit codes: 0 found or done, 1 refused or not found, 2 wrong usage.
pub fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return refused_usage(&error),
    };
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match threads {
        Ok(threads) => threads.block_on(run(&options)),
        Err(error) => Err(Failure::unreachable(format!("threads cannot be started: {error}"))),
    };
    match outcome.and_then(|answer| print(options.json, &answer)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_failure(options.json, &failure),
    }
}

/// Prints the help, or what is wrong with the command line.
fn refused_usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let is_json = std::env::args().any(|argument| argument == "--json");
    print_failure(is_json, &Failure::usage(options::line_of(error)))
}

async fn run(options: &Options) -> Result<Answer, Failure> {
    options.check()?;
    let operator = connection::open(options).await?;
    match &options.command {
        Command::Find(wanted) => find::find(&operator, wanted).await,
        Command::Coach { id } => coach::coach(&operator, id).await,
        Command::Client(command) => match &command.command {
            Some(export) => export::export(&operator, export).await,
            None => client::client(&operator, command).await,
        },
        Command::Delivery(command) => match &command.command {
            Some(retry) => retry::retry(&operator, retry).await,
            None => delivery::delivery(&operator, command).await,
        },
        Command::Feed => feed::feed(&operator).await,
        Command::Dead { command } => dead::dead(&operator, command).await,
        Command::Endpoint { command } => endpoint::endpoint(&operator, command).await,
        Command::Key { command } => key::key(&operator, command).await,
        Command::Rebuild { command } => counts::rebuild(&operator, command).await,
    }
}
