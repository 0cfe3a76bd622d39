//! Observability in template.yaml: log groups, alarms with their runbook entries, and a complete dashboard.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::tidy::template::{events, functions, of_type, target, template};

/// Path of the runbook in the repository.
const RUNBOOK: &str = "infra/guides/runbook.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The sources of the functions and libraries, without unit tests.
fn sources() -> Vec<String> {
    let mut waiting = vec![root().join("functions"), root().join("lib")];
    let mut sources = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            sources.push(text.split("\n#[cfg(test)]").next().unwrap().to_owned());
        }
    }
    sources
}

/// Names of the functions' own metrics.
fn metrics() -> BTreeSet<String> {
    let literal = |rest: &str| rest.split('"').nth(1).unwrap().to_owned();
    let sources = sources();
    let names: BTreeSet<String> =
        sources.iter().flat_map(|code| code.split("Metric::new(").skip(1).map(literal)).collect();
    assert!(names.len() > 15, "{names:?}");
    names
}

/// Metrics of the template's log filters.
fn filtered(template: &Value) -> BTreeSet<String> {
    let filters = of_type(template, "AWS::Logs::MetricFilter");
    let transformations = filters.values().flat_map(|filter| filter["Properties"]["MetricTransformations"].as_array());
    let names = transformations.flatten().map(|it| {
        assert_eq!(it["MetricNamespace"], "PartnerApi");
        it["MetricName"].as_str().unwrap().to_owned()
    });
    names.collect()
}

/// Name of the runbook section for an alarm. Alarms for the same failure in several functions share a section.
fn section(template: &Value, alarm: &str) -> String {
    let function =
        |suffix: &str| alarm.strip_suffix(suffix).map(|name| &template["Resources"][format!("{name}Function")]);
    match (function("ErrorsAlarm"), function("ThrottlesAlarm")) {
        (Some(_), _) => "background-errors".to_owned(),
        (_, Some(function)) if events(function, "HttpApi").is_empty() => "background-throttles".to_owned(),
        (_, Some(_)) => "front-throttles".to_owned(),
        (None, None) => kebab(alarm),
    }
}

/// Namespace and name of each metric that an alarm watches.
fn watched(alarm: &Value) -> Vec<(String, String)> {
    let parts = alarm["Metrics"].as_array().into_iter().flatten().map(|metric| &metric["MetricStat"]["Metric"]);
    let all = parts.chain([alarm]).filter(|metric| !metric["MetricName"].is_null());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.map(|metric| (text(&metric["Namespace"]), text(&metric["MetricName"]))).collect()
}

