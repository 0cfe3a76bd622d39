//! Pages of operations as HTML: prose with rows on one side, requests and answers on the other.

use edge::Code;
use maud::{Markup, html};

use super::context::Context;
use super::rows::{self, Row, Sender};
use super::{console, facts, samples};
use crate::document::operation::Operation;
use crate::document::parameter::{Parameter, Place};
use crate::document::response::{Body, Cause, JSON, Response};
use crate::document::schema::Schema;
use crate::document::tag_path;
use crate::markdown::{LANGUAGES, block, inline, slug};
use crate::page::{self, Form};
use crate::parts::{self, Panel, Sync, icon};
use crate::site::{EXAMPLE_BASE, Group, REFERENCE};

/// Renders the page of a tag.
pub(super) fn tag_page(
    title: &str,
    about: &str,
    group: Group,
    operations: &[&Operation],
    context: Context<'_>,
) -> Form {
    let places: Vec<page::Place> = operations.iter().map(|operation| place(operation, title)).collect();
    let path = tag_path(title);
    let sections = html! {
        section .op aria-labelledby=(slug(title)) {
            div .text {
                p .crumb { (group.title()) a href=(format!("{path}.md")) { "This page as Markdown" } }
                h1 id=(slug(title)) { (title) }
                div .lead { (block(about)) }
                @if group == Group::Reference {
                    p .soft {
                        "All requests go to " code { (context.base) } " with a key in " code { "Authorization: Bearer" } ". "
                        "Ignore unknown members of an answer: new members arrive without notice."
                    }
                }
            }
            div .samples { (ends(operations, &places)) }
        }
        @for operation in operations { (section(operation, context)) }
    };
    Form::Sheet { sections, places }
}

/// The operations of a page, as links.
fn ends(operations: &[&Operation], places: &[page::Place]) -> Markup {
    parts::figure(
        html! { "Operations" },
        html! {
            ul .ends {
                @for (operation, place) in operations.iter().zip(places) {
                    li {
                        a href=(format!("#{}", place.id)) {
                            (parts::method(operation.route.method))
                            span { (operation.route.path) }
                            span .name { (place.name) }
                        }
                    }
                }
            }
        },
    )
}

/// An operation in the navigation.
fn place(operation: &Operation, title: &str) -> page::Place {
    let summary = operation.summary();
    // The words of a page's title are not repeated: "List clients" is "List" among the clients.
    let noun = title.rsplit(": ").next().unwrap_or(title).to_lowercase();
    let singular = noun.strip_suffix("ies").map_or(noun.trim_end_matches('s').to_owned(), |noun| format!("{noun}y"));
    let objects = [format!("a {singular}"), format!("an {singular}"), format!("the {noun}"), noun];
    let short = objects.iter().find_map(|object| summary.strip_suffix(&format!(" {object}"))).unwrap_or(summary);
    page::Place { id: slug(summary), method: Some(operation.route.method), name: short.to_owned() }
}

fn section(operation: &Operation, context: Context<'_>) -> Markup {
    let responses = operation.responses(&context.document.schemas);
    let id = slug(operation.summary());
    let (answers, errors): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.is_success());
    let (headers, parameters): (Vec<_>, Vec<_>) =
        operation.parameters.iter().partition(|parameter| parameter.place == Place::Header);
    html! {
        section .op aria-labelledby=(id) {
            div .text {
                h2 id=(id) { (operation.summary()) (parts::anchor(&id)) }
                p .path { (parts::method(operation.route.method)) " " code { (operation.route.path) } }
                (chips(operation, &responses))
                (block(operation.about()))
                (parameter_rows(&id, "Parameters", &parameters, context))
                (parameter_rows(&id, "Headers", &headers, context))
                @if let Some(body) = &operation.body {
                    (heading(&id, "Body"))
                    @if !body.is_required { p .soft { "The body may be omitted." } }
                    (body_rows(&format!("{id}-body"), &body.content, Sender::Caller, context))
                }
                @for answer in &answers { (answer_rows(&id, answer, answers.len(), context)) }
                (error_rows(&id, &errors))
            }
            div .samples {
                (requests(&id, operation, &responses, context))
                (examples(&id, &responses))
                (console::button(operation, &responses))
            }
        }
    }
}

