//! The section of an operation as Markdown: its parameters, body, samples, answers and errors as tables.

use edge::routes::Access;

use super::context::Context;
use super::rows::{self, Row, Sender};
use super::{samples, table};
use crate::document::operation::Operation;
use crate::document::response::{Body, JSON, Response};
use crate::document::schema::Schema;
use crate::markdown::{LANGUAGES, slug};
use crate::site::REFERENCE;

/// Renders the section.
pub(super) fn section(operation: &Operation, context: Context<'_>) -> String {
    let responses = operation.responses(&context.document.schemas);
    let (answers, errors): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.is_success());
    let (summary, route) = (operation.summary(), operation.route);
    let permission =
        route.permission().map(|permission| format!("\n\nNeeds the permission `{}`.", permission.as_str()));
    let mut section = format!(
        "\n## {summary}\n\n`{route}`\n\n{}{}\n\n{}\n",
        operation.about(),
        permission.unwrap_or_default(),
        credential(route.access)
    );
    let parameters = operation.parameters.iter().map(|parameter| {
        let required = if parameter.is_required { "; required" } else { "" };
        [
            format!("`{}`", parameter.name),
            format!("{}{required}", parameter.place.as_str()),
            rows::kind(context.schemas, &Schema::read(&parameter.schema)).join("; "),
            parameter.about.clone().unwrap_or_default(),
        ]
    });
    section += &under("Parameters", &table::render(["Parameter", "In", "Type", "Meaning"], parameters));
    if let Some(body) = &operation.body {
        let optional = if body.is_required { "" } else { "\nThe body may be omitted.\n" };
        let fields = body_table(&body.content, Sender::Caller, context);
        section += &under("Body", &(optional.to_owned() + &fields + &examples(&body.content)));
    }
    let samples = samples::of(operation, &responses).into_iter().flatten().zip(LANGUAGES);
    let samples: String = samples.map(|(sample, (fence, _))| format!("\n```{fence}\n{sample}```\n")).collect();
    section += &under("Samples", &samples);
    for answer in answers {
        section += &format!("\n### Answer {}\n\n{}\n{}", answer.status, answer.about, headers(answer));
        for body in &answer.bodies {
            section += &match body.media_type {
                JSON => body_table(body, Sender::Service, context) + &examples(body),
                other => format!("\nAs `{other}`.\n"),
            };
        }
    }
    let errors = errors.into_iter().flat_map(error_rows);
    section + &under("Errors", &table::render(["Status", "`code`", "Meaning"], errors))
}

/// The link to an operation's section.
pub(super) fn link_to(operation: &Operation) -> String {
    let summary = operation.summary();
    format!("[{summary}]({}#{})", crate::document::tag_path(operation.tag()), slug(summary))
}

/// The credential that an operation takes. Each key can be sent in two headers.
fn credential(access: Access) -> String {
    let credential = match access {
        Access::Public => return "Takes no credential.".to_owned(),
        Access::Partner(_) => "a partner key",
        Access::Crm(_) => "a CRM key",
        Access::Events | Access::AnyKey | Access::Sandbox | Access::Assistant => "a key of either scope",
        Access::Session => "the session of a coach, which the application has",
    };
    let only = if access == Access::Sandbox { " In a sandbox only." } else { "" };
    format!("Takes [{credential}]({REFERENCE}#credentials).{only}")
}

/// Puts a heading over a text, if there is one.
fn under(heading: &str, content: &str) -> String {
    if content.is_empty() { String::new() } else { format!("\n### {heading}\n{content}") }
}

fn headers(response: &Response) -> String {
    let names: Vec<String> = response.header_names().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("\n[Headers]({REFERENCE}#headers-of-answers): {}.\n", names.join(", "))
    }
}

/// The members of a body as a table, and in front of it the rules of the body as a whole.
fn body_table(body: &Body, sender: Sender, context: Context<'_>) -> String {
    let schema = Schema::read(&body.schema);
    let rules = if sender == Sender::Caller { rows::rules(context.schemas, &schema) } else { String::new() };
    let rules = if rules.is_empty() { rules } else { format!("\n{rules}\n") };
    rules + &member_table(&rows::of(context.schemas, &schema, sender), sender)
}

/// Members as a table, those of objects and of lists included.
pub(super) fn member_table(rows: &[Row], sender: Sender) -> String {
    let head = if sender == Sender::Caller { "Field" } else { "Member" };
    let cells = rows.iter().flat_map(|row| row.flat(""));
    let cells = cells.map(|(place, row)| [format!("`{place}`"), row.kind.join("; "), row.about.clone()]);
    table::render([head, "Type", "Meaning"], cells)
}

/// The examples of a body.
fn examples(body: &Body) -> String {
    body.examples.iter().map(|example| format!("\n```json\n{:#}\n```\n", example.value)).collect()
}

/// A row for each cause of a status.
fn error_rows(response: &Response) -> Vec<[String; 3]> {
    let row = |code: String, about: &str| [response.status.to_string(), code, about.to_owned()];
    if response.causes.is_empty() {
        return vec![row("none".to_owned(), &response.about)];
    }
    let code = |code: Option<edge::Code>| code.map_or("none".to_owned(), |code| format!("`{}`", code.as_str()));
    response.causes.iter().map(|cause| row(code(cause.code), cause.meaning)).collect()
}
