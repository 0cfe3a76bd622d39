//! The event catalog: each event with its members, and an example in both payload modes.

use serde_json::Value;

use super::json::{plain, text};
use super::schema::{Schemas, Sender};
use super::table;

pub(super) fn render(document: &Value) -> String {
    let webhooks = document["webhooks"].as_object().into_iter().flatten();
    let events: Vec<&Value> = webhooks.map(|(_, methods)| &methods["post"]).collect();
    let schemas = Schemas::of(document);
    let mut page = "# Event catalog\n\nEvery event with its members and an example in both payload modes. \
                    [Events](/docs/guides/events) says when they are sent, and how to answer.\n\n\
                    ## Headers of a request\n"
        .to_owned();
    let headers = events.first().map(|event| event["parameters"].as_array().into_iter().flatten());
    let headers = headers.into_iter().flatten().map(|header| {
        let [name, about] = ["name", "description"].map(|member| text(&header[member]));
        [format!("`{name}`"), format!("`{}`", plain(&header["example"])), about.to_owned()]
    });
    page += &table::render(["Header", "Example", "Meaning"], headers);
    let answers = events.first().map(|event| event["responses"].as_object().into_iter().flatten());
    let answers = answers.into_iter().flatten();
    let answers = answers.map(|(status, answer)| [format!("`{status}`"), text(&answer["description"]).to_owned()]);
    page += &format!("\n## Your answer\n{}", table::render(["Status", "Meaning"], answers));
    for event in events {
        let body = &event["requestBody"]["content"]["application/json"];
        page += &format!(
            "\n## {}\n\n{}\n{}",
            text(&event["summary"]),
            text(&event["description"]),
            schemas.table(&body["schema"], Sender::Service),
        );
        for mode in ["identifiers", "contact_details"] {
            let example = &body["examples"][mode];
            page += &format!("\n{}:\n\n```json\n{:#}\n```\n", text(&example["summary"]), example["value"]);
        }
    }
    page
}
