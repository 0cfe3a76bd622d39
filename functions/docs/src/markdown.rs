//! Markdown as HTML, with ids at headings. Every page of the documentation is Markdown first.

use std::collections::BTreeMap;

use domain::html::escape;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The languages of samples: the name in a fence and the name for readers. Samples that follow each other are
/// alternatives, of which the first is open.
pub(crate) const LANGUAGES: [(&str, &str); 4] = [("sh", "curl"), ("python", "Python"), ("js", "Node"), ("php", "PHP")];

/// A section of a page, from a heading of the first or second level to the next one.
pub(crate) struct Section {
    /// The id of the heading. Empty for the page's title.
    pub(crate) id: String,
    pub(crate) title: String,
    /// The words of the section, without its heading and without blocks of code.
    pub(crate) text: String,
    /// The section's programs and commands. Examples of JSON repeat what tables have.
    pub(crate) code: String,
}

struct Heading {
    level: HeadingLevel,
    id: String,
    words: String,
}

fn parse(text: &str) -> Vec<Event<'_>> {
    Parser::new_ext(text, Options::ENABLE_TABLES).collect()
}

/// Builds an id from words.
pub(crate) fn slug(words: &str) -> String {
    let words = words.to_lowercase();
    let parts: Vec<&str> =
        words.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// The headings by the place of their start. The id of a heading that several sections have begins with that of its
/// section.
fn headings(events: &[Event<'_>]) -> BTreeMap<usize, Heading> {
    let starts = events.iter().enumerate().filter_map(|(place, event)| match event {
        Event::Start(Tag::Heading { level, .. }) => Some((place, *level, heading_words(&events[place + 1..]))),
        _ => None,
    });
    let starts: Vec<(usize, HeadingLevel, String)> = starts.collect();
    let is_repeated = |words: &str| starts.iter().filter(|(.., other)| other == words).count() > 1;
    let mut section = String::new();
    let heading = |(place, level, words): &(usize, HeadingLevel, String)| {
        let mut id = slug(words);
        if *level <= HeadingLevel::H2 {
            section.clone_from(&id);
        } else if is_repeated(words) {
            id = format!("{section}-{id}");
        }
        (*place, Heading { level: *level, id, words: words.clone() })
    };
    starts.iter().map(heading).collect()
}

/// The words of a heading. `after` starts behind the heading's start.
fn heading_words(after: &[Event<'_>]) -> String {
    after.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_)))).filter_map(text_of).collect()
}

/// Returns true for a block that a reader runs.
fn is_program(kind: &CodeBlockKind<'_>) -> bool {
    matches!(kind, CodeBlockKind::Fenced(language) if !["", "json"].contains(&&**language))
}

fn text_of<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match event {
        Event::Text(text) | Event::Code(text) => Some(text),
        _ => None,
    }
}

/// The words of a text, without marks.
pub(crate) fn words_of(text: &str) -> String {
    parse(text).iter().filter_map(text_of).collect()
}

/// Splits a page into its sections. The first one is the page's beginning.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let events = parse(text);
    let headings = headings(&events);
    let is_start = |heading: &Heading| matches!(heading.level, HeadingLevel::H1 | HeadingLevel::H2);
    let starts: Vec<(usize, &Heading)> =
        headings.iter().filter(|(_, heading)| is_start(heading)).map(|(place, heading)| (*place, heading)).collect();
    let ends = starts.iter().skip(1).map(|(place, _)| *place).chain([events.len()]);
    let section = |(&(start, heading), end): (&(usize, &Heading), usize)| {
        let inside = events[start..end].iter().skip_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let (mut block, mut text, mut code) = (None, Vec::new(), Vec::new());
        for event in inside {
            match (event, block) {
                (Event::Start(Tag::CodeBlock(kind)), _) => block = Some(is_program(kind)),
                (Event::End(TagEnd::CodeBlock), _) => block = None,
                (_, None) => text.extend(text_of(event)),
                (_, Some(true)) => code.extend(text_of(event)),
                (_, Some(false)) => {}
            }
        }
        let id = if heading.level == HeadingLevel::H1 { String::new() } else { heading.id.clone() };
        Section { id, title: heading.words.clone(), text: text.join(" "), code: code.join(" ") }
    };
    starts.iter().zip(ends).map(section).collect()
}

