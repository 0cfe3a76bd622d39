//! The integrators' guides: Markdown files in `pages`.
//!
//! The operators' guides in `infra/guides` are not served. The tests here check both against the code's constants.

use crate::page::{Page, Part};
use crate::site::{GUIDES, without_marks};

/// Code of receivers, which replaces `<<name>>` in a guide. The files are those that the tests run.
const RECEIVERS: [(&str, &str); 4] = [
    ("receiver.py", include_str!("../../../tests/receivers/receiver.py")),
    ("receiver.mjs", include_str!("../../../tests/receivers/receiver.mjs")),
    ("receiver.go", include_str!("../../../tests/receivers/receiver.go")),
    ("receiver.rs", include_str!("../../../tests/receivers/receiver.rs")),
];

/// Removes the marks behind numbers, and inserts the code of the receivers.
pub(crate) fn markdown(text: &str) -> String {
    RECEIVERS
        .iter()
        .fold(without_marks(text), |text, (name, file)| text.replace(&format!("<<{name}>>\n"), without_header(file)))
}

/// Cuts the header of a file, which ends at the first blank line.
fn without_header(file: &str) -> &str {
    file.split_once("\n\n").map_or(file, |(_, rest)| rest)
}

/// Builds the pages of all guides.
pub(crate) fn pages() -> impl Iterator<Item = Page> {
    GUIDES.iter().map(|guide| Page::new(Part::Guides, guide.path(), markdown(guide.text)))
}

#[cfg(test)]
mod numbers;
#[cfg(test)]
mod tests;
