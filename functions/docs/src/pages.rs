//! All pages in reading order, and what is made of them: HTML, Markdown, the search index and the summary.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::deployment::Deployment;
use crate::markdown::Section;
use crate::page::{Form, Page};
use crate::site::{Group, NAME, START, START_PAGE};
use crate::{guides, reference};

/// Longest beginning of a section that search results show, in characters.
const EXCERPT_CHARS: usize = 140;
/// Sections that are indexed under a word of samples, or under a name such as an error's code. The sections of the
/// reference share most of them.
const MOST_SECTIONS: usize = 10;
/// Words that no section is indexed under. `search.js` leaves them out of queries.
const COMMON: [&str; 72] = [
    "a", "after", "again", "all", "also", "always", "an", "and", "another", "are", "as", "at", "be", "because", "been",
    "before", "but", "by", "can", "could", "do", "does", "each", "for", "from", "has", "have", "how", "if", "in",
    "into", "is", "it", "its", "may", "never", "none", "not", "of", "on", "once", "one", "only", "or", "other", "s",
    "same", "since", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to",
    "too", "was", "were", "what", "when", "which", "while", "who", "will", "with", "you", "your",
];
/// Letters with which a word of samples begins.
const FEWEST_LETTERS: usize = 3;

/// Builds all pages of a deployment.
pub(crate) fn all(deployment: &Deployment) -> Vec<Page> {
    let start = Page::new(Group::Start, START, guides::markdown(START_PAGE, deployment), Form::Start);
    let pages = [start.named("Overview")].into_iter().chain(guides::pages(deployment));
    let pages = pages.chain(reference::pages(deployment));
    let mut pages: Vec<Page> = pages.map(|page| Page { text: deployment.fill_in(&page.text), ..page }).collect();
    // The order of the navigation is that of reading.
    pages.sort_by_key(|page| page.group as usize);
    pages
}

/// Renders a page as Markdown that can be read elsewhere: links are whole, and lead to Markdown.
pub(crate) fn to_markdown(pages: &[Page], text: &str, base: &str) -> String {
    let link_to = |text: String, page: &Page| {
        let to = page.markdown_path();
        ["#", ")"]
            .iter()
            .fold(text, |text, end| text.replace(&format!("]({}{end}", page.path), &format!("]({base}{to}{end}")))
    };
    pages.iter().fold(text.to_owned(), link_to).replace("](/", &format!("]({base}/"))
}

/// Renders the search index: for each section the title of its page, its own title, its link, its beginning, and its
/// words. `word*3` is a word that the section has three times.
pub(crate) fn search_index(pages: &[Page]) -> String {
    let mut rare = RareWords::default();
    let mut entries = Vec::new();
    // The start page repeats what others say: of equal results, it comes last.
    for page in pages.iter().skip(1).chain(pages.first()) {
        for section in page.sections() {
            let link = if section.id.is_empty() { page.path.clone() } else { format!("{}#{}", page.path, section.id) };
            let counted = counted_words(&section, &mut rare);
            entries.push(json!([page.title, section.title, link, excerpt(&section.text), counted]));
        }
    }
    Value::Array(entries).to_string()
}

/// Words that few sections are indexed under, each with the number of these sections.
#[derive(Default)]
struct RareWords(BTreeMap<String, usize>);

impl RareWords {
    /// Returns true if a section is indexed under this word. Parts of ids and times are no words.
    fn take(&mut self, word: &str) -> bool {
        let is_word = word.chars().take(FEWEST_LETTERS).filter(|c| c.is_alphabetic()).count() == FEWEST_LETTERS;
        let sections = self.0.entry(word.to_owned()).or_default();
        *sections += 1;
        is_word && *sections <= MOST_SECTIONS
    }
}

/// Renders the words of a section by how often its text has them. Words that only its samples have count once.
fn counted_words(section: &Section, rare: &mut RareWords) -> String {
    let [text, code] = [&section.text, &section.code].map(|text| text.to_lowercase());
    let mut counts = BTreeMap::<&str, usize>::new();
    for word in words(&text) {
        *counts.entry(word).or_default() += 1;
    }
    counts.retain(|word, _| !COMMON.contains(word) && (!word.contains('_') || rare.take(word)));
    let in_code: BTreeSet<&str> = words(&code).filter(|word| !counts.contains_key(word)).collect();
    counts.extend(in_code.into_iter().filter(|word| rare.take(word)).map(|word| (word, 1)));
    let words = counts.iter().map(|(word, count)| match count {
        1 => (*word).to_owned(),
        count => format!("{word}*{count}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn excerpt(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(EXCERPT_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Renders the summary of the documentation for language models, by <https://llmstxt.org>.
pub(crate) fn summary(pages: &[Page], base: &str) -> String {
    let line = |page: &Page| format!("- [{}]({base}{}): {}\n", page.title, page.markdown_path(), page.about());
    let group = |group: Group| {
        let lines: String = pages.iter().filter(|page| page.group == group).map(line).collect();
        format!("\n## {}\n\n{lines}", group.title())
    };
    let groups: String = Group::ALL.into_iter().map(group).collect();
    let text = format!(
        "# {NAME}\n\n> {}\n\nThe OpenAPI document is {base}/openapi.json, in OpenAPI 3.0 {base}/openapi-3.0.json.\n{groups}",
        pages[0].about(),
    );
    to_markdown(pages, &text, base)
}