fn chips(operation: &Operation, responses: &[Response]) -> Markup {
    html! {
        ul .chips {
            @for fact in facts::of(operation, responses) {
                @let content = html! { (icon(fact.icon)) span { (inline(&fact.text)) } };
                li { @match fact.link {
                    Some(link) => a .chip href=(link) { (content) },
                    None => span .chip { (content) },
                } }
            }
        }
    }
}

fn heading(id: &str, title: &str) -> Markup {
    let id = format!("{id}-{}", slug(title));
    html! { h3 id=(id) { (title) (parts::anchor(&id)) } }
}

fn parameter_rows(id: &str, title: &str, parameters: &[&Parameter], context: Context<'_>) -> Markup {
    let row = |parameter: &&Parameter| {
        let schema = Schema::read(&parameter.schema);
        let required = parameter.is_required.then(|| "required".to_owned());
        let place = Some(parameter.place.as_str().to_owned()).filter(|_| parameter.place != Place::Header);
        Row {
            name: parameter.name.clone(),
            kind: place.into_iter().chain(rows::kind(context.schemas, &schema)).chain(required).collect(),
            about: parameter.about.clone().unwrap_or_default(),
            members: Vec::new(),
            is_list: false,
        }
    };
    let rows: Vec<Row> = parameters.iter().map(row).collect();
    html! { @if !rows.is_empty() { (heading(id, title)) (member_rows(id, &rows)) } }
}

fn body_rows(id: &str, body: &Body, sender: Sender, context: Context<'_>) -> Markup {
    let schema = Schema::read(&body.schema);
    let rules = if sender == Sender::Caller { rows::rules(context.schemas, &schema) } else { String::new() };
    html! {
        @if !rules.is_empty() { p .soft { (inline(&rules)) } }
        (member_rows(id, &rows::of(context.schemas, &schema, sender)))
    }
}

