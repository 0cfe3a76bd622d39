//! The integrators' guides: Markdown files in `pages`, rendered to HTML at the first request.
//!
//! The operators' guides in `infra/guides` are not served. The tests here check both against the code's constants.

use edge::Resource;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::layout;
use crate::site::{GUIDES, Guide, without_marks};

/// `Content-Security-Policy` of a guide: text with our style sheet, no scripts.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Code of receivers, which replaces `<<name>>` in a guide. The files are those that the tests run.
const RECEIVERS: [(&str, &str); 4] = [
    ("receiver.py", include_str!("../../../tests/receivers/receiver.py")),
    ("receiver.mjs", include_str!("../../../tests/receivers/receiver.mjs")),
    ("receiver.go", include_str!("../../../tests/receivers/receiver.go")),
    ("receiver.rs", include_str!("../../../tests/receivers/receiver.rs")),
];

/// Removes the marks behind numbers, and inserts the code of the receivers.
fn markdown(text: &str) -> String {
    RECEIVERS
        .iter()
        .fold(without_marks(text), |text, (name, file)| text.replace(&format!("<<{name}>>\n"), without_header(file)))
}

/// Cuts the header of a file, which ends at the first blank line.
fn without_header(file: &str) -> &str {
    file.split_once("\n\n").map_or(file, |(_, rest)| rest)
}

/// Creates the guides' pages, by path.
pub(crate) fn resources() -> impl Iterator<Item = (String, Resource)> {
    GUIDES.iter().enumerate().map(|(i, guide)| {
        let next = GUIDES.get(i + 1);
        (guide.path(), Resource::new(move || page(guide, next), "text/html; charset=utf-8", POLICY))
    })
}

fn page(guide: &Guide, next: Option<&Guide>) -> String {
    let mut main = format!("<article>\n{}</article>\n", render_html(&markdown(guide.text)));
    if let Some(next) = next {
        main.push_str(&format!("<p class=\"next\">Next: <a href=\"{}\">{}</a></p>", next.path(), next.title));
    }
    layout::page(guide.title, &guide.path(), "", &main)
}

/// Renders Markdown as HTML. Headings have ids to link to. Code and tables scroll by themselves on a narrow screen, by
/// keyboard too.
fn render_html(text: &str) -> String {
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let with_ids = events.iter().enumerate().map(|(i, event)| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            let id = Some(CowStr::from(slug(&events[i + 1..])));
            Event::Start(Tag::Heading { level: *level, id, classes: classes.clone(), attrs: attrs.clone() })
        }
        event => event.clone(),
    });
    let mut html = String::new();
    html::push_html(&mut html, with_ids);
    html.replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<table>", "<div class=\"table\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
}

/// Builds the id of a heading from its words. `after` starts behind the heading's start tag.
fn slug(after: &[Event<'_>]) -> String {
    let inside = after.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words: String = inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.to_lowercase()),
            _ => None,
        })
        .collect();
    let parts: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

#[cfg(test)]
mod numbers;
#[cfg(test)]
mod tests;
