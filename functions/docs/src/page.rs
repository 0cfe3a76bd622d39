//! A page of the documentation.

use crate::markdown::{self, Section};

/// Part of the documentation that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Start,
    Guides,
    Reference,
}

/// A page: Markdown that begins with the title as a heading, and then says what the reader can do with the page.
pub(crate) struct Page {
    pub(crate) part: Part,
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

impl Page {
    /// Creates a page from its Markdown.
    ///
    /// # Panics
    ///
    /// Panics if the text does not begin with a title.
    pub(crate) fn new(part: Part, path: impl Into<String>, text: String) -> Self {
        let title =
            text.strip_prefix("# ").and_then(|rest| rest.split_once('\n')).expect("a page begins with its title");
        Self { part, path: path.into(), title: title.0.to_owned(), text }
    }

    /// The path of the page as Markdown. The start page is `index.md`.
    pub(crate) fn markdown_path(&self) -> String {
        if self.part == Part::Start { format!("{}/index.md", self.path) } else { format!("{}.md", self.path) }
    }

    /// The paragraph under the title.
    pub(crate) fn about(&self) -> String {
        let paragraph = self.text.split("\n\n").nth(1).unwrap_or_default();
        paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The sections, the first of which has the title of the page.
    pub(crate) fn sections(&self) -> Vec<Section> {
        markdown::sections(&self.text)
    }
}
