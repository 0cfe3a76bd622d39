//! Metrics as CloudWatch reads them out of a function's log: one line in the Embedded Metric Format each
//! (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>).
//!
//! Code that has something to count says so as a `tracing` event of target [`TARGET`] with the fields `name` and `value`; it depends
//! on nothing of this.

use std::fmt::Write as _;
use std::io::Write as _;

use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::clock::{Clock, SystemClock};

/// Target of the events that are metrics.
pub const TARGET: &str = "metric";
const NAMESPACE: &str = "PartnerApi";

/// Writes metric events to standard output.
pub(crate) struct MetricLayer {
    pub(crate) function: String,
}

impl<S: tracing::Subscriber> Layer<S> for MetricLayer {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = self.line(&fields.name, fields.value, SystemClock.now().timestamp_millis());
        // A metric that cannot be written has nowhere to be reported.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }
}

impl MetricLayer {
    fn line(&self, name: &str, value: f64, at_ms: i64) -> String {
        let (name, function) = (quoted(name), quoted(&self.function));
        format!(
            "{{\"_aws\":{{\"Timestamp\":{at_ms},\"CloudWatchMetrics\":[{{\"Namespace\":\"{NAMESPACE}\",\
             \"Dimensions\":[[\"function\"]],\"Metrics\":[{{\"Name\":{name},\"Unit\":\"Count\"}}]}}]}},\
             \"function\":{function},{name}:{value}}}"
        )
    }
}

#[derive(Default)]
struct Fields {
    name: String,
    value: f64,
}

impl tracing::field::Visit for Fields {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        if field.name() == "name" {
            value.clone_into(&mut self.name);
        }
    }

    fn record_f64(&mut self, field: &tracing::field::Field, value: f64) {
        if field.name() == "value" {
            self.value = value;
        }
    }

    fn record_i64(&mut self, field: &tracing::field::Field, value: i64) {
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        self.record_f64(field, value as f64);
    }

    fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        self.record_f64(field, value as f64);
    }

    fn record_debug(&mut self, _: &tracing::field::Field, _: &dyn std::fmt::Debug) {}
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c)).expect("a string takes text"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_one_line_of_the_embedded_metric_format() {
        let layer = MetricLayer { function: "ingest".to_owned() };
        assert_eq!(
            layer.line("facts_set_aside", 1.0, 1_790_000_000_000),
            r#"{"_aws":{"Timestamp":1790000000000,"CloudWatchMetrics":[{"Namespace":"PartnerApi","Dimensions":[["function"]],"Metrics":[{"Name":"facts_set_aside","Unit":"Count"}]}]},"function":"ingest","facts_set_aside":1}"#
        );
    }
}
