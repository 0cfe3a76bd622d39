//! Observability: log groups of template.yaml; alarms of infra/observability.yaml with their runbook entries, a full
//! dashboard, and what both cost.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use local_stack::template::document;
use serde_json::{Value, json};

use crate::tidy::template::{Resources, events, functions, of_type, target, template};

/// Path of the runbook in the repository.
const RUNBOOK: &str = "infra/guides/runbook.md";
/// The section of the runbook for what people report.
const OF_REPORTS: &str = "without-an-alarm";
/// The template of alarms and dashboard.
const OBSERVABILITY: &str = include_str!("../../infra/observability.yaml");
/// Most metrics of an alarm's expression: CloudWatch's limit.
const MAX_METRICS_OF_ALARM: usize = 10;

/// The template of alarms and dashboard, as JSON.
pub(crate) fn observability() -> Value {
    document(OBSERVABILITY).unwrap()
}

fn alarms() -> Resources {
    of_type(&observability(), "AWS::CloudWatch::Alarm")
}

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

/// Names that the sources give to this constructor.
fn names_in(sources: &[String], constructor: &str) -> BTreeSet<String> {
    let literal = |rest: &str| rest.split('"').nth(1).unwrap().to_owned();
    sources.iter().flat_map(|code| code.split(constructor).skip(1).map(literal)).collect()
}

/// The service's metrics that CloudWatch keeps: of the functions, and of log filters.
fn kept_metrics() -> BTreeSet<String> {
    let mut names = names_in(&sources(), "Metric::new(");
    for filter in of_type(&observability(), "AWS::Logs::MetricFilter").values() {
        for metric in filter["Properties"]["MetricTransformations"].as_array().unwrap() {
            assert_eq!(metric["MetricNamespace"], "PartnerApi");
            names.insert(metric["MetricName"].as_str().unwrap().to_owned());
        }
    }
    names
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

/// The rest of each name after this beginning, up to a sign that no name has.
fn named<'t>(text: &'t str, beginning: &str) -> BTreeSet<&'t str> {
    // The dot is that of a FIFO queue.
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    text.split(beginning).skip(1).map(|rest| rest.split(|c| !is_of_name(c)).next().unwrap()).collect()
}

/// Names of the template's resources of a type, without the beginning that all of them have.
fn names_of(template: &Value, kind: &str, property: &str, beginning: &str) -> BTreeSet<String> {
    let name = |resource: &Value| {
        let name = resource["Properties"][property]["Fn::Sub"].as_str().unwrap();
        name.strip_prefix(beginning).unwrap_or_else(|| panic!("{name}")).to_owned()
    };
    // A sandbox is not watched.
    let watched = of_type(template, kind).into_values().filter(|resource| resource["Condition"] != "IsSandbox");
    watched.collect::<Vec<_>>().iter().map(name).collect()
}

