//! The command-line options.

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::Parser;

use crate::log;

/// The Partner API on this machine: the API, the settings, the queues, the bus, the schedule and the store.
#[derive(Debug, Clone, Parser)]
#[command(name = "local-stack", version, about)]
pub struct Options {
    /// Port of the API and the settings, on loopback only. 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    pub port: u16,

    /// Port of the AWS endpoint: DynamoDB, SQS (JSON protocol), EventBridge PutEvents, SES v2, Secrets Manager; any
    /// credentials. 0 takes a free one.
    #[arg(long, default_value_t = 4566)]
    pub aws_port: u16,

    /// Directory for everything that is kept between runs.
    #[arg(long, default_value = ".local")]
    pub data_dir: PathBuf,

    /// Keep nothing.
    #[arg(long)]
    pub ephemeral: bool,

    /// Start empty, without the demo workspace.
    #[arg(long)]
    pub no_demo: bool,

    /// Let the stack's time pass this many times more slowly than the machine's, so that nothing becomes due while a
    /// busy machine works. Moving the clock forward takes no longer.
    #[arg(long, value_name = "TIMES", default_value_t = NonZeroU16::MIN)]
    pub slow_clock: NonZeroU16,

    /// Another value of a parameter of template.yaml, such as RequestLog=all. The option may be repeated.
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub parameters: Vec<(String, String)>,

    /// Append the permissions that functions use to this file: a line `function action resource` for each, once.
    #[arg(long, value_name = "FILE")]
    pub record_permissions: Option<PathBuf>,

    /// Log on stderr: a level (error, warn, info, debug), or filters such as local_stack=debug,warn. `json` prints the
    /// lines of AWS Lambda instead, also with filters: json,debug.
    #[arg(long, default_value = log::DEFAULT)]
    pub log: String,
}

fn parameter(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_options_are_those_of_the_readme() {
        let options = Options::parse_from(["local-stack"]);
        assert_eq!((options.port, options.aws_port), (8080, 4566));
        assert_eq!(options.data_dir, PathBuf::from(".local"));
        assert!(!options.ephemeral && !options.no_demo);
    }

    #[test]
    fn an_invalid_option_is_refused() {
        for option in [["--port", "70000"], ["--parameter", "RequestLog"]] {
            assert!(Options::try_parse_from([&["local-stack"], &option[..]].concat()).is_err(), "{option:?}");
        }
    }
}
