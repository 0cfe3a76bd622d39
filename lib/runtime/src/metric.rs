//! Metrics that CloudWatch extracts from a function's log: lines in the Embedded Metric Format
//! (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>).
//!
//! A line holds metrics, their dimensions, and properties for log searches.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Target of the tracing events whose field `line` is a metrics line.
pub(crate) const TARGET: &str = "metric";
/// Most values of a metric that CloudWatch takes from one line.
const MAX_VALUES: usize = 100;
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

/// A metric with its sets of dimensions. Each dimension is a text of the lines with the metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    name: &'static str,
    unit: Unit,
    by: &'static [&'static [&'static str]],
}

impl Metric {
    /// A metric with the dimension `function`.
    pub const fn new(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, by: &[&["function"]] }
    }

    /// The metric with these sets of dimensions instead.
    pub const fn by(self, by: &'static [&'static [&'static str]]) -> Self {
        Self { by, ..self }
    }
}

/// A metrics line that is being built.
#[derive(Debug, Default, Clone)]
pub struct Line {
    /// Dimensions and properties: texts, and lists of texts.
    texts: Map<String, Value>,
    metrics: Vec<(Metric, Vec<f64>)>,
}

impl Line {
    /// Sets a text: a dimension, or a property.
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

    /// Adds a value. Counts and values without a unit are summed within a line.
    pub fn add(&mut self, metric: Metric, value: f64) {
        match self.metrics.iter_mut().find(|(other, _)| other.name == metric.name) {
            Some((_, values)) if matches!(metric.unit, Unit::Count | Unit::None) => values[0] += value,
            Some((_, values)) => values.push(value),
            None => self.metrics.push((metric, vec![value])),
        }
    }

    /// The value of a single text. `None` for a list.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name)?.as_str()
    }

    /// Renders the line, with further lines for metrics of more than [`MAX_VALUES`] values.
    pub(crate) fn render(&self, function: &str, request_id: &str, at_ms: i64) -> Vec<String> {
        let most = self.metrics.iter().map(|(_, values)| values.len()).max().unwrap_or_default();
        let parts = most.div_ceil(MAX_VALUES).max(1);
        (0..parts).map(|part| self.render_part(part, function, request_id, at_ms)).collect()
    }

    fn render_part(&self, part: usize, function: &str, request_id: &str, at_ms: i64) -> String {
        let mut line = self.texts.clone();
        line.insert("function".to_owned(), json!(function));
        line.insert("request_id".to_owned(), json!(request_id));
        let mut by_dimensions: BTreeMap<_, Vec<Value>> = BTreeMap::new();
        for (metric, values) in &self.metrics {
            let Some(values) = values.chunks(MAX_VALUES).nth(part) else { continue };
            let values: Vec<Value> = values.iter().copied().map(number).collect();
            let value = if let [value] = values.as_slice() { value.clone() } else { json!(values) };
            line.insert(metric.name.to_owned(), value);
            let metrics = by_dimensions.entry(metric.by).or_default();
            metrics.push(json!({ "Name": metric.name, "Unit": metric.unit.as_str() }));
        }
        let directive = |(by, metrics)| json!({ "Namespace": "PartnerApi", "Dimensions": by, "Metrics": metrics });
        let directives: Vec<Value> = by_dimensions.into_iter().map(directive).collect();
        line.insert("_aws".to_owned(), json!({ "Timestamp": at_ms, "CloudWatchMetrics": directives }));
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

    const REQUESTS: Metric = Metric::new("requests", Unit::Count).by(&[&["route", "status"], &["function"]]);
    const CALLS: Metric = Metric::new("calls", Unit::Count);
    const WAIT: Metric = Metric::new("wait_ms", Unit::Milliseconds);

    #[test]
    fn a_line_names_its_metrics_and_their_dimensions() {
        let mut line = Line::default();
        line.set("route", "GET /v1/ping");
        line.set("status", "500");
        line.set("status", "200");
        line.list("event_ids", "a");
        line.list("event_ids", "a");
        line.list("event_ids", "b\"");
        line.add(REQUESTS, 1.0);
        line.add(CALLS, 2.0);
        line.add(CALLS, 1.0);
        line.add(WAIT, 0.5);
        line.add(WAIT, 7.0);
        let rendered = line.render("ping", "r1", 1_790_000_000_000);
        assert_eq!(rendered.len(), 1);
        assert_eq!(
            serde_json::from_str::<Value>(&rendered[0]).unwrap(),
            json!({
                "_aws": {
                    "Timestamp": 1_790_000_000_000_i64,
                    "CloudWatchMetrics": [
                        {
                            "Namespace": "PartnerApi",
                            "Dimensions": [["function"]],
                            "Metrics": [
                                { "Name": "calls", "Unit": "Count" },
                                { "Name": "wait_ms", "Unit": "Milliseconds" },
                            ],
                        },
                        {
                            "Namespace": "PartnerApi",
                            "Dimensions": [["route", "status"], ["function"]],
                            "Metrics": [{ "Name": "requests", "Unit": "Count" }],
                        },
                    ],
                },
                "function": "ping", "request_id": "r1", "route": "GET /v1/ping", "status": "200",
                "event_ids": ["a", "b\""], "requests": 1, "calls": 3, "wait_ms": [0.5, 7],
            })
        );
        assert_eq!(line.text("status"), Some("200"));
    }

    #[test]
    fn values_beyond_a_hundred_go_into_further_lines() {
        let mut line = Line::default();
        line.add(CALLS, 1.0);
        (0..250u8).for_each(|value| line.add(WAIT, f64::from(value)));
        let rendered = line.render("relay", "r1", 0);
        let parsed: Vec<Value> = rendered.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let values_of = |line: &Value| line["wait_ms"].as_array().unwrap().len();
        assert_eq!(parsed.iter().map(values_of).collect::<Vec<_>>(), [100, 100, 50]);
        assert_eq!(parsed.iter().filter(|line| line.get("calls").is_some()).count(), 1);
    }

    #[test]
    fn a_number_is_written_as_short_as_it_can_be() {
        let written = [0.0, 2.0, 0.5, 12.345, 1e15].map(|value| number(value).to_string());
        assert_eq!(written, ["0", "2", "0.5", "12.345", "1000000000000000"]);
    }
}
