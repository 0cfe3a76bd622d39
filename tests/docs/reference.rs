//! The pages of the reference have what the OpenAPI document has, and nothing else.

use std::collections::BTreeSet;

use compare::assert_same;
use serde_json::{Value, json};

use super::{RESOURCES, crawl, text_of};
use crate::world::World;

/// An operation's section of a page.
struct Section<'p> {
    html: &'p str,
    /// The words, without tags.
    text: String,
}

impl<'p> Section<'p> {
    fn new(html: &'p str) -> Self {
        Self { html, text: text_of(html) }
    }

    /// The parts of the section under headings that begin with a word.
    fn under(&self, heading: &str) -> Vec<&'p str> {
        let parts = self.html.split("<h3 ").skip(1);
        parts.filter(|part| part.split_once('>').is_some_and(|(_, words)| words.starts_with(heading))).collect()
    }

    /// The names of rows under headings that begin with a word, those of members of members included.
    fn names(&self, heading: &str) -> Vec<String> {
        self.under(heading).into_iter().flat_map(names).collect()
    }

    /// The JSON beside the section, in order.
    fn answers(&self) -> Vec<Value> {
        self.html.split_once("<h3>Answer</h3>").map(|(_, samples)| json_blocks(samples)).unwrap_or_default()
    }
}

/// The names of rows.
fn names(html: &str) -> Vec<String> {
    let rows = html.split("<dt><a href=\"#").skip(1);
    rows.map(|row| text_of(row.split_once("<code>").unwrap().1.split("</code>").next().unwrap())).collect()
}

/// The JSON of samples.
fn json_blocks(html: &str) -> Vec<Value> {
    let blocks = html.split("<pre tabindex=\"0\"><code>").skip(1);
    blocks.map(|block| serde_json::from_str(&text_of(block.split("</code>").next().unwrap())).unwrap()).collect()
}

/// The words of a description in Markdown, without links and marks.
fn words_of(markdown: &str) -> String {
    let mut text = String::new();
    for (i, part) in markdown.split("](").enumerate() {
        text += if i == 0 { part } else { part.split_once(')').unwrap().1 };
    }
    text.replace(['`', '[', '*'], "").replace("\n- ", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of all members of a schema.
fn members<'d>(document: &'d Value, schema: &'d Value, found: &mut BTreeSet<&'d str>) {
    if let Some(name) = schema["$ref"].as_str() {
        return members(document, document.pointer(name.trim_start_matches('#')).unwrap(), found);
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(name);
        members(document, member, found);
    }
    let forms = ["allOf", "anyOf", "oneOf"].iter().flat_map(|name| schema[name].as_array().into_iter().flatten());
    forms.chain(schema.get("items")).for_each(|part| members(document, part, found));
}

fn all_members<'d>(document: &'d Value, schemas: impl IntoIterator<Item = &'d Value>) -> BTreeSet<&'d str> {
    let mut found = BTreeSet::new();
    schemas.into_iter().for_each(|schema| members(document, schema, &mut found));
    found
}

/// The last parts of members' names, such as `id` of `data[].id`.
fn last_parts(names: &[String]) -> BTreeSet<&str> {
    names.iter().map(|name| name.rsplit('.').next().unwrap().trim_end_matches("[]")).collect()
}

#[tokio::test]
async fn a_page_of_a_resource_has_its_operations_as_the_document_describes_them() {
    let world = World::start().await;
    let found = crawl(&world.anonymous()).await;
    let document = &found["/openapi.json"].body;
    let mut operations: Vec<(&str, &str, &Value)> = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        operations
            .extend(methods.as_object().unwrap().iter().map(|(method, one)| (path.as_str(), method.as_str(), one)));
    }
    for name in RESOURCES {
        let page = &found[&format!("/docs/reference/{name}")].text;
        let title =
            text_of(page.split_once("<h1").unwrap().1.split_once('>').unwrap().1.split_once("</h1>").unwrap().0);
        let tag = document["tags"].as_array().unwrap().iter().find(|tag| tag["name"] == title.as_str()).unwrap();
        assert!(text_of(page).contains(&words_of(tag["description"].as_str().unwrap())), "{name}");
        let page = page.split_once("<nav class=\"near\"").unwrap().0;
        let sections: Vec<Section<'_>> = page.split("<h2 id=\"").skip(1).map(Section::new).collect();
        let own: Vec<_> = operations.iter().filter(|(.., one)| one["tags"][0] == title.as_str()).collect();
        assert_eq!(sections.len(), own.len(), "{name}");
        for (path, method, operation) in own {
            let request = in_html(method, path);
            let place = format!("the section of `{method} {path}` in /docs/reference/{name}");
            let mut fitting =
                sections.iter().filter(|section| section.html.contains(&format!("<p class=\"path\">{request}</p>")));
            let (section, None) = (fitting.next().expect(&place), fitting.next()) else { panic!("{place}: twice") };
            assert_describes(document, operation, section, &place);
        }
    }
}

