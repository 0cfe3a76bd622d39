//! The demo's facts, from `facts.json`: a workspace, a client with two weeks of history, and a CRM.
//!
//! A text that begins with `@` stands for a value of the start: `@base_url`, `@endpoint_id`, `@date -3` for the date of
//! three days ago, `@time -3` for the time, `@time 2 15:00` for an hour of a day (UTC).

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use crate::control::rendered;

/// A fact's name and its detail.
pub type Fact = (String, Value);

/// The values of a start.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub now: DateTime<Utc>,
    /// The address at which the workspace's clients sign in.
    pub base_url: &'a str,
    /// The endpoint of the automation. Empty until there is one.
    pub endpoint_id: &'a str,
}

/// Returns the facts of a group, as backfill: they emit no events. A later group refers to records of an earlier one,
/// and a fact about an unknown record would wait for the record.
pub fn group(name: &str, start: Start<'_>) -> Vec<Fact> {
    let mut groups: Map<String, Value> = serde_json::from_str(include_str!("facts.json")).expect("the demo is JSON");
    let facts: Vec<Fact> = serde_json::from_value(groups[name].take()).expect("a group lists facts");
    let with_values = |(number, (name, mut detail)): (usize, Fact)| {
        fill_in(&mut detail, start);
        detail["id"] = json!(format!("demo-{}-{number}-{name}", start.now.timestamp_millis()));
        detail["occurred_at"] = json!(rendered(start.now));
        detail["backfill"] = json!(true);
        (name, detail)
    };
    facts.into_iter().enumerate().map(with_values).collect()
}

/// Puts the values of the start in the place of the texts that stand for them.
fn fill_in(value: &mut Value, start: Start<'_>) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|member| fill_in(member, start)),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, start)),
        Value::String(text) if text.starts_with('@') => *text = value_of(text, start),
        _ => {}
    }
}

fn value_of(text: &str, start: Start<'_>) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let day = |days: &str| start.now + TimeDelta::days(days.parse().expect("the days are a number"));
    match words[..] {
        ["@base_url"] => start.base_url.to_owned(),
        ["@endpoint_id"] => start.endpoint_id.to_owned(),
        ["@date", days] => day(days).date_naive().to_string(),
        ["@time", days] => rendered(day(days)),
        ["@time", days, hour] => {
            let hour = NaiveTime::parse_from_str(hour, "%H:%M").expect("the hour is a time");
            rendered(day(days).date_naive().and_time(hour).and_utc())
        }
        _ => panic!("the demo has no value {text}"),
    }
}
