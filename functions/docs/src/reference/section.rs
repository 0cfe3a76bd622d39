//! The section of an operation: its parameters, body, samples, answers and errors.

use serde_json::Value;

use super::json::text;
use super::operation::Operation;
use super::samples;
use super::schema::{Schemas, Sender};
use super::table;
use crate::site::REFERENCE;

/// Renders the section.
pub(super) fn render(operation: &Operation<'_>, schemas: &Schemas<'_>) -> String {
    let (summary, method, path) = (operation.summary(), &operation.method, operation.path);
    let deprecated = if operation.json["deprecated"] == true { "**Deprecated.** " } else { "" };
    let mut section = format!(
        "\n## {summary}\n\n`{method} {path}`\n\n{deprecated}{}\n\n{}\n",
        text(&operation.json["description"]),
        credential(operation)
    );
    let parameters = operation.parameters().map(|parameter| {
        let required = if parameter["required"] == true { "; required" } else { "" };
        [
            format!("`{}`", text(&parameter["name"])),
            format!("{}{required}", text(&parameter["in"])),
            schemas.kind(&parameter["schema"]),
            text(&parameter["description"]).to_owned(),
        ]
    });
    section += &under("Parameters", &table::render(["Parameter", "In", "Type", "Meaning"], parameters));
    if let Some(body) = operation.body() {
        let optional =
            if operation.json["requestBody"]["required"] == true { "" } else { "\nThe body may be omitted.\n" };
        let bodies = examples(body);
        section += &under("Body", &(optional.to_owned() + &schemas.table(&body["schema"], Sender::Caller) + &bodies));
    }
    section += &under("Samples", &samples::render(operation));
    let (answers, errors): (Vec<_>, Vec<_>) =
        operation.responses().partition(|(status, _)| status.starts_with(['2', '3']));
    for (status, response) in answers {
        section += &format!("\n### Answer {status}\n\n{}\n{}", text(&response["description"]), headers(response));
        for (media_type, content) in response["content"].as_object().into_iter().flatten() {
            section += &match media_type.as_str() {
                "application/json" => schemas.table(&content["schema"], Sender::Service) + &examples(content),
                other => format!("\nAs `{other}`.\n"),
            };
        }
    }
    let errors = errors.into_iter().flat_map(|(status, response)| rows_of_error(status, response));
    section + &under("Errors", &table::render(["Status", "`code`", "Meaning"], errors))
}

/// The credential that an operation takes. Each key can be sent in two headers.
fn credential(operation: &Operation<'_>) -> String {
    let schemes = operation.json["security"].as_array().into_iter().flatten().filter_map(Value::as_object);
    let schemes: Vec<&str> = schemes.flat_map(|scheme| scheme.keys()).map(String::as_str).collect();
    let credential = match schemes[..] {
        [] => return "Takes no credential.".to_owned(),
        ["apiKey", "apiKeyHeader"] => "a partner key",
        ["crmKey", "crmKeyHeader"] => "a CRM key",
        ["coachSession"] => "the session of a coach, which the application has",
        _ => "a key of either scope",
    };
    format!("Takes [{credential}]({REFERENCE}#credentials).")
}

/// Puts a heading over a text, if there is one.
fn under(heading: &str, content: &str) -> String {
    if content.is_empty() { String::new() } else { format!("\n### {heading}\n{content}") }
}

fn headers(response: &Value) -> String {
    let names: Vec<String> =
        response["headers"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("\n[Headers]({REFERENCE}#headers-of-answers): {}.\n", names.join(", "))
    }
}

/// The examples of a body.
fn examples(content: &Value) -> String {
    let named = content["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
    content.get("example").into_iter().chain(named).map(|value| format!("\n```json\n{value:#}\n```\n")).collect()
}

/// A row for each cause of a status. The description of a response with several causes is a list.
fn rows_of_error(status: &str, response: &Value) -> Vec<[String; 3]> {
    let about = text(&response["description"]);
    let row = |code: String, about: &str| [status.to_owned(), code, about.to_owned()];
    match about.strip_prefix("- ") {
        Some(causes) => {
            let causes = causes.split("\n- ").map(|cause| cause.split_once(": ").expect("a cause has a name"));
            causes
                .map(|(code, about)| {
                    row(if code.starts_with('`') { code.to_owned() } else { "none".to_owned() }, about)
                })
                .collect()
        }
        None => {
            let code = response["x-codes"][0].as_str().map_or_else(|| "none".to_owned(), |code| format!("`{code}`"));
            vec![row(code, about)]
        }
    }
}
