//! The integrators' guides: Markdown files in `pages`, rendered to HTML at the first request.
//!
//! The operators' guides in `infra/guides` are not served. The tests here check both against the code's constants.

use domain::html::escape;
use edge::Resource;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

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
    (0..GUIDES.len()).map(|at| (GUIDES[at].path(), Resource::new(move || page(at), "text/html; charset=utf-8", POLICY)))
}

/// Renders the guide with that place in the reading order.
fn page(at: usize) -> String {
    let guide = &GUIDES[at];
    let text = markdown(guide.text);
    let link = |label: &str, to: &Guide| format!("<li>{label}: <a href=\"{}\">{}</a></li>", to.path(), to.title);
    let previous = at.checked_sub(1).map(|before| link("Previous", &GUIDES[before]));
    let next = GUIDES.get(at + 1).map(|next| link("Next", next));
    let neighbours: String = previous.into_iter().chain(next).collect();
    let main = format!(
        "<article>\n{}</article>\n<nav class=\"neighbours\" aria-label=\"Neighbouring guides\"><ul>{neighbours}</ul></nav>",
        with_contents(&render_html(&text), &sections(&text)),
    );
    layout::page(guide.title, &guide.path(), "", &main)
}

/// The id and the words of each section.
fn sections(text: &str) -> Vec<(String, String)> {
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let heads = events
        .iter()
        .enumerate()
        .filter(|(_, event)| matches!(event, Event::Start(Tag::Heading { level: HeadingLevel::H2, .. })));
    heads.map(|(i, _)| (slug(&events[i + 1..]), words(&events[i + 1..]))).collect()
}

/// Puts the contents of a guide before its first section.
fn with_contents(html: &str, sections: &[(String, String)]) -> String {
    let Some((beginning, rest)) = html.split_once("<h2") else { return html.to_owned() };
    let links: String =
        sections.iter().map(|(id, words)| format!("<li><a href=\"#{id}\">{}</a></li>", escape(words))).collect();
    format!("{beginning}<nav class=\"contents\" aria-label=\"On this page\"><ul>{links}</ul></nav>\n<h2{rest}")
}

/// Renders Markdown as HTML. Headings have ids, and links to themselves. Code and tables scroll by themselves on a
/// narrow screen, by keyboard too.
fn render_html(text: &str) -> String {
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let (mut linked, mut anchor) = (Vec::with_capacity(events.len()), String::new());
    for (i, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let (id, words) = (slug(&events[i + 1..]), escape(&words(&events[i + 1..])));
                if *level != HeadingLevel::H1 {
                    anchor = format!(" <a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to “{words}”\">#</a>");
                }
                let id = Some(CowStr::from(id));
                let start = Tag::Heading { level: *level, id, classes: classes.clone(), attrs: attrs.clone() };
                linked.push(Event::Start(start));
            }
            Event::End(TagEnd::Heading(_)) => {
                linked.push(Event::InlineHtml(std::mem::take(&mut anchor).into()));
                linked.push(event.clone());
            }
            event => linked.push(event.clone()),
        }
    }
    let mut html = String::new();
    html::push_html(&mut html, linked.into_iter());
    html.replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<table>", "<div class=\"table\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
}

/// The words of a heading. `after` starts behind the heading's start tag.
fn words(after: &[Event<'_>]) -> String {
    let inside = after.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let texts = inside.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.to_string()),
        _ => None,
    });
    texts.collect()
}

/// Builds the id of a heading from its words.
fn slug(after: &[Event<'_>]) -> String {
    let words = words(after).to_lowercase();
    let parts: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

#[cfg(test)]
mod numbers;
#[cfg(test)]
mod tests;
