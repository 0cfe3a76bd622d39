//! Figures of a function's log. A line holds figures, and texts for log searches.
//!
//! Logs Insights reads every figure. CloudWatch also keeps some of them as metrics, which it extracts from lines in the
//! Embedded Metric Format
//! (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>).
//! A metric costs as long as it is written, more than everything else of a small deployment together. Therefore only
//! figures that an alarm watches, or that tell what somebody lost, are kept.

use serde_json::{Map, Value, json};

/// Target of the tracing events whose field `line` is a metrics line.
pub(crate) const TARGET: &str = "metric";
/// Most texts of a property that is a list.
const MAX_LISTED: usize = 100;

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    Milliseconds,
    Seconds,
    None,
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Milliseconds => "Milliseconds",
            Self::Seconds => "Seconds",
            Self::None => "None",
        }
    }
}

/// A figure of a line.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    name: &'static str,
    unit: Unit,
    is_kept: bool,
}

impl Metric {
    /// A figure that CloudWatch keeps as a metric of the function. Write it only when there is something to tell.
    pub const fn new(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, is_kept: true }
    }

    /// A figure that only the log has.
    pub const fn logged(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, is_kept: false }
    }
}

/// A metrics line that is being built.
#[derive(Debug, Default, Clone)]
pub struct Line {
    /// Properties: texts, and lists of texts.
    texts: Map<String, Value>,
    metrics: Vec<(Metric, f64)>,
}

impl Line {
    /// Sets a text.
    pub fn set(&mut self, name: &'static str, text: impl Into<String>) {
        self.texts.insert(name.to_owned(), Value::String(text.into()));
    }

    /// Adds a text to a list property. Duplicates, and texts beyond `MAX_LISTED`, are dropped.
    pub fn list(&mut self, name: &'static str, text: &str) {
        if let Value::Array(all) = self.texts.entry(name).or_insert_with(|| json!([]))
            && all.len() < MAX_LISTED
            && !all.iter().any(|other| other == text)
        {
            all.push(json!(text));
        }
    }

    /// Adds a value. A line has the sum of counts and of values without a unit, and the longest of durations.
    pub fn add(&mut self, metric: Metric, value: f64) {
        match self.metrics.iter_mut().find(|(other, _)| other.name == metric.name) {
            Some((_, sum)) if matches!(metric.unit, Unit::Count | Unit::None) => *sum += value,
            Some((_, longest)) => *longest = longest.max(value),
            None => self.metrics.push((metric, value)),
        }
    }

    /// The value of a single text. `None` for a list.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name)?.as_str()
    }

    /// Renders the line.
    pub(crate) fn render(&self, function: &str, request_id: &str, at_ms: i64) -> String {
        let mut line = self.texts.clone();
        line.insert("function".to_owned(), json!(function));
        line.insert("request_id".to_owned(), json!(request_id));
        for (metric, value) in &self.metrics {
            line.insert(metric.name.to_owned(), number(*value));
        }
        let kept = self.metrics.iter().filter(|(metric, _)| metric.is_kept);
        let kept: Vec<Value> =
            kept.map(|(metric, _)| json!({ "Name": metric.name, "Unit": metric.unit.as_str() })).collect();
        if !kept.is_empty() {
            let directive = json!({ "Namespace": "PartnerApi", "Dimensions": [["function"]], "Metrics": kept });
            line.insert("_aws".to_owned(), json!({ "Timestamp": at_ms, "CloudWatchMetrics": [directive] }));
        }
        Value::Object(line).to_string()
    }
}

/// The shortest JSON form of a number.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { json!(whole) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Metric = Metric::new("failed", Unit::Count);
    const CALLS: Metric = Metric::logged("calls", Unit::Count);
    const WAIT: Metric = Metric::logged("wait_ms", Unit::Milliseconds);

    fn rendered(line: &Line) -> Value {
        serde_json::from_str(&line.render("ping", "r1", 1_790_000_000_000)).unwrap()
    }

    #[test]
    fn a_line_has_its_texts_and_figures_and_names_the_metrics_among_them() {
        let mut line = Line::default();
        line.set("route", "GET /v1/ping");
        line.set("status", "500");
        line.set("status", "200");
        line.list("event_ids", "a");
        line.list("event_ids", "a");
        line.list("event_ids", "b\"");
        line.add(FAILED, 1.0);
        line.add(CALLS, 2.0);
        line.add(CALLS, 1.0);
        line.add(WAIT, 0.5);
        line.add(WAIT, 7.0);
        line.add(WAIT, 3.0);
        assert_eq!(
            rendered(&line),
            json!({
                "_aws": {
                    "Timestamp": 1_790_000_000_000_i64,
                    "CloudWatchMetrics": [{
                        "Namespace": "PartnerApi",
                        "Dimensions": [["function"]],
                        "Metrics": [{ "Name": "failed", "Unit": "Count" }],
                    }],
                },
                "function": "ping", "request_id": "r1", "route": "GET /v1/ping", "status": "200",
                "event_ids": ["a", "b\""], "failed": 1, "calls": 3, "wait_ms": 7,
            })
        );
        assert_eq!(line.text("status"), Some("200"));
    }

    #[test]
    fn a_line_without_metrics_costs_no_more_than_its_log() {
        let mut line = Line::default();
        line.add(CALLS, 1.0);
        assert_eq!(rendered(&line), json!({ "function": "ping", "request_id": "r1", "calls": 1 }));
    }

    #[test]
    fn a_number_is_written_as_short_as_it_can_be() {
        let written = [0.0, 2.0, 0.5, 12.345, 1e15].map(|value| number(value).to_string());
        assert_eq!(written, ["0", "2", "0.5", "12.345", "1000000000000000"]);
    }
}