/// Members as rows. Each has an anchor; the members of objects and lists are folded.
pub(super) fn member_rows(id: &str, rows: &[Row]) -> Markup {
    html! {
        @if !rows.is_empty() {
            dl .params {
                @for row in rows {
                    @let own = format!("{id}-{}", slug(&row.name));
                    div .param id=(own) {
                        dt { a href=(format!("#{own}")) { code { (row.name) } } }
                        dd .kind {
                            @for part in &row.kind {
                                span .need[part == "required"] { (inline(part)) }
                            }
                        }
                        @if !row.about.is_empty() { dd .about { (inline(&row.about)) } }
                        @if !row.members.is_empty() {
                            dd .about {
                                details .fold {
                                    summary { (members_of(row)) }
                                    (member_rows(&own, &row.members))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn members_of(row: &Row) -> String {
    let number = row.members.len();
    let members = if number == 1 { "1 member".to_owned() } else { format!("{number} members") };
    if row.is_list { format!("{members} of each") } else { members }
}

fn answer_rows(id: &str, answer: &Response, answers: usize, context: Context<'_>) -> Markup {
    let title = if answers == 1 { "Answer".to_owned() } else { format!("Answer {}", answer.status) };
    let headers: Vec<&str> = answer.header_names().collect();
    let others: Vec<&str> = answer.bodies.iter().map(|body| body.media_type).filter(|name| *name != JSON).collect();
    html! {
        (heading(id, &title))
        p { @if answers == 1 { code { (answer.status) } " " } (inline(&answer.about)) }
        @for body in answer.bodies.iter().filter(|body| body.media_type == JSON) {
            (body_rows(&format!("{id}-{}", slug(&title)), body, Sender::Service, context))
        }
        @if !others.is_empty() { p .soft { "As " @for (at, name) in others.iter().enumerate() { @if at > 0 { ", " } code { (name) } } "." } }
        @if !headers.is_empty() {
            p .headers.soft {
                a href=(format!("{REFERENCE}#headers-of-answers")) { "Headers" } ": "
                @for (at, name) in headers.iter().enumerate() { @if at > 0 { ", " } code { (name) } }
            }
        }
    }
}

/// The causes of refusals: those of the operation, then folded those that all operations with the credential share.
fn error_rows(id: &str, errors: &[&Response]) -> Markup {
    let mut own = Vec::new();
    let mut shared = Vec::new();
    let mut gateway = Vec::new();
    for error in errors {
        if error.causes.is_empty() {
            own.push((error.status, None, error.about.as_str()));
        }
        for Cause { code, meaning, is_shared } in &error.causes {
            let rows = match code {
                None => &mut gateway,
                Some(_) if *is_shared => &mut shared,
                Some(_) => &mut own,
            };
            rows.push((error.status, *code, *meaning));
        }
    }
    let counted = |number: usize| if number == 1 { "1 error".to_owned() } else { format!("{number} errors") };
    let folded = match (shared.len(), gateway.len()) {
        (0, from_gateway) => format!("{} of the gateway", counted(from_gateway)),
        (of_all, 0) => format!("{} of every such request", counted(of_all)),
        (of_all, from_gateway) => {
            format!("{} of every such request, and {from_gateway} of the gateway", counted(of_all))
        }
    };
    html! {
        @if !errors.is_empty() {
            (heading(id, "Errors"))
            @if !own.is_empty() { (error_table(&own)) }
            @if shared.len() + gateway.len() > 0 {
                details .fold {
                    summary { (folded) }
                    div .inside {
                        @if !shared.is_empty() { (error_table(&shared)) }
                        @if !gateway.is_empty() {
                            p .soft { "From the gateway, without a " code { "code" } ":" }
                            (error_table(&gateway))
                        }
                    }
                }
            }
            p .soft {
                "Branch on the status first, then on " code { "code" } ": " a href="/docs/guides/errors" { "how errors work" } "."
            }
        }
    }
}

fn error_table(rows: &[(u16, Option<Code>, &str)]) -> Markup {
    html! {
        table .errors role="table" {
            thead role="rowgroup" {
                tr role="row" {
                    @for title in ["Status", "Code", "Meaning"] { th scope="col" role="columnheader" { (title) } }
                }
            }
            tbody role="rowgroup" {
                @for (status, code, meaning) in rows {
                    tr role="row" {
                        td .status role="cell" { (status) }
                        td role="cell" { @match code {
                            Some(code) => code { (code.as_str()) },
                            None => span .soft { "no code" },
                        } }
                        td role="cell" { (inline(meaning)) }
                    }
                }
            }
        }
    }
}

fn requests(id: &str, operation: &Operation, responses: &[Response], context: Context<'_>) -> Markup {
    let samples = samples::of(operation, responses).into_iter().flatten().zip(LANGUAGES);
    let panel = |(sample, (fence, name)): (String, (&str, &str))| Panel {
        id: format!("{id}-in-{fence}"),
        title: html! { (name) },
        content: parts::code(fence, sample.replace(EXAMPLE_BASE, context.base).trim_end()),
    };
    let panels: Vec<Panel> = samples.map(panel).collect();
    html! {
        @if !panels.is_empty() { h3 { "Request" } (parts::tabs("Language of the request", Some(Sync::Language), &panels)) }
    }
}

/// The examples of answers: all of those that did their work, and one of each other status that is the operation's own.
fn examples(id: &str, responses: &[Response]) -> Markup {
    let mut panels = Vec::new();
    for response in responses {
        let own = response.causes.iter().filter(|cause| !cause.is_shared).filter_map(|cause| cause.code);
        let own: Vec<&str> = own.map(Code::as_str).collect();
        for body in response.bodies.iter().filter(|body| body.media_type == JSON) {
            let mut examples: Vec<_> = body.examples.iter().collect();
            if !response.is_success() {
                examples.retain(|example| own.iter().any(|code| example.name.starts_with(code)));
                examples.truncate(1);
            }
            for example in examples {
                let name = example.name.replace('_', " ");
                let title = if response.is_success() { name.as_str() } else { "" };
                panels.push(Panel {
                    id: format!("{id}-{}-{}", response.status, slug(&example.name)),
                    title: html! {
                        span .dot.error[!response.is_success()] aria-hidden="true" {} " "
                        (response.status) @if !title.is_empty() { " " (title) }
                    },
                    content: parts::code("json", &format!("{:#}", example.value)),
                });
            }
        }
    }
    html! { @if !panels.is_empty() { h3 { "Answer" } (parts::tabs("Status of the answer", None, &panels)) } }
}