/// `SweepLagAlarm` becomes `sweep-lag`.
fn kebab(alarm: &str) -> String {
    let mut name = String::new();
    for letter in alarm.strip_suffix("Alarm").unwrap().chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[test]
fn held_outgoing_work_raises_no_alarm() {
    let template = template();
    let alarms = of_type(&template, "AWS::CloudWatch::Alarm");
    let quiet = alarms.iter().filter(|(_, alarm)| !alarm["Properties"]["ActionsEnabled"].is_null());
    let quiet: Vec<&str> = quiet
        .map(|(id, alarm)| {
            let held = json!({ "Fn::If": ["HoldsOutgoing", false, true] });
            assert_eq!(alarm["Properties"]["ActionsEnabled"], held, "{id}");
            id.as_str()
        })
        .collect();
    assert_eq!(quiet, ["DeliveriesAgeAlarm", "DeliveryRetriesAlarm", "OutboxLagAlarm", "SweepLagAlarm"]);
}

#[test]
fn every_function_has_its_own_log_group_and_every_group_expires_its_logs() {
    let template = template();
    let groups = of_type(&template, "AWS::Logs::LogGroup");
    let mut written = BTreeSet::new();
    for (id, function) in functions(&template) {
        let group = target(&function["Properties"]["LoggingConfig"]["LogGroup"]).to_owned();
        assert!(groups.contains_key(&group) && written.insert(group.clone()), "{id}: {group}");
    }
    for (id, group) in &groups {
        assert_eq!(group["Properties"]["RetentionInDays"], json!({"Ref": "LogRetentionDays"}), "{id}");
    }
    // A log filter in Lambda would drop metrics, which have no level.
    let logging = &template["Globals"]["Function"]["LoggingConfig"];
    assert_eq!((&logging["LogFormat"], &logging["ApplicationLogLevel"]), (&json!("JSON"), &json!("TRACE")));
}

#[test]
fn every_alarm_notifies_the_topic_and_has_its_section_in_the_runbook() {
    let template = template();
    let page = root().join(RUNBOOK);
    let mut metrics = metrics();
    metrics.extend(filtered(&template));
    let runbook = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let sections: BTreeSet<String> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|title| title.trim().to_lowercase().replace(' ', "-"))
        .collect();
    let topic = json!({"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]});
    for (id, alarm) in of_type(&template, "AWS::CloudWatch::Alarm") {
        let properties = &alarm["Properties"];
        for actions in ["AlarmActions", "OKActions"] {
            assert_eq!(properties[actions], topic, "{id}: {actions}");
        }
        let section = section(&template, &id);
        let description = properties["AlarmDescription"].as_str().unwrap();
        let link = format!(". Runbook: {RUNBOOK}#{section}");
        assert!(description.ends_with(&link), "{id}: {description}");
        assert!(sections.contains(&section), "{id}: add the section `{section}` to {RUNBOOK}");
        let watched = watched(properties);
        assert!(!watched.is_empty(), "{id} watches nothing");
        for (_, metric) in watched.iter().filter(|(namespace, _)| namespace == "PartnerApi") {
            assert!(
                metrics.contains(metric),
                "{id} watches {metric}: no `Metric::new` and no metric filter has this name"
            );
        }
    }
}

#[test]
fn every_function_has_an_alarm_of_its_own_on_throttles_and_every_background_function_on_errors() {
    let template = template();
    for (id, function) in functions(&template) {
        let watched = ["Errors", "Throttles"].map(|metric| {
            let alarm = &template["Resources"][format!("{}{metric}Alarm", id.strip_suffix("Function").unwrap())];
            let (of, properties) = (json!([{ "Name": "FunctionName", "Value": { "Ref": id } }]), &alarm["Properties"]);
            properties["MetricName"] == metric && properties["Dimensions"] == of
        });
        let is_background = events(&function, "HttpApi").is_empty();
        assert_eq!(watched, [is_background, true], "{id}");
    }
}

#[test]
fn refusals_concurrency_and_bounced_mails_have_alarms() {
    let template = template();
    let alarms = of_type(&template, "AWS::CloudWatch::Alarm");
    let watched: BTreeSet<(String, String)> = alarms.values().flat_map(|alarm| watched(&alarm["Properties"])).collect();
    for (namespace, metric) in [
        ("AWS/ApiGateway", "4xx"),
        ("PartnerApi", "gateway_throttled"),
        ("AWS/Lambda", "ClaimedAccountConcurrency"),
        ("AWS/SES", "Reputation.BounceRate"),
        ("AWS/SES", "Reputation.ComplaintRate"),
    ] {
        assert!(watched.contains(&(namespace.to_owned(), metric.to_owned())), "nobody watches {metric}");
    }
    let threshold = &alarms["ConcurrencyAlarm"]["Properties"]["Threshold"];
    assert_eq!(threshold, &json!({ "Ref": "ConcurrencyAlarmThreshold" }));
}

#[test]
fn the_dashboard_shows_every_metric_alarm_table_queue_and_function() {
    let template = template();
    let body = template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"].as_str().unwrap();
    let shown: BTreeSet<&str> = body.split("${").skip(1).map(|rest| rest.split(['}', '.']).next().unwrap()).collect();
    let dashboard: Value = serde_json::from_str(body).unwrap();
    assert!(dashboard["widgets"].as_array().unwrap().len() > 10);
    for name in &shown {
        let known = name.starts_with("AWS::") || !template["Resources"][*name].is_null();
        assert!(known, "Dashboard in template.yaml shows {name}, which is no resource");
    }
    let kinds = ["AWS::CloudWatch::Alarm", "AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Serverless::Function"];
    for id in kinds.into_iter().flat_map(|kind| of_type(&template, kind).into_keys()) {
        assert!(shown.contains(id.as_str()), "add {id} to a widget of Dashboard in template.yaml");
    }
    for (table, properties) in of_type(&template, "AWS::DynamoDB::Table") {
        for index in properties["Properties"]["GlobalSecondaryIndexes"].as_array().into_iter().flatten() {
            let index = index["IndexName"].as_str().unwrap();
            let [first, other] =
                ["GlobalSecondaryIndexName", "."].map(|by| format!(r#""${{{table}}}","{by}","{index}""#));
            assert_eq!(body.matches(&first).count() + body.matches(&other).count(), 2, "{table}, {index}");
        }
    }
    for metric in metrics().into_iter().chain(filtered(&template)) {
        let named = body.contains(&format!("\"{metric}\"")) || body.contains(&format!("\\\"{metric}\\\""));
        assert!(named, "add the metric {metric} to a widget of Dashboard in template.yaml");
    }
}

#[test]
fn the_runbook_quotes_texts_of_the_code() {
    let is_words = |text: &&str| text.contains(' ') && text.chars().all(|c| c.is_ascii_lowercase() || c == ' ');
    let runbook = fs::read_to_string(root().join(RUNBOOK)).unwrap();
    let quoted = runbook.split('`').skip(1).step_by(2).filter(is_words);
    let filtered = runbook.split("message = \"").skip(1).filter_map(|rest| rest.split('"').next());
    let texts: BTreeSet<&str> = quoted.chain(filtered).collect();
    assert!(texts.len() > 10, "{texts:?}");
    let code = sources().concat();
    let unknown: Vec<_> = texts.iter().filter(|text| !code.contains(**text)).collect();
    assert!(unknown.is_empty(), "no code writes what {RUNBOOK} quotes: {unknown:?}");
}
