//! Markdown as HTML, with ids at headings. Every page of the documentation is Markdown first.

use std::collections::BTreeMap;

use domain::html::escape;
use maud::{Markup, html};
use pulldown_cmark::{
    BlockQuoteKind, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html as render,
};

use crate::parts::{self, Panel, Sync};

/// The languages of samples: the name in a fence and the name for readers.
pub(crate) const LANGUAGES: [(&str, &str); 4] = [("sh", "curl"), ("python", "Python"), ("js", "Node"), ("php", "PHP")];

/// Other languages of programs in guides.
const OTHER_LANGUAGES: [(&str, &str); 2] = [("go", "Go"), ("rust", "Rust")];

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

/// A heading of a page.
pub(crate) struct Heading {
    level: HeadingLevel,
    pub(crate) id: String,
    pub(crate) words: String,
}

fn parse(text: &str) -> Vec<Event<'_>> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_GFM).collect()
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

/// The language of a fence, and the title behind it.
fn parts_of<'f>(kind: &'f CodeBlockKind<'_>) -> (&'f str, &'f str) {
    let fence = if let CodeBlockKind::Fenced(fence) = kind { fence } else { "" };
    fence.split_once(' ').unwrap_or((fence, ""))
}

/// The name of a language in which readers run code.
fn program(language: &str) -> Option<&'static str> {
    LANGUAGES.iter().chain(&OTHER_LANGUAGES).find(|(name, _)| *name == language).map(|(_, name)| *name)
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
                (Event::Start(Tag::CodeBlock(kind)), _) => block = Some(program(parts_of(kind).0).is_some()),
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

/// Renders a text without headings, such as a description.
pub(crate) fn block(text: &str) -> Markup {
    let mut html = String::new();
    render::push_html(&mut html, parse(text).into_iter());
    parts::raw(html)
}

/// Renders a text on a line: a description without the paragraph around it.
pub(crate) fn inline(text: &str) -> Markup {
    let events = parse(text).into_iter();
    let inside = events.filter(|event| !matches!(event, Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph)));
    let mut html = String::new();
    render::push_html(&mut html, inside);
    parts::raw(html.trim_end())
}

/// The headings of the second level, each with those of the third below it.
pub(crate) fn contents(text: &str) -> Vec<(Heading, Vec<Heading>)> {
    let mut contents: Vec<(Heading, Vec<Heading>)> = Vec::new();
    for heading in headings(&parse(text)).into_values() {
        match (heading.level, contents.last_mut()) {
            (HeadingLevel::H2, _) => contents.push((heading, Vec::new())),
            (HeadingLevel::H3, Some((_, below))) => below.push(heading),
            _ => {}
        }
    }
    contents
}

/// Renders a page as HTML. Headings link to themselves, numbered lists are steps, a quotation with a kind is a callout,
/// and blocks of code that follow each other are tabs. Tables scroll by themselves, or are cards on a phone.
pub(crate) fn to_html(text: &str) -> String {
    let events = parse(text);
    let headings = headings(&events);
    let mut shown: Vec<Event<'_>> = Vec::with_capacity(events.len());
    let mut table = Table::default();
    let mut place = 0;
    while let Some(event) = events.get(place) {
        let made = |markup: Markup| Event::Html(markup.into_string().into());
        match event {
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let id = Some(CowStr::from(headings[&place].id.clone()));
                shown.push(Event::Start(Tag::Heading {
                    level: *level,
                    id,
                    classes: classes.clone(),
                    attrs: attrs.clone(),
                }));
            }
            Event::End(TagEnd::Heading(level)) => {
                let (_, heading) = headings.range(..place).next_back().expect("a heading ends behind its start");
                if *level != HeadingLevel::H1 {
                    shown.push(Event::InlineHtml(parts::anchor(&heading.id).into_string().into()));
                }
                shown.push(event.clone());
            }
            Event::Start(Tag::CodeBlock(_)) => {
                let (blocks, end) = code_blocks(&events, place);
                shown.push(made(code(&blocks, place)));
                place = end;
                continue;
            }
            Event::Start(Tag::BlockQuote(Some(kind))) => {
                let tone = if matches!(kind, BlockQuoteKind::Note | BlockQuoteKind::Tip) { "info" } else { "warn" };
                let end = place
                    + events[place..]
                        .iter()
                        .take_while(|one| !matches!(one, Event::End(TagEnd::BlockQuote(_))))
                        .count();
                let mut inside = String::new();
                render::push_html(&mut inside, events[place + 1..end].iter().cloned());
                shown.push(made(parts::callout(tone, parts::raw(inside))));
                place = end;
            }
            Event::Code(code) if request(code).is_some() => {
                shown.push(Event::InlineHtml(request(code).unwrap_or_default().into_string().into()))
            }
            Event::Start(Tag::List(Some(_))) => shown.push(Event::Html("<ol class=\"steps\">".into())),
            _ => match table.element(event, &events[place..]) {
                Some(html) => shown.push(Event::Html(html.into())),
                None => shown.push(event.clone()),
            },
        }
        place += 1;
    }
    let mut html = String::new();
    render::push_html(&mut html, shown.into_iter());
    html
}

/// Renders a request such as `GET /v1/clients`, or nothing for any other code.
fn request(code: &str) -> Option<Markup> {
    let (method, path) = code.split_once(" /")?;
    let is_method = ["GET", "POST", "PATCH", "DELETE"].contains(&method);
    is_method.then(|| html! { span .path { (parts::method(method)) " " code { "/" (path) } } })
}