/// A request as the pages show it.
fn in_html(method: &str, path: &str) -> String {
    format!("<b class=\"method {method}\">{}</b> <code>{path}</code>", method.to_uppercase())
}

/// Asserts that a section has everything that the document says about an operation.
fn assert_describes(document: &Value, operation: &Value, section: &Section<'_>, place: &str) {
    let has = |text: &Value| {
        let words = words_of(text.as_str().unwrap_or_default());
        assert!(section.text.contains(&words), "{place}: {words}");
    };
    has(&operation["summary"]);
    // The permission is a chip.
    let about = operation["description"].as_str().unwrap_or_default();
    let about = about.split_once("Needs the permission").map_or(about, |(about, _)| about);
    has(&json!(about));
    let permission = operation["x-permission"].as_str();
    let chip = permission.map(|permission| format!("<code>{permission}</code></span></a></li>"));
    assert!(chip.is_none_or(|chip| section.html.contains(&chip)), "{place}: {permission:?}");
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    parameters.iter().for_each(|parameter| has(&parameter["description"]));
    let names = parameters.iter().map(|parameter| parameter["name"].as_str().unwrap());
    let shown = [section.names("Parameters"), section.names("Headers")].concat();
    assert_same(place, shown, names.map(str::to_owned));

    let body = &operation["requestBody"]["content"]["application/json"];
    assert_same(place, last_parts(&section.names("Body")), all_members(document, [&body["schema"]]));
    let responses: Vec<(&String, &Value)> = operation["responses"].as_object().unwrap().iter().collect();
    let resolved = |response: &'_ Value| match response["$ref"].as_str() {
        Some(name) => document.pointer(name.trim_start_matches('#')).unwrap().clone(),
        None => response.clone(),
    };
    let is_answer = |status: &str| status.starts_with(['2', '3']);
    let answers: Vec<_> = responses.iter().filter(|(status, _)| is_answer(status)).collect();
    let (mut shown, mut wanted) = (BTreeSet::new(), Vec::new());
    for (status, answer) in &answers {
        let content = &answer["content"]["application/json"];
        let title = if answers.len() == 1 { "Answer".to_owned() } else { format!("Answer {status}") };
        let parts = section.under(&title);
        assert_eq!(parts.len(), 1, "{place}: {status}");
        assert!(text_of(parts[0]).contains(status.as_str()), "{place}: {status}");
        assert!(text_of(parts[0]).contains(&words_of(answer["description"].as_str().unwrap())), "{place}: {status}");
        for header in answer["headers"].as_object().into_iter().flatten().map(|(name, _)| name) {
            assert!(parts[0].contains(&format!("<code>{header}</code>")), "{place}: {status}: {header}");
        }
        shown.extend(all_members(document, [&content["schema"]]));
        wanted.extend(examples(content));
    }
    let errors = responses.iter().filter(|(status, _)| !is_answer(status)).map(|(_, error)| resolved(error));
    let errors: Vec<Value> = errors.flat_map(|error| examples(&error["content"]["application/json"])).collect();
    let (own, of_errors) =
        section.answers().split_at_checked(wanted.len()).map(|(a, b)| (a.to_vec(), b.to_vec())).expect(place);
    assert_eq!(own, wanted, "{place}");
    assert!(of_errors.iter().all(|example| errors.contains(example)), "{place}");
    assert_eq!(section.under("Answer").len(), answers.len(), "{place}");
    assert_same(place, last_parts(&section.names("Answer")), shown);

    let errors = section.under("Errors").concat();
    let mut wanted = BTreeSet::new();
    for (status, error) in responses.iter().filter(|(status, _)| !is_answer(status)) {
        let error = resolved(error);
        let codes = error["x-codes"].as_array().into_iter().flatten().map(|code| code.as_str().unwrap().to_owned());
        wanted.extend(codes.map(|code| (status.to_string(), code)));
        wanted.insert((status.to_string(), "none".to_owned()));
    }
    let rows = errors.split("<td class=\"status\" role=\"cell\">").skip(1).map(|row| {
        let mut cells = row.split("</td>").map(text_of);
        (cells.next().unwrap(), cells.next().unwrap().replace("no code", "none"))
    });
    let rows: BTreeSet<(String, String)> = rows.collect();
    let with_code = |pairs: &BTreeSet<(String, String)>| -> BTreeSet<String> {
        pairs.iter().filter(|(_, code)| code != "none").map(|(status, code)| format!("{status} {code}")).collect()
    };
    let statuses =
        |pairs: &BTreeSet<(String, String)>| pairs.iter().map(|(status, _)| status.clone()).collect::<BTreeSet<_>>();
    assert_same(place, with_code(&rows), with_code(&wanted));
    assert_same(place, statuses(&rows), statuses(&wanted));
}

