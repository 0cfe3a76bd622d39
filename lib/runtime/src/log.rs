//! Structured logs: one JSON object a line on standard output, which is where AWS Lambda collects them.

use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::Config;
use crate::metric::{MetricLayer, TARGET};

/// Starts logging for the process. `LOG_LEVEL` filters the log, `info` without one; metrics pass at any level.
pub fn log_json(config: &Config) {
    let filter = EnvFilter::new(config.find("LOG_LEVEL").unwrap_or("info"));
    let is_log = FilterFn::new(|metadata| metadata.target() != TARGET);
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_target(false);
    let function = config.find("AWS_LAMBDA_FUNCTION_NAME").unwrap_or("unknown").to_owned();
    tracing_subscriber::registry()
        .with(lines.with_filter(filter).with_filter(is_log))
        .with(MetricLayer { function })
        .init();
}

/// An error with all that caused it, on one line: a log's own rendering stops at the first.
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