/// A block of code.
struct CodeBlock<'e> {
    language: &'e str,
    title: &'e str,
    text: String,
}

/// Reads a block of code, and programs in other languages that follow a program. Returns the place behind them, too.
fn code_blocks<'e>(events: &'e [Event<'_>], mut place: usize) -> (Vec<CodeBlock<'e>>, usize) {
    let mut blocks: Vec<CodeBlock<'e>> = Vec::new();
    while let Some(Event::Start(Tag::CodeBlock(kind))) = events.get(place) {
        let (language, title) = parts_of(kind);
        let is_alternative = |block: &CodeBlock<'_>| {
            block.language != language && program(block.language).and(program(language)).is_some()
        };
        if !blocks.iter().all(is_alternative) {
            break;
        }
        let inside = events[place..].iter().take_while(|event| **event != Event::End(TagEnd::CodeBlock));
        let end = place + inside.clone().count();
        blocks.push(CodeBlock { language, title, text: inside.filter_map(text_of).collect() });
        place = end + 1;
    }
    (blocks, place)
}

/// Renders a block of code, or several as tabs.
fn code(blocks: &[CodeBlock<'_>], place: usize) -> Markup {
    let body = |block: &CodeBlock<'_>| parts::code(block.language, block.text.trim_end());
    let name = |block: &CodeBlock<'_>| match (block.title, block.language) {
        ("", "sh") => "Shell".to_owned(),
        ("", "json") => "JSON".to_owned(),
        ("", "http") => "HTTP".to_owned(),
        ("", language) => program(language).unwrap_or("Text").to_owned(),
        (title, _) => title.to_owned(),
    };
    match blocks {
        [only] => parts::figure(html! { (name(only)) }, body(only)),
        several => {
            let panel = |(at, block): (usize, &CodeBlock<'_>)| Panel {
                id: format!("code-{place}-{at}"),
                title: html! { (program(block.language).unwrap_or_default()) },
                content: body(block),
            };
            let panels: Vec<Panel> = several.iter().enumerate().map(panel).collect();
            parts::tabs("Languages", Some(Sync::Language), &panels)
        }
    }
}

/// The table that is rendered. Its rows are cards on a phone, so its cells name their columns, and its elements keep
/// their roles.
#[derive(Default)]
struct Table {
    columns: Vec<String>,
    column: usize,
    is_head: bool,
}

impl Table {
    /// Returns the HTML of an element of a table, or nothing for any other event. `after` begins with the event.
    fn element(&mut self, event: &Event<'_>, after: &[Event<'_>]) -> Option<String> {
        let html = match event {
            Event::Start(Tag::Table(_)) => {
                self.columns.clear();
                "<div class=\"table\" tabindex=\"0\"><table role=\"table\">".to_owned()
            }
            Event::End(TagEnd::Table) => "</tbody></table></div>\n".to_owned(),
            Event::Start(Tag::TableHead) => {
                self.is_head = true;
                "<thead role=\"rowgroup\"><tr role=\"row\">".to_owned()
            }
            Event::End(TagEnd::TableHead) => {
                self.is_head = false;
                "</tr></thead><tbody role=\"rowgroup\">\n".to_owned()
            }
            Event::Start(Tag::TableRow) => {
                self.column = 0;
                "<tr role=\"row\">".to_owned()
            }
            Event::End(TagEnd::TableRow) => "</tr>\n".to_owned(),
            Event::Start(Tag::TableCell) if self.is_head => {
                let inside = after.iter().take_while(|event| **event != Event::End(TagEnd::TableCell));
                self.columns.push(inside.filter_map(text_of).collect());
                "<th role=\"columnheader\" scope=\"col\">".to_owned()
            }
            Event::Start(Tag::TableCell) => {
                let column = self.columns.get(self.column).map_or("", String::as_str);
                self.column += 1;
                format!("<td role=\"cell\" data-label=\"{}\">", escape(column))
            }
            Event::End(TagEnd::TableCell) => if self.is_head { "</th>" } else { "</td>" }.to_owned(),
            _ => return None,
        };
        Some(html)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_ids_and_tables_name_their_columns_in_each_cell() {
        let html = to_html("## The `code` of an error\n\n| a |\n|---|\n| 1 < 2 |\n\n### More\n\n## B\n\n### More\n");
        let heading = "<h2 id=\"the-code-of-an-error\">The <code>code</code> of an error \
                       <a class=\"anchor\" href=\"#the-code-of-an-error\" aria-hidden=\"true\" tabindex=\"-1\">#</a></h2>";
        assert!(
            html.contains(heading)
                && html.contains("<h3 id=\"the-code-of-an-error-more\">")
                && html.contains("<h3 id=\"b-more\">"),
            "{html}"
        );
        assert!(html.contains("<td role=\"cell\" data-label=\"a\">1 &lt; 2</td>"), "{html}");
    }

    #[test]
    fn blocks_of_code_that_follow_each_other_are_tabs() {
        let html =
            to_html("```sh\na\n```\n\n```python\nb\n```\n\nText\n\n```sh\nc\n```\n\n```json the answer\nd\n```\n");
        assert_eq!(
            (html.matches("class=\"code tabs\"").count(), html.matches("class=\"panel\"").count()),
            (1, 2),
            "{html}"
        );
        let html = to_html("Text\n\n```json the answer\nd\n```\n\n> [!WARNING]\n> **Careful.** Text.\n\n1. One\n");
        for part in ["<span>the answer</span>", "<div class=\"callout warn\">", "<ol class=\"steps\">"] {
            assert!(html.contains(part), "{part}: {html}");
        }
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
