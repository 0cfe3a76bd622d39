//! Metrics as CloudWatch reads them out of a function's log: lines in the Embedded Metric Format
//! (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>).
//!
//! A line holds metrics and the dimensions that they are kept by, and beside them properties, which are for those who search the log.

use std::fmt::Write as _;

use crate::json::{push_number, push_text};

/// Target of the tracing events whose field `line` is such a line.
pub(crate) const TARGET: &str = "metric";
/// Most values of a metric that CloudWatch takes from one line.
const MAX_VALUES: usize = 100;
/// Most texts of a property that is a list.
const MAX_LISTED: usize = 100;

/// What a metric is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Of what is counted within one line, the sum is told.
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

/// A metric, with the sets of dimensions that it is kept by. Each dimension is a text of the lines that it is in.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    name: &'static str,
    unit: Unit,
    by: &'static [&'static [&'static str]],
}

impl Metric {
    /// A metric that is kept by function.
    pub const fn new(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, by: &[&["function"]] }
    }

    /// The metric, kept by these sets of dimensions instead.
    pub const fn by(self, by: &'static [&'static [&'static str]]) -> Self {
        Self { by, ..self }
    }
}

/// A line in the making.
#[derive(Debug, Default, Clone)]
pub struct Line {
    texts: Vec<(&'static str, Text)>,
    metrics: Vec<(Metric, Values)>,
}

/// A metric's values. Most have one.
#[derive(Debug, Clone)]
enum Values {
    One(f64),
    Many(Vec<f64>),
}

#[derive(Debug, Clone)]
enum Text {
    One(String),
    Many(Vec<String>),
}

impl Values {
    fn as_slice(&self) -> &[f64] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

impl Line {
    /// Sets a text: a dimension, or a property.
    pub fn set(&mut self, name: &'static str, text: impl Into<String>) {
        let text = Text::One(text.into());
        match self.texts.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = text,
            None => self.texts.push((name, text)),
        }
    }

    /// Adds a text to a property that is a list, unless it is there, or there are too many.
    pub fn list(&mut self, name: &'static str, text: &str) {
        match self.texts.iter_mut().find(|(other, _)| *other == name) {
            Some((_, Text::Many(all))) if all.len() < MAX_LISTED && !all.iter().any(|other| other == text) => {
                all.push(text.to_owned());
            }
            Some(_) => {}
            None => self.texts.push((name, Text::Many(vec![text.to_owned()]))),
        }
    }

    /// Adds a value.
    pub fn add(&mut self, metric: Metric, value: f64) {
        match self.metrics.iter_mut().find(|(other, _)| other.name == metric.name) {
            Some((_, Values::One(sum))) if metric.unit == Unit::Count => *sum += value,
            Some((_, Values::Many(values))) => values.push(value),
            Some((_, values)) => *values = Values::Many(vec![values.as_slice()[0], value]),
            None => self.metrics.push((metric, Values::One(value))),
        }
    }

    /// The value of a text that is one.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts.iter().find_map(|(other, text)| match text {
            Text::One(text) if *other == name => Some(text.as_str()),
            _ => None,
        })
    }

    /// The line, and as many more as it takes to hold all values.
    pub(crate) fn render(&self, function: &str, request_id: &str, at_ms: i64) -> Vec<String> {
        let most = self.metrics.iter().map(|(_, values)| values.as_slice().len()).max().unwrap_or_default();
        let parts = most.div_ceil(MAX_VALUES).max(1);
        (0..parts).map(|part| self.render_part(part, function, request_id, at_ms)).collect()
    }

    fn render_part(&self, part: usize, function: &str, request_id: &str, at_ms: i64) -> String {
        let metrics: Vec<(Metric, &[f64])> = self
            .metrics
            .iter()
            .filter_map(|(metric, values)| Some((*metric, values.as_slice().chunks(MAX_VALUES).nth(part)?)))
            .collect();
        let mut line = String::with_capacity(1024);
        write!(line, "{{\"_aws\":{{\"Timestamp\":{at_ms},\"CloudWatchMetrics\":[").expect("a string takes text");
        push_directives(&mut line, &metrics);
        line.push_str("]},\"function\":");
        push_text(&mut line, function);
        line.push_str(",\"request_id\":");
        push_text(&mut line, request_id);
        for (name, text) in &self.texts {
            push_name(&mut line, name);
            match text {
                Text::One(text) => push_text(&mut line, text),
                Text::Many(all) => push_list(&mut line, all, |line, text| push_text(line, text)),
            }
        }
        for (metric, values) in metrics {
            push_name(&mut line, metric.name);
            match values {
                [value] => push_number(&mut line, *value),
                values => push_list(&mut line, values, |line, value| push_number(line, *value)),
            }
        }
        line.push('}');
        line
    }
}

