//! The environment of a function: its configuration, clock, randomness, AWS settings, log and metrics. The only parts
//! of the product that this crate knows are names for the log and the metrics: the crates ([`OUR_CRATES`]), `coach_id`
//! and `PartnerApi`.

mod aws;
mod aws_error;
mod clock;
mod config;
mod invocation;
mod log;
mod metric;
mod random;
mod run;

use std::sync::Arc;

pub use aws_error::without_message;
pub use aws_types::SdkConfig;
pub use clock::{Clock, SystemClock};
pub use config::{Config, ConfigError};
pub use invocation::{Observer, add, add_call, note, note_each, noted, write_line};
pub use log::{OUR_CRATES, error_chain, json_line};
pub use metric::{Line, Metric, Unit};
pub use random::random_bytes;
pub use run::run;

/// A function environment: the values that AWS Lambda gives a function at its start.
#[derive(Clone)]
pub struct Environment {
    config: Config,
    clock: Arc<dyn Clock>,
    sdk: SdkConfig,
}

impl Environment {
    /// An environment of given variables and clock, for a host that runs several functions in one process.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        let sdk = aws::sdk_config(&config)?;
        Ok(Self { config, clock, sdk })
    }

    /// An environment of given variables, clock and AWS settings, for a process that is no function.
    pub fn with_sdk(config: Config, clock: Arc<dyn Clock>, sdk: SdkConfig) -> Self {
        Self { config, clock, sdk }
    }

    /// The variables.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The observer, which writes a line for each event.
    pub fn observer(&self) -> Observer {
        Observer::new(self.config.find("AWS_LAMBDA_FUNCTION_NAME").unwrap_or("unknown"), self.clock())
    }

    /// The settings to build AWS clients from.
    pub fn sdk(&self) -> &SdkConfig {
        &self.sdk
    }
}

/// An error that keeps a function from starting or from handling an event. Its text is for the log only.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
