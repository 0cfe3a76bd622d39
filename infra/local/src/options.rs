//! The command-line options.

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::Parser;
use domain::mode::Mode;

use crate::log;

/// The template's parameter with the mode.
pub(crate) const MODE_PARAMETER: &str = "Mode";

/// The Partner API on this machine: the API, the settings, the queues, the bus, the schedule and the store.
#[derive(Debug, Clone, Parser)]
#[command(name = "local-stack", version, about)]
pub struct Options {
    /// Port of the API and the settings, on loopback only. 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    pub port: u16,

    /// Port of the AWS endpoint: DynamoDB, SQS (JSON protocol), EventBridge PutEvents, SES v2, Secrets Manager,
    /// CloudFormation ListStackResources, STS GetCallerIdentity; any credentials. 0 takes a free one.
    #[arg(long, default_value_t = 4566)]
    pub aws_port: u16,

    /// Mode of the stack, by default live: test makes it a sandbox, as --parameter Mode=test does.
    #[arg(long, value_name = "live|test", value_parser = Mode::parse)]
    pub mode: Option<Mode>,

    /// Directory for everything that is kept between runs: by default .local, of a sandbox .local-test.
    #[arg(long)]
    pub data_dir: Option<PathBuf>,

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

    /// Append the permissions that functions and roles use to this file: a line `name action resource` for each, once.
    /// The name is that of the function, or of the role's managed policy.
    #[arg(long, value_name = "FILE")]
    pub record_permissions: Option<PathBuf>,

    /// Log on stderr: a level (error, warn, info, debug), or filters such as local_stack=debug,warn. `json` prints the
    /// lines of AWS Lambda instead, also with filters: json,debug.
    #[arg(long, default_value = log::DEFAULT)]
    pub log: String,
}

/// The parameter `Mode` is unusable, or names another mode than `--mode`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--parameter Mode={value}: {reason}")]
pub struct InvalidMode {
    value: String,
    reason: String,
}

impl Options {
    /// Returns the mode of the stack, which either option may give.
    pub fn stack_mode(&self) -> Result<Mode, InvalidMode> {
        let parameter = self.parameters.iter().rfind(|(name, _)| name == MODE_PARAMETER);
        let Some((_, value)) = parameter else { return Ok(self.mode.unwrap_or(Mode::Live)) };
        let invalid = |reason| InvalidMode { value: value.clone(), reason };
        let mode = Mode::parse(value).map_err(invalid)?;
        match self.mode {
            Some(other) if other != mode => Err(invalid(format!("contradicts --mode {}", other.as_str()))),
            _ => Ok(mode),
        }
    }

    /// Returns the data directory of a stack of this mode. `None` for an ephemeral run.
    pub fn data_dir(&self, mode: Mode) -> Option<PathBuf> {
        let default = match mode {
            Mode::Live => ".local",
            Mode::Test => ".local-test",
        };
        (!self.ephemeral).then(|| self.data_dir.clone().unwrap_or_else(|| default.into()))
    }
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
        assert_eq!(options.stack_mode(), Ok(Mode::Live));
        assert!(!options.ephemeral && !options.no_demo);
    }

    #[test]
    fn an_invalid_option_is_refused() {
        for option in [["--port", "70000"], ["--parameter", "RequestLog"], ["--mode", "Live"]] {
            assert!(Options::try_parse_from([&["local-stack"], &option[..]].concat()).is_err(), "{option:?}");
        }
    }

    #[test]
    fn the_mode_is_an_option_or_a_parameter_and_never_two_modes() {
        let mode = |options: &[&str]| {
            let options = Options::parse_from([&["local-stack"], options].concat());
            options.stack_mode().map_err(|error| error.to_string())
        };
        for options in [&["--mode", "test"][..], &["--parameter", "Mode=live", "--parameter", "Mode=test"]] {
            assert_eq!(mode(options), Ok(Mode::Test), "{options:?}");
        }
        assert_eq!(mode(&["--mode", "test", "--parameter", "Mode=test"]), Ok(Mode::Test));
        for (options, wanted) in [
            (&["--mode", "live", "--parameter", "Mode=test"][..], "contradicts --mode live"),
            (&["--parameter", "Mode=sandbox"], "must be live or test"),
        ] {
            let message = mode(options).unwrap_err();
            assert!(message.starts_with("--parameter Mode=") && message.ends_with(wanted), "{message}");
        }
    }

    #[test]
    fn each_mode_has_a_data_directory_of_its_own_unless_one_is_given() {
        let dir = |options: &[&str], mode| Options::parse_from([&["local-stack"], options].concat()).data_dir(mode);
        assert_eq!(dir(&[], Mode::Live), Some(".local".into()));
        assert_eq!(dir(&[], Mode::Test), Some(".local-test".into()));
        for mode in Mode::ALL {
            assert_eq!(dir(&["--data-dir", "x"], mode), Some("x".into()));
            assert_eq!(dir(&["--data-dir", "x", "--ephemeral"], mode), None);
        }
    }
}
