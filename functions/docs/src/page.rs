//! A page of the documentation.

use maud::Markup;

use crate::markdown::{self, Section};
use crate::site::Group;

/// A page: Markdown that begins with the title as a heading, and then says what the reader can do with the page.
pub(crate) struct Page {
    pub(crate) group: Group,
    pub(crate) path: String,
    pub(crate) title: String,
    /// The page's name in the navigation.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) form: Form,
}

/// The form in which browsers get a page.
pub(crate) enum Form {
    Start,
    Guide,
    /// Sections with samples beside them, and the places that the navigation lists below the page.
    Sheet {
        sections: Markup,
        places: Vec<Place>,
    },
}

/// A place of a page, for the navigation.
pub(crate) struct Place {
    pub(crate) id: String,
    /// The method of an operation.
    pub(crate) method: Option<&'static str>,
    pub(crate) name: String,
}

impl Page {
    /// Creates a page from its Markdown.
    ///
    /// # Panics
    ///
    /// Panics if the text does not begin with a title.
    pub(crate) fn new(group: Group, path: impl Into<String>, text: String, form: Form) -> Self {
        let title =
            text.strip_prefix("# ").and_then(|rest| rest.split_once('\n')).expect("a page begins with its title");
        let title = title.0.to_owned();
        Self { group, path: path.into(), name: title.clone(), title, text, form }
    }

    /// Sets another name for the navigation.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// The path of the page as Markdown. The start page is `index.md`.
    pub(crate) fn markdown_path(&self) -> String {
        if matches!(self.form, Form::Start) { format!("{}/index.md", self.path) } else { format!("{}.md", self.path) }
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
