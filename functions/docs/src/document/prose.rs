//! The prose of the document: Markdown files in `reference`, `index` for the whole and one file for each tag.
//!
//! A file starts with a title and a description. A section `## id: Summary` describes an operation. A list describes
//! parameters by name and answers by status, those of all operations at the top of a file. Descriptions of `index`
//! count for all files, those of its section of a credential for operations with the credential.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use domain::mode::Mode;

use crate::site::without_marks;

/// Part of a file: its top, or the section of an operation.
#[derive(Default)]
pub(crate) struct Section {
    /// The title of the file, or the summary of the operation.
    pub(crate) title: String,
    /// The description, in Markdown.
    pub(crate) about: String,
    /// Descriptions of parameters and answers.
    pub(crate) parts: BTreeMap<String, String>,
}

/// A file.
pub(crate) struct Page {
    pub(crate) top: Section,
    /// The operations, by id.
    pub(crate) operations: BTreeMap<String, Section>,
}

macro_rules! pages {
    ($($name:literal)*) => {
        [$(Page::read(include_str!(concat!("../../reference/", $name, ".md")))),*]
    };
}

/// The description of the whole service.
pub(crate) static INDEX: LazyLock<Page> = LazyLock::new(|| Page::read(include_str!("../../reference/index.md")));

/// The requests that receivers get.
pub(crate) static EVENTS: LazyLock<Page> = LazyLock::new(|| Page::read(include_str!("../../reference/events.md")));

/// All tags, in the order of the reference. The sandbox is the last: its operations remove what others made.
pub(super) static TAGS: LazyLock<[Page; 15]> = LazyLock::new(|| {
    pages! {
        "key" "clients" "client-records" "sign-in" "crm-contacts" "crm-opportunities" "crm-bookings" "crm-workflows"
        "event-feed" "settings-workspace" "settings-keys" "settings-webhooks" "portal" "documentation" "sandbox"
    }
});

/// Title of the tag that a sandbox alone has.
const SANDBOX: &str = "Sandbox";

/// Returns the tags of a deployment of this mode.
pub(crate) fn tags(mode: Mode) -> impl Iterator<Item = &'static Page> {
    TAGS.iter().filter(move |page| mode == Mode::Test || page.top.title != SANDBOX)
}

/// Everything that the files say about an operation.
#[derive(Clone, Copy)]
pub(crate) struct Prose {
    pub(crate) tag: &'static Page,
    pub(crate) section: &'static Section,
    /// The section of `index` for all operations with the same credential.
    shared: Option<&'static Section>,
}

impl Prose {
    /// Returns the prose of an operation.
    pub(crate) fn of(id: &str, credential: &str) -> Self {
        let tag = TAGS.iter().find(|page| page.operations.contains_key(id));
        let tag = tag.unwrap_or_else(|| panic!("functions/docs/reference has no section `## {id}: ..`"));
        Self { tag, section: &tag.operations[id], shared: INDEX.operations.get(credential) }
    }

    /// Returns the description of a parameter or an answer.
    pub(crate) fn part(self, name: &str) -> Option<&'static str> {
        let sections = [Some(self.section), Some(&self.tag.top), self.shared, Some(&INDEX.top)];
        sections.into_iter().flatten().find_map(|section| section.parts.get(name)).map(String::as_str)
    }
}

impl Page {
    fn read(text: &str) -> Self {
        let text = without_marks(text);
        let mut sections = text.split("\n## ");
        let top = sections.next().and_then(|top| top.strip_prefix("# ")).expect("the file starts with a title");
        let operations = sections.map(|section| {
            let (id, section) = section.split_once(": ").expect("the section starts with an id and a summary");
            (id.to_owned(), Section::read(section))
        });
        Self { top: Section::read(top), operations: operations.collect() }
    }
}

impl Section {
    fn read(text: &str) -> Self {
        let mut section = Self::default();
        let (title, rest) = text.split_once('\n').expect("the title is a line");
        section.title = title.to_owned();
        for paragraph in rest.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            if let Some(list) = paragraph.strip_prefix("- `") {
                let items = list.split("\n- `").map(|item| item.split_once("`: ").expect("an item has a name"));
                section.parts.extend(items.map(|(name, about)| (name.to_owned(), on_one_line(about))));
            } else {
                let gap = if section.about.is_empty() { "" } else { "\n\n" };
                section.about += &format!("{gap}{}", on_one_line(paragraph));
            }
        }
        section
    }
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