/// What CloudWatch is to make of the line: one directive for each way in which metrics are kept.
fn push_directives(line: &mut String, metrics: &[(Metric, &[f64])]) {
    let mut ways: Vec<&'static [&'static [&'static str]]> = Vec::new();
    for (metric, _) in metrics {
        if !ways.contains(&metric.by) {
            ways.push(metric.by);
        }
    }
    for (index, by) in ways.into_iter().enumerate() {
        line.push_str(if index == 0 { "" } else { "," });
        line.push_str("{\"Namespace\":\"PartnerApi\",\"Dimensions\":");
        push_list(line, by, |line, set| push_list(line, set, |line, name| push_text(line, name)));
        line.push_str(",\"Metrics\":[");
        for (index, (metric, _)) in metrics.iter().filter(|(metric, _)| metric.by == by).enumerate() {
            line.push_str(if index == 0 { "" } else { "," });
            for part in ["{\"Name\":\"", metric.name, "\",\"Unit\":\"", metric.unit.as_str(), "\"}"] {
                line.push_str(part);
            }
        }
        line.push_str("]}");
    }
}

/// Appends a member's name, which is one of ours and needs no escaping.
fn push_name(line: &mut String, name: &str) {
    line.push_str(",\"");
    line.push_str(name);
    line.push_str("\":");
}

fn push_list<T>(line: &mut String, items: &[T], push_item: impl Fn(&mut String, &T)) {
    line.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        push_item(line, item);
    }
    line.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: Metric = Metric::new("requests", Unit::Count).by(&[&["route", "status"], &["function"]]);
    const CALLS: Metric = Metric::new("calls", Unit::Count);
    const WAIT: Metric = Metric::new("wait_ms", Unit::Milliseconds);

    #[test]
    fn a_line_tells_cloudwatch_what_to_keep_by_what() {
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
        assert_eq!(
            rendered,
            [concat!(
                r#"{"_aws":{"Timestamp":1790000000000,"CloudWatchMetrics":["#,
                r#"{"Namespace":"PartnerApi","Dimensions":[["route","status"],["function"]],"Metrics":[{"Name":"requests","Unit":"Count"}]},"#,
                r#"{"Namespace":"PartnerApi","Dimensions":[["function"]],"Metrics":[{"Name":"calls","Unit":"Count"},{"Name":"wait_ms","Unit":"Milliseconds"}]}"#,
                r#"]},"function":"ping","request_id":"r1","route":"GET /v1/ping","status":"200","event_ids":["a","b\""],"#,
                r#""requests":1,"calls":3,"wait_ms":[0.5,7]}"#
            )]
        );
        assert_eq!(line.text("status"), Some("200"));
    }

    #[test]
    fn values_beyond_a_hundred_go_into_further_lines() {
        let mut line = Line::default();
        line.add(CALLS, 1.0);
        (0..250u8).for_each(|value| line.add(WAIT, f64::from(value)));
        let rendered = line.render("relay", "r1", 0);
        let values_of = |line: &String| line.rsplit_once('[').map_or(0, |(_, list)| list.split(',').count());
        assert_eq!(rendered.iter().map(values_of).collect::<Vec<_>>(), [100, 100, 50]);
        assert_eq!(rendered.iter().filter(|line| line.contains("calls")).count(), 1);
    }
}