#[test]
fn held_outgoing_work_raises_no_alarm() {
    let alarms = alarms();
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
    let page = root().join(RUNBOOK);
    let metrics = kept_metrics();
    let runbook = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let sections: BTreeSet<String> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|title| title.trim().to_lowercase().replace(' ', "-"))
        .collect();
    let topic = json!({"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]});
    for (id, alarm) in alarms() {
        let properties = &alarm["Properties"];
        for actions in ["AlarmActions", "OKActions"] {
            assert_eq!(properties[actions], topic, "{id}: {actions}");
        }
        let section = kebab(&id);
        assert_eq!(properties["AlarmName"]["Fn::Sub"], format!("${{Service}}-{section}"), "{id}");
        let description = properties["AlarmDescription"].as_str().unwrap();
        let link = format!(". Runbook: {RUNBOOK}#{section}");
        assert!(description.ends_with(&link), "{id}: {description}");
        assert!(sections.contains(&section), "{id}: add the section `{section}` to {RUNBOOK}");
        let watched = watched(properties);
        assert!(!watched.is_empty() && watched.len() <= MAX_METRICS_OF_ALARM, "{id} watches {watched:?}");
        for (_, metric) in watched.iter().filter(|(namespace, _)| namespace == "PartnerApi") {
            assert!(
                metrics.contains(metric),
                "{id} watches {metric}: no `Metric::new` and no metric filter has this name"
            );
        }
    }
    let wanted: BTreeSet<String> = alarms().keys().map(|id| kebab(id)).chain([OF_REPORTS.to_owned()]).collect();
    assert_eq!(sections, wanted, "each section of {RUNBOOK} but {OF_REPORTS} belongs to an alarm");
}

#[test]
fn errors_of_every_background_function_and_throttles_of_every_function_have_an_alarm() {
    let (template, alarms) = (template(), alarms());
    let background = functions(&template).into_values().filter(|function| events(function, "HttpApi").is_empty());
    // Nobody is called for a sandbox.
    let background = background.filter(|function| function["Condition"] != "IsSandbox");
    let background: BTreeSet<String> =
        background.map(|it| it["Properties"]["FunctionName"]["Fn::Sub"].as_str().unwrap().to_owned()).collect();
    let errors = alarms["BackgroundErrorsAlarm"]["Properties"]["Metrics"].as_array().unwrap().iter();
    let watched = errors.filter_map(|metric| {
        let metric = &metric["MetricStat"]["Metric"];
        let name = metric["Dimensions"][0]["Value"]["Fn::Sub"].as_str()?;
        assert_eq!(metric["MetricName"], "Errors");
        Some(name.replace("${Service}", "${AWS::StackName}"))
    });
    assert_eq!(watched.collect::<BTreeSet<_>>(), background);
    let throttles = &alarms["ThrottlesAlarm"]["Properties"];
    assert_eq!((&throttles["Namespace"], &throttles["MetricName"]), (&json!("AWS/Lambda"), &json!("Throttles")));
    assert!(throttles["Dimensions"].is_null(), "without a dimension, the metric is the sum of all functions");
}

#[test]
fn refusals_concurrency_and_bounced_mails_have_alarms() {
    let alarms = alarms();
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
fn metrics_and_alarms_stay_within_the_budget_of_a_small_deployment() {
    let (metrics, alarms) = (kept_metrics(), alarms());
    assert!(metrics.len() <= 12, "a figure of the log costs nothing, see `Metric::logged`: {metrics:?}");
    assert!(alarms.len() <= 16, "an alarm is something that a person has to do: {:?}", alarms.keys());
    let watched: usize = alarms.values().map(|alarm| watched(&alarm["Properties"]).len()).sum();
    let guide = fs::read_to_string(root().join("infra/guides/capacity.md")).unwrap();
    let stated = format!("{} alarms, which watch {watched} metrics", alarms.len());
    assert!(guide.contains(&stated), "infra/guides/capacity.md does not state: {stated}");
}

#[test]
fn the_dollars_of_the_capacity_guide_add_up() {
    let guide = fs::read_to_string(root().join("infra/guides/capacity.md")).unwrap();
    let number = |cell: &str| cell.trim_matches([' ', '*']).replace(',', "").parse::<f64>().unwrap();
    let cells = |row: &str| row.trim_matches('|').split('|').skip(1).map(number).collect::<Vec<_>>();
    let row = |text: &str, name: &str| cells(text.lines().find(|line| line.starts_with(name)).unwrap());
    let table = guide.split("\n## Dollars a month\n").nth(1).unwrap().split("Assumptions:").next().unwrap();
    let services: Vec<Vec<f64>> = table
        .lines()
        .filter(|line| {
            line.starts_with("| ") && !["| Service", "| **All**", "| For each"].iter().any(|it| line.starts_with(it))
        })
        .map(cells)
        .collect();
    assert!(services.len() > 10, "{services:?}");
    let [all, each] = ["| **All** ", "| For each coach "].map(|name| row(table, name));
    for (column, coaches) in [10.0, 1_000.0, 100_000.0].into_iter().enumerate() {
        let sum: f64 = services.iter().map(|service| service[column]).sum();
        assert!((sum - all[column]).abs() <= 0.005 * sum, "{coaches} coaches: {sum}, and {} in all", all[column]);
        let of_each = all[column] / coaches;
        assert!((of_each - each[column]).abs() <= 0.05 * of_each, "{coaches} coaches: {of_each} for each");
    }
    assert_eq!(row(&guide, "| Dollars a month "), all, "the guide begins with other sums");
    assert_eq!(row(&guide, "| Dollars a month for each coach "), each);
}

#[test]
fn the_stack_of_alarms_gets_its_parameters_and_names_what_the_template_creates() {
    let (template, observability) = (template(), observability());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let stack = &template["Resources"]["Observability"]["Properties"];
    assert_eq!(stack["TemplateURL"], "infra/observability.yaml");
    assert_eq!(keys(&stack["Parameters"]), keys(&observability["Parameters"]));
    let functions = names_of(&template, "AWS::Serverless::Function", "FunctionName", "${AWS::StackName}-");
    let tables = names_of(&template, "AWS::DynamoDB::Table", "TableName", "${AWS::StackName}-");
    let queues = names_of(&template, "AWS::SQS::Queue", "QueueName", "${NamePrefix}");
    let alarms: BTreeSet<String> = alarms().keys().map(|id| kebab(id)).collect();
    for name in named(OBSERVABILITY, "${Service}-").into_iter().filter(|name| !name.is_empty()) {
        let is_known = [&functions, &tables, &alarms].iter().any(|names| names.contains(name));
        assert!(is_known, "no function, table or alarm is named {name}");
    }
    for name in named(OBSERVABILITY, "${NamePrefix}") {
        assert!(queues.contains(name), "no queue is named {name}");
    }
    for name in named(OBSERVABILITY, "/aws/lambda/${Service}/") {
        assert!(functions.contains(name), "no log group is named {name}");
    }
}

#[test]
fn the_dashboard_shows_every_metric_alarm_table_queue_and_function() {
    let (template, observability) = (template(), observability());
    let body = observability["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"].as_str().unwrap();
    let dashboard: Value = serde_json::from_str(body).unwrap();
    assert!(dashboard["widgets"].as_array().unwrap().len() > 10);
    for id in alarms().keys() {
        assert!(body.contains(&format!(":alarm:${{Service}}-{}\"", kebab(id))), "{id} is not on the dashboard");
    }
    for (kind, property, beginning, of_widget, times) in [
        ("AWS::Serverless::Function", "FunctionName", "${AWS::StackName}-", "${Service}-", 4),
        ("AWS::DynamoDB::Table", "TableName", "${AWS::StackName}-", "${Service}-", 5),
        ("AWS::SQS::Queue", "QueueName", "${NamePrefix}", "${NamePrefix}", 1),
    ] {
        for name in names_of(&template, kind, property, beginning) {
            let shown = body.matches(&format!("\"{of_widget}{name}\"")).count();
            assert!(shown >= times, "{name} is {shown} times on the dashboard");
        }
    }
    for table in of_type(&template, "AWS::DynamoDB::Table").into_values() {
        let name =
            table["Properties"]["TableName"]["Fn::Sub"].as_str().unwrap().replace("${AWS::StackName}", "${Service}");
        for index in table["Properties"]["GlobalSecondaryIndexes"].as_array().into_iter().flatten() {
            let index = index["IndexName"].as_str().unwrap();
            let [first, other] = ["GlobalSecondaryIndexName", "."].map(|by| format!(r#""{name}","{by}","{index}""#));
            assert_eq!(body.matches(&first).count() + body.matches(&other).count(), 2, "{name}, {index}");
        }
    }
    for metric in kept_metrics() {
        assert!(
            body.contains(&format!("\"PartnerApi\",\"{metric}\"")) || body.contains(&format!("[\".\",\"{metric}\"")),
            "{metric} is not on the dashboard"
        );
    }
    let logged = names_in(&sources(), "Metric::logged(");
    assert!(logged.len() > 10, "{logged:?}");
    let queries: Vec<&str> = dashboard["widgets"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|widget| widget["properties"]["query"].as_str())
        .collect();
    for figure in logged {
        let of_figure =
            |query: &&&str| query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == figure);
        assert!(queries.iter().any(|query| of_figure(&query)), "no query of the dashboard reads {figure}");
    }
}

/// Beginnings of the operators' commands.
const COMMANDS: [&str; 3] = ["operate ", "dead ", "client export"];

#[test]
fn the_runbook_quotes_texts_of_the_code() {
    let is_words = |text: &&str| text.contains(' ') && text.chars().all(|c| c.is_ascii_lowercase() || c == ' ');
    let runbook = fs::read_to_string(root().join(RUNBOOK)).unwrap();
    let quoted = runbook.split('`').skip(1).step_by(2).filter(is_words);
    let filtered = runbook.split("message = \"").skip(1).filter_map(|rest| rest.split('"').next());
    let texts: BTreeSet<&str> = quoted.chain(filtered).collect();
    assert!(texts.len() > 10, "{texts:?}");
    let code = sources().concat();
    // Commands are checked against the tool.
    let is_command = |text: &str| COMMANDS.iter().any(|command| text.starts_with(command));
    let unknown: Vec<_> = texts.iter().filter(|text| !is_command(text) && !code.contains(**text)).collect();
    assert!(unknown.is_empty(), "no code writes what {RUNBOOK} quotes: {unknown:?}");
}