/// Renders a page as HTML, with its contents before its first section. Headings link to themselves. Code and tables
/// scroll by themselves on a narrow screen, by keyboard too.
pub(crate) fn to_html(text: &str) -> String {
    let events = parse(text);
    let (headings, samples) = (headings(&events), samples(&events));
    let mut shown = Vec::with_capacity(events.len());
    let (mut anchor, mut after_code) = (String::new(), "");
    for (place, event) in events.iter().enumerate() {
        match (event, headings.get(&place)) {
            (Event::Start(Tag::Heading { classes, attrs, .. }), Some(Heading { level, id, .. })) => {
                if *level != HeadingLevel::H1 {
                    // Not for screen readers, which would read each heading twice. The contents have the same links.
                    anchor = format!(" <a class=\"anchor\" href=\"#{id}\" aria-hidden=\"true\" tabindex=\"-1\">#</a>");
                }
                let id = Some(CowStr::from(id.clone()));
                let tag = Tag::Heading { level: *level, id, classes: classes.clone(), attrs: attrs.clone() };
                shown.push(Event::Start(tag));
            }
            (Event::End(TagEnd::Heading(_)), _) => {
                shown.push(Event::InlineHtml(std::mem::take(&mut anchor).into()));
                shown.push(event.clone());
            }
            (Event::Start(Tag::CodeBlock(_)), _) => {
                let sample = samples.get(&place).map(|Sample { label, is_open }| {
                    let open = if *is_open { " open" } else { "" };
                    format!("<details class=\"sample\"{open}><summary>{label}</summary>")
                });
                after_code = if sample.is_some() { "</div></details>\n" } else { "</div>\n" };
                shown.push(Event::Html((sample.unwrap_or_default() + "<div class=\"code\">").into()));
                shown.push(event.clone());
            }
            (Event::End(TagEnd::CodeBlock), _) => {
                shown.push(event.clone());
                shown.push(Event::Html(after_code.into()));
            }
            _ => shown.push(event.clone()),
        }
    }
    let mut html = String::new();
    html::push_html(&mut html, shown.into_iter());
    let html = html
        .replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<table>", "<div class=\"table\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>");
    with_contents(&html, &headings)
}

/// Puts the contents of a page before its first section.
fn with_contents(html: &str, headings: &BTreeMap<usize, Heading>) -> String {
    let Some((beginning, rest)) = html.split_once("<h2") else { return html.to_owned() };
    let sections = headings.values().filter(|heading| heading.level == HeadingLevel::H2);
    let links: String =
        sections.map(|Heading { id, words, .. }| format!("<li><a href=\"#{id}\">{}</a></li>", escape(words))).collect();
    format!("{beginning}<nav class=\"contents\" aria-label=\"On this page\"><ul>{links}</ul></nav>\n<h2{rest}")
}

/// A sample with alternatives.
struct Sample {
    label: &'static str,
    /// True for the first one of its alternatives.
    is_open: bool,
}

/// Finds samples that follow each other, by the place of their start.
fn samples(events: &[Event<'_>]) -> BTreeMap<usize, Sample> {
    let mut samples = BTreeMap::new();
    // The start, the label and the end of the sample before.
    let mut before: Option<(usize, &'static str, usize)> = None;
    for (start, event) in events.iter().enumerate() {
        let Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(fence))) = event else { continue };
        let Some((_, label)) = LANGUAGES.iter().find(|(name, _)| *name == &**fence) else { continue };
        let length = events[start..].iter().take_while(|event| **event != Event::End(TagEnd::CodeBlock)).count() + 1;
        if let Some((first, label_of_first, _)) = before.filter(|(.., end)| *end == start) {
            samples.entry(first).or_insert(Sample { label: label_of_first, is_open: true });
            samples.insert(start, Sample { label, is_open: false });
        }
        before = Some((start, label, start + length));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_ids_and_tables_a_frame() {
        let html = to_html("## The `code` of an error\n\n| a |\n|---|\n| 1 < 2 |\n\n### More\n\n## B\n\n### More\n");
        let heading = "<h2 id=\"the-code-of-an-error\">The <code>code</code> of an error \
                       <a class=\"anchor\" href=\"#the-code-of-an-error\" aria-hidden=\"true\" tabindex=\"-1\">#</a></h2>";
        assert!(
            html.contains(heading)
                && html.contains("<h3 id=\"the-code-of-an-error-more\">")
                && html.contains("<h3 id=\"b-more\">"),
            "{html}"
        );
        assert!(
            html.contains("<div class=\"table\"") && html.contains("1 &lt; 2") && html.contains("</table></div>"),
            "{html}"
        );
    }

    #[test]
    fn samples_that_follow_each_other_are_alternatives() {
        let html = to_html("```sh\na\n```\n\n```python\nb\n```\n\nText\n\n```sh\nc\n```\n\n```json\nd\n```\n");
        assert_eq!(html.matches("<details").count(), 2, "{html}");
        assert_eq!(html.matches("</details>").count(), 2, "{html}");
        assert_eq!(html.matches("<div class=\"code\">").count(), 4, "{html}");
        assert!(
            html.contains("open><summary>curl</summary>") && html.contains("\"><summary>Python</summary>"),
            "{html}"
        );
    }

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let sections = sections(
            "# A\n\none\n\n```json\n{}\n```\n\n## B\n\ntwo `three`\n\n```sh\ncode\n```\n\n### C\n\nfour\n\n## D\n",
        );
        let shown: Vec<_> = sections
            .iter()
            .map(|section| [&section.id, &section.title, &section.text, &section.code].map(String::as_str))
            .collect();
        let wanted = [["", "A", "one", ""], ["b", "B", "two  three C four", "code\n"], ["d", "D", "", ""]];
        assert_eq!(shown, wanted);
    }
}