/// The examples of a body.
fn examples(content: &Value) -> Vec<Value> {
    let named = content["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
    content.get("example").into_iter().chain(named).cloned().collect()
}

#[tokio::test]
async fn the_overview_links_to_every_operation() {
    let world = World::start().await;
    let found = crawl(&world.anonymous()).await;
    let document = &found["/openapi.json"].body;
    let page = &found["/docs/reference"].text;
    let mut number = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let row = format!(
                ">{}</a></td><td role=\"cell\" data-label=\"Request\"><span class=\"path\">{}</span></td>",
                operation["summary"].as_str().unwrap(),
                in_html(method, path)
            );
            assert_eq!(page.matches(&row).count(), 1, "{row}");
            number += 1;
        }
    }
    assert_eq!(page.matches("<td role=\"cell\" data-label=\"Operation\"><a ").count(), number);
    let text = text_of(page);
    for scheme in document["components"]["securitySchemes"].as_object().unwrap().values() {
        assert!(text.contains(&words_of(scheme["description"].as_str().unwrap())), "{scheme}");
    }
}

#[tokio::test]
async fn the_event_catalog_has_every_event_in_both_payload_modes() {
    let world = World::start().await;
    let found = crawl(&world.anonymous()).await;
    let document = &found["/openapi.json"].body;
    let page = found["/docs/events"].text.split_once("<nav class=\"near\"").unwrap().0;
    let mut sections = page.split("<h2 id=\"").skip(1).map(|section| section.split_once('"').unwrap());
    let (_, shared) = sections.next().unwrap();
    let shared = names(shared.split("<h3 ").next().unwrap());
    let sections: Vec<(&str, &str)> = sections.collect();
    let webhooks = document["webhooks"].as_object().unwrap();
    assert_same("/docs/events", sections.iter().map(|(id, _)| *id), webhooks.keys().map(String::as_str));
    for (name, section) in sections {
        let event = &webhooks[name]["post"];
        let body = &event["requestBody"]["content"]["application/json"];
        assert!(text_of(section).contains(&words_of(event["description"].as_str().unwrap())), "{name}");
        let names = [names(section), shared.clone()].concat();
        let place = format!("the section of {name} in /docs/events");
        assert_same(&place, last_parts(&names), all_members(document, [&body["schema"]]));
        let examples = ["identifiers", "contact_details"].map(|mode| body["examples"][mode]["value"].clone());
        assert_eq!(json_blocks(section), examples, "{name}");
    }
}
